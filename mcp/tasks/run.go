// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/replay"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// A run is one run of a handler. If it runs a task, this process has the lease of the task.
//
// The first run of a task begins before its record is stored. A task that ends within
// [grace] is stored once, as a task that has ended.
type run struct {
	manager  *Manager
	replay   *replay.Run
	original *mcp.Request // the ordinary call, which receives notifications; nil for a task from its start
	cancel   context.CancelCauseFunc
	ctx      context.Context // of the handler

	slot        string        // the caller for whom the run has a slot
	record      *record       // as it was when the run began; nil before the call is a task
	poked       chan struct{} // wakes renew; nil before startRenewal
	stopRenewal func()        // undoes startRenewal; nil before that
	created     Task          // as first stored

	// For a first run only. A token in creating is the lock of the fields after it. It is
	// held during operations of the store, and acquired before mu and the mutex of the
	// manager.
	request  json.RawMessage // the stored params of the request
	decided  chan struct{}   // closed when stored or unstored is set; nil for other runs
	outcomes chan outcome    // the outcome of the handler before decided is closed
	creating chan struct{}
	stored   bool
	unstored error // why the record was not stored and never will be

	mu      sync.Mutex
	isTask  bool
	message string // the latest status message
	written string // the status message in the store
	reached bool   // the request reached its tool
	tool    string // "" before reached
	failed  error  // why something could not be stored

	continueHandler func() (mcp.Result, error) // calls the handler of a task that runs again; nil before deferHandler
}

func (m *Manager) newRun(rec *record) *run {
	r := &run{manager: m, record: rec, isTask: true}
	r.replay = replay.Resume(rec.Memory, r.keep)
	return r
}

// newFirstRun returns the first run of a task whose record is not stored yet.
func (m *Manager) newFirstRun(rec *record, request json.RawMessage) *run {
	r := m.newRun(rec)
	r.request, r.decided, r.outcomes, r.creating = request, make(chan struct{}), make(chan outcome), make(chan struct{}, 1)
	return r
}

// lockFirst locks the fields that decide whether a first run has a task. It returns the
// function that unlocks them, and reports whether it was already decided.
func (r *run) lockFirst() (unlock func(), decided bool) {
	r.creating <- struct{}{}
	return func() { <-r.creating }, r.stored || r.unstored != nil
}

// isUndecided reports whether r is a first run whose record is not stored yet.
func (r *run) isUndecided() bool {
	if r.decided == nil {
		return false
	}
	select {
	case <-r.decided:
		return false
	default:
		return true
	}
}

// errUnstored is the error of all store operations of a run whose record could not be
// stored.
var errUnstored = errors.New("tasks: the task was not stored")

// create stores the record of a first run, as changed by fn, unless it is already stored.
// It reports whether it did.
func (r *run) create(ctx context.Context, fn func(*record) error) (rec *record, created bool, err error) {
	if r.decided == nil {
		return nil, false, nil
	}
	unlock, decided := r.lockFirst()
	defer unlock()
	if decided {
		return nil, false, r.unstored
	}
	first := *r.record
	if err := fn(&first); err != nil {
		return nil, false, err
	}
	err = r.manager.tryInsert(ctx, &first, r.request)
	switch {
	case errors.Is(err, store.ErrTooLarge):
		return nil, false, err // it can be stored without the additions of fn
	case err != nil:
		r.manager.abandon(context.WithoutCancel(ctx), &first)
		r.unstored = fmt.Errorf("%w: %w", errUnstored, err)
		close(r.decided)
		return nil, false, r.unstored
	}
	r.stored, r.created = true, first.Task
	if first.Owner != "" {
		r.startRenewal()
	}
	close(r.decided)
	return &first, true, nil
}

// discard decides that a first run has no task, unless its record is already stored.
func (r *run) discard(cause error) {
	unlock, decided := r.lockFirst()
	defer unlock()
	if decided {
		return
	}
	r.unstored = errors.Join(errUnstored, cause)
	close(r.decided)
	r.cancel(cause)
	// If this fails, the task stays counted until its TTL would have expired.
	_ = r.manager.removeFromIndex(context.WithoutCancel(r.ctx), r.record.Caller, r.record.Task.ID)
}

// startRenewal starts renewing the lease of the task. It makes the run end when the process
// shuts down or the TTL of the task expires.
func (r *run) startRenewal() {
	m, id, returned := r.manager, r.record.Task.ID, make(chan struct{})
	r.poked = make(chan struct{}, 1)
	m.mu.Lock()
	m.running[id] = r
	m.mu.Unlock()
	stop := context.AfterFunc(m.ctx, func() { r.cancel(errShutdown) })
	expiry := time.AfterFunc(r.record.rest(), func() { r.cancel(errExpired) })
	m.done.Go(func() { r.renew(returned) })
	r.stopRenewal = func() {
		stop()
		expiry.Stop()
		close(returned)
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.running[id] == r {
			delete(m.running, id)
		}
	}
}

// detach ends the run. If the record of a first run is not stored yet, it never will be.
func (r *run) detach() {
	if r.decided != nil {
		r.discard(nil)
	}
	if r.stopRenewal != nil {
		r.stopRenewal()
	}
	r.cancel(nil)
}

// convertToTask turns an ordinary call, whose handler is running, into a task. It fails if
// that is not possible now.
func (m *Manager) convertToTask(ctx context.Context, r *run, req *mcp.Request, ttl time.Duration) error {
	if r.slot = callerOf(req.Principal); !m.reserve(r.slot) {
		return errBusy
	}
	memory, ok := r.replay.Offer()
	if !ok {
		m.release(r.slot)
		return errBusy
	}
	rec, err := m.newRecord(ctx, req, ttl, true)
	if err == nil {
		rec.Memory = memory
		err = m.insert(ctx, rec, requestOf(ctx, req))
	}
	if err != nil {
		r.replay.Decide(nil)
		m.release(r.slot)
		m.opts.Logger.WarnContext(ctx, "tasks: a call does not become a task", "tool", req.Name(), "error", err)
		return err
	}
	defer r.replay.Decide(r.keep)
	r.mu.Lock()
	r.record, r.created, r.isTask = rec, rec.Task, true
	r.mu.Unlock()
	r.startRenewal()
	return nil
}

var errBusy = errors.New("tasks: this call cannot become a task now")

// answer returns the result that answers the call with the task.
func (r *run) answer() mcp.Result {
	return &CreateResult{ResultBase: mcp.ResultBase{ResultType: ResultTask}, Task: r.created}
}

// runKey is the key of the run in the context of a request that a task sends through the mux
// again, to find its handler.
type runKey struct{}

func runFromContext(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	return r
}

// contextFor returns the context of the run. It has the values of ctx, but is cancelled
// independently.
func (r *run) contextFor(ctx context.Context) context.Context {
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return r.ctx
}

// deferHandler answers the request of a task that runs again with the task, as the request
// of the first run was answered, and sets continueHandler, which then calls the handler.
// This way, the middleware around the mux does not affect the task as it would affect a
// call, for example by limiting its time. isOther reports that req is another call, which
// middleware makes.
func (r *run) deferHandler(ctx context.Context, next mcp.Handler, req *mcp.Request) (res mcp.Result, isOther bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.continueHandler != nil || req.ID != r.record.requestID() || req.Name() != r.record.Tool {
		return nil, true
	}
	r.continueHandler = func() (mcp.Result, error) {
		ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		defer cancel(nil)
		defer context.AfterFunc(r.ctx, func() { cancel(context.Cause(r.ctx)) })()
		return r.serve(ctx, next, req)
	}
	return r.answer(), false
}

// serve calls the handler of the tool. The request goes through the mux again, so handler and
// middleware are found without a second registration; middleware around the mux sees one more
// call, which is answered with the task.
func (r *run) serve(ctx context.Context, next mcp.Handler, req *mcp.Request) (mcp.Result, error) {
	r.mu.Lock()
	r.reached, r.tool = true, req.Name()
	r.mu.Unlock()
	inner := core.DetachForTask(req)
	ctx = context.WithValue(ctx, runKey{}, (*run)(nil)) // the call has been found
	ctx = replay.NewContext(ctx, r.replay)
	return core.Serve(core.ContextWithRequest(ctx, inner), next, inner, r, r.manager.opts.Logger)
}

// Notify implements the notifier of a request: a task has a status message instead of
// notifications. It must not hold mu while it sends: a client that does not read would delay
// the renewal of the lease.
func (r *run) Notify(ctx context.Context, method string, params json.RawMessage) error {
	r.mu.Lock()
	isTask := r.isTask
	if isTask && method == mcp.NotificationProgress {
		r.message = statusMessage(params)
	}
	r.mu.Unlock()
	if !isTask && (method != mcp.NotificationProgress || !r.original.ProgressToken().IsZero()) {
		return r.original.Notify(ctx, method, params)
	}
	return nil
}

// maxMessage bounds the message of a progress notification, in bytes. If the message were
// too large for the store, the lease could not be renewed.
const maxMessage = 4 << 10

func statusMessage(params json.RawMessage) string {
	var p mcp.ProgressParams
	if strictjson.Unmarshal(params, &p) != nil {
		return ""
	}
	if len(p.Message) > maxMessage {
		p.Message = strings.ToValidUTF8(p.Message[:maxMessage], "") + "…"
	}
	done := decimal(p.Progress)
	if p.Total != nil {
		done += " of " + decimal(*p.Total)
	}
	if p.Message == "" {
		return done
	}
	return p.Message + " (" + done + ")"
}

// decimal formats a number for people, without an exponent.
func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// change changes the record, unless another process has taken the task over.
func (r *run) change(ctx context.Context, fn func(*record) error) (*record, error) {
	if rec, created, err := r.create(ctx, fn); created || err != nil {
		return rec, err
	}
	return r.manager.change(ctx, r.record.Task.ID, func(rec *record) error {
		if !r.owns(rec) {
			return errLost
		}
		rec.Beat++
		return fn(rec)
	})
}

// persist calls fn until it succeeds or fails with an error for which isFinal is true, for
// at most the time that this process can have the lease.
func (r *run) persist(ctx context.Context, fn func() error) error {
	deadline := time.Now().Add(r.manager.opts.Lease)
	for n := 0; ; n++ {
		err := fn()
		if errors.Is(err, store.ErrFull) && r.isUndecided() {
			r.manager.opts.Logger.WarnContext(ctx, "tasks: a call does not become a task", "error", err)
			return fmt.Errorf("%w: %w", errUnstored, err)
		}
		if err == nil || isFinal(err) || time.Now().After(deadline) || async.Sleep(ctx, async.Backoff(10*time.Millisecond, time.Second, n)) != nil {
			return err
		}
	}
}

// isFinal reports whether retrying cannot succeed.
func isFinal(err error) bool {
	return isOver(err) || errors.Is(err, store.ErrTooLarge) || errors.Is(err, store.ErrInvalid) ||
		errors.Is(err, store.ErrNotFound)
}

// keep stores what the handler remembers, even if its context has ended, because the step
// is done.
func (r *run) keep(ctx context.Context, memory replay.Memory) error {
	ctx = context.WithoutCancel(ctx)
	err := r.persist(ctx, func() error {
		_, err := r.change(ctx, func(rec *record) error {
			rec.remember(memory)
			rec.Attempts = 1
			return nil
		})
		return err
	})
	if err == nil {
		return nil
	}
	if !errors.Is(err, store.ErrTooLarge) {
		r.mu.Lock()
		r.failed = err
		r.mu.Unlock()
	}
	return fmt.Errorf("tasks: the values that the handler remembers were not stored: %w", err)
}

// renew renews the lease and stores the status message until the handler has returned. A
// lease expires by the clock of the process that watches it: the owner increments a counter,
// and a process for which it does not change during the lease takes the task over with one
// compare-and-swap. No two clocks are compared.
func (r *run) renew(returned <-chan struct{}) {
	m, ctx := r.manager, context.WithoutCancel(r.ctx)
	ticker := time.NewTicker(min(m.opts.Lease/3, m.opts.PollInterval))
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-returned:
			return
		case <-r.poked:
			rec, _, err := m.load(ctx, r.record.Task.ID)
			r.obey(rec, err)
			continue
		case <-ticker.C:
		}
		message, isNew := r.newMessage()
		if !isNew && time.Since(last) < m.opts.Lease/3 {
			continue
		}
		rec, err := r.change(ctx, func(rec *record) error {
			if isNew {
				rec.setStatus(Working, message)
			}
			return nil
		})
		r.obey(rec, err)
		if err == nil {
			last = time.Now()
			r.noteWritten(ctx, message, isNew)
		} else if time.Since(last) > m.opts.Lease*2/3 {
			r.cancel(errLost)
		}
	}
}

// obey ends the run if the client has cancelled the task or another process has taken it
// over.
func (r *run) obey(rec *record, err error) {
	switch {
	case rec != nil && rec.Cancelled:
		r.cancel(&mcp.CancelError{Reason: "the task was cancelled"})
	case errors.Is(err, errLost), errors.Is(err, errGone), err == nil && !r.owns(rec):
		r.cancel(errLost)
	}
}

// owns reports whether the record names this run as the owner of the task.
func (r *run) owns(rec *record) bool {
	return rec.Owner == r.manager.owner && rec.Epoch == r.record.Epoch
}

func (r *run) newMessage() (message string, isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.message, r.message != r.written
}

// noteWritten records which status message is in the store.
func (r *run) noteWritten(ctx context.Context, message string, isNew bool) {
	if !isNew {
		return
	}
	r.mu.Lock()
	r.written = message
	r.mu.Unlock()
	r.manager.announce(ctx, r.record.Task.ID)
}
