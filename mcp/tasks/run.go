// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/pause"
	"github.com/go-psi/psi/internal/replay"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// A run is one run of a handler, of which this process has the lease if it is a task.
type run struct {
	manager  *Manager
	replay   *replay.Run
	original *mcp.Request // of an ordinary call; gets notifications until the call is a task
	cancel   context.CancelCauseFunc
	ctx      context.Context // of the handler

	record     *record // as it was when the run began; nil before the call is a task
	isReserved bool    // this process has a slot for the run, and the lease
	poked      chan struct{}

	mu      sync.Mutex
	isTask  bool
	message string // the latest status message
	written string // the one in the store
	reached bool   // the request reached its tool
	failed  error  // why something could not be stored
}

func (m *Manager) newRun(rec *record, reserved bool) *run {
	r := &run{manager: m, record: rec, isReserved: reserved, isTask: true, poked: make(chan struct{}, 1)}
	r.replay = replay.Resume(rec.Memory, r.keep)
	return r
}

// adopt makes an ordinary call, whose handler runs, a task. It fails if that is not possible
// now.
func (m *Manager) adopt(ctx context.Context, r *run, req *mcp.Request, ttl time.Duration) error {
	if !m.reserve() {
		return errBusy
	}
	memory, ok := r.replay.Offer()
	if !ok {
		m.unreserve()
		return errBusy
	}
	task, err := m.create(ctx, req, ttl, memory, true)
	if err != nil {
		r.replay.Decide(nil)
		m.opts.Logger.WarnContext(ctx, "tasks: a call does not become a task", "tool", req.Name(), "error", err)
		return err
	}
	defer r.replay.Decide(r.keep)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record, r.isReserved, r.isTask, r.poked = task.record, true, true, task.poked
	return nil
}

var errBusy = errors.New("tasks: this call cannot become a task now")

// created returns the result that answers the call with the task.
func (r *run) created() mcp.Result {
	return &CreateResult{ResultBase: mcp.ResultBase{ResultType: ResultTask}, Task: r.record.Task}
}

type runKey struct{}

func runFromContext(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	return r
}

// contextFor returns the context of the handler: with the values of ctx, but an end of its
// own.
func (r *run) contextFor(ctx context.Context) context.Context {
	ctx = replay.NewContext(context.WithValue(context.WithoutCancel(ctx), runKey{}, r), r.replay)
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	return r.ctx
}

// serve calls the handler of the tool.
func (r *run) serve(ctx context.Context, next mcp.Handler, req *mcp.Request) (mcp.Result, error) {
	r.mu.Lock()
	r.reached = true
	r.mu.Unlock()
	inner, err := core.Detach(req).WithParams(withProgressToken(requestOf(req), req.ProgressToken()))
	if err != nil {
		return nil, err
	}
	ctx = context.WithValue(ctx, runKey{}, (*run)(nil)) // a tool that it calls is no part of the run
	return core.Serve(core.ContextWithRequest(ctx, inner), next, inner, r, r.manager.opts.Logger)
}

// Notify implements the notifier of a request: a task has a status message in place of
// notifications.
func (r *run) Notify(ctx context.Context, method string, params json.RawMessage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.isTask && (method != mcp.NotificationProgress || !r.original.ProgressToken().IsZero()):
		return r.original.Notify(ctx, method, params)
	case r.isTask && method == mcp.NotificationProgress:
		r.message = statusMessage(params)
	}
	return nil
}

func statusMessage(params json.RawMessage) string {
	var p mcp.ProgressParams
	if strictjson.Unmarshal(params, &p) != nil {
		return ""
	}
	done := fmt.Sprint(p.Progress)
	if p.Total != nil {
		done = fmt.Sprintf("%v of %v", p.Progress, *p.Total)
	}
	if p.Message == "" {
		return done
	}
	return p.Message + " (" + done + ")"
}

// change changes the record, unless another process has taken the task over.
func (r *run) change(ctx context.Context, fn func(*record) error) (*record, error) {
	return r.manager.change(ctx, r.record.Task.ID, func(rec *record) error {
		if !r.owns(rec) {
			return errLost
		}
		rec.Beat++
		return fn(rec)
	})
}

// persist calls fn until the store does not fail, for as long as this process can have the
// lease.
func (r *run) persist(ctx context.Context, fn func() error) error {
	deadline := time.Now().Add(r.manager.opts.Lease)
	for delay := 10 * time.Millisecond; ; delay = min(2*delay, time.Second) {
		err := fn()
		if err == nil || isFinal(err) || time.Now().After(deadline) || pause.For(ctx, delay) != nil {
			return err
		}
	}
}

// isFinal reports whether it is no use to try again.
func isFinal(err error) bool {
	return errors.Is(err, errLost) || errors.Is(err, errGone) || errors.Is(err, store.ErrTooLarge) || errors.Is(err, store.ErrInvalid) ||
		errors.Is(err, store.ErrNotFound)
}

// keep stores what the handler remembers, also if its context has ended: the step is done.
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
	return fmt.Errorf("tasks: a value of Once was not stored: %w", err)
}

// renew keeps the lease and the status message up to date until the handler has returned.
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

// obey ends the run if the record says so: the client has cancelled the task, or another
// process has taken it over.
func (r *run) obey(rec *record, err error) {
	switch {
	case errors.Is(err, errLost), errors.Is(err, errGone), err == nil && !r.owns(rec):
		r.cancel(errLost)
	case err == nil && rec.Cancelled:
		r.cancel(&mcp.CancelError{Reason: "the task was cancelled"})
	}
}

// owns reports whether the record names this run as the one that runs the task.
func (r *run) owns(rec *record) bool {
	return rec.Owner == r.manager.owner && rec.Epoch == r.record.Epoch
}

func (r *run) newMessage() (message string, isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.message, r.message != r.written
}

// noteWritten notes which status message is in the store.
func (r *run) noteWritten(ctx context.Context, message string, isNew bool) {
	if !isNew {
		return
	}
	r.mu.Lock()
	r.written = message
	r.mu.Unlock()
	r.manager.announce(ctx, r.record.Task.ID)
}

// errExpired is the cause of the context of a handler whose task has expired.
var errExpired = mcp.Errorf(mcp.CodeInternalError, "the TTL of the task has passed")

// finish stores the outcome of the run.
func (r *run) finish(res mcp.Result, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), r.manager.opts.Lease)
	defer cancel()
	res, err = core.Publish(ctx, r.manager.handler, res, err)
	cause, failure := context.Cause(r.ctx), failureOf(res, err)
	_, asks := res.(*mcp.InputRequired)
	switch {
	case failure != nil && r.isInterrupted(cause):
		r.giveBack(ctx)
		return
	case err != nil && !r.wasReached() && r.record.Attempts < r.manager.opts.MaxAttempts:
		return // another process may reach the tool, when the lease has ended
	case err == nil && asks:
		err = r.settle(ctx, r.ask(res))
	case failure != nil && (err != nil || cause != nil):
		err = r.settle(ctx, func(rec *record) error { rec.fail(cause, failure); return nil })
	default:
		err = r.complete(ctx, res)
	}
	if err != nil && !errors.Is(err, errLost) && !errors.Is(err, errGone) {
		r.manager.opts.Logger.Error("tasks: the outcome of a task was not stored; it is run again", "task", r.record.Task.ID, "error", err)
	}
}

// failureOf returns why a handler failed, nil if it did not. Tools turn errors into results.
func failureOf(res mcp.Result, err error) error {
	if r, ok := res.(*mcp.CallToolResult); ok && r != nil && r.IsError && err == nil {
		return cmp.Or[error](r.Err(), errFailed)
	}
	return err
}

// errFailed is the error of a tool whose result does not have one.
var errFailed = errors.New("tasks: the tool failed")

// isInterrupted reports whether the handler could not do its work for a reason that another
// process does not have. A client that cancels wants the task to end.
func (r *run) isInterrupted(cause error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed != nil || errors.Is(cause, errShutdown) || errors.Is(cause, errLost)
}

// wasReached reports whether the request of the task has reached its tool.
func (r *run) wasReached() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reached
}

// ask returns a change by which the task waits for answers.
func (r *run) ask(res mcp.Result) func(*record) error {
	digests, memory := r.replay.Asked()
	return func(rec *record) error {
		rec.remember(memory)
		rec.ask(res.(*mcp.InputRequired), digests)
		return nil
	}
}

// settle ends the run with a change of the record, and takes the task off the list of those
// that are working.
func (r *run) settle(ctx context.Context, fn func(*record) error) error {
	m, id := r.manager, r.record.Task.ID
	var rec *record
	err := r.persist(ctx, func() (err error) {
		rec, err = r.change(ctx, func(rec *record) error {
			rec.Owner, rec.Attempts = "", 0
			return fn(rec)
		})
		return err
	})
	if err != nil {
		return err
	}
	m.announce(ctx, id)
	if err := m.unlist(ctx, id, rec.Round); err != nil {
		m.opts.Logger.WarnContext(ctx, "tasks: a task was not taken off the list of working ones, which is done later", "task", id, "error", err)
	}
	return nil
}

// complete stores a result. The result is stored beside the record and before it.
func (r *run) complete(ctx context.Context, res mcp.Result) error {
	raw, err := r.encode(ctx, res)
	if err == nil && len(raw) > r.manager.opts.MaxResult {
		err = mcp.Errorf(mcp.CodeTooLarge, "the result of the task has %d bytes; the limit is %d", len(raw), r.manager.opts.MaxResult)
	}
	if err != nil {
		return r.settle(ctx, func(rec *record) error { rec.fail(nil, err); return nil })
	}
	parts := 0
	err = r.persist(ctx, func() (err error) {
		parts, err = r.manager.putParts(ctx, "result", resultID(r.record), raw, r.record.rest())
		return err
	})
	if err != nil {
		return err
	}
	return r.settle(ctx, func(rec *record) error {
		rec.setStatus(Completed, rec.Task.StatusMessage)
		rec.Results = parts
		return nil
	})
}

// encode encodes a result, which may have types of the handler that panic.
func (r *run) encode(ctx context.Context, res mcp.Result) (raw json.RawMessage, err error) {
	defer func() {
		if v := recover(); v != nil {
			r.manager.opts.Logger.ErrorContext(ctx, "tasks: the result of a task cannot be encoded", "task", r.record.Task.ID, "panic", fmt.Sprint(v))
			err = mcp.Errorf(mcp.CodeInternalError, "the result of the task cannot be encoded")
		}
	}()
	return core.MarshalResult(res)
}

// resultID names the result of one owner, which a former owner must not overwrite.
func resultID(rec *record) string { return fmt.Sprintf("%s/%d", rec.Task.ID, rec.Epoch) }

// giveBack gives up the lease, so that any process can run the task again at once.
func (r *run) giveBack(ctx context.Context) {
	m, id := r.manager, r.record.Task.ID
	_, err := r.change(ctx, func(rec *record) error {
		rec.Owner = ""
		if errors.Is(context.Cause(r.ctx), errShutdown) {
			rec.Attempts = max(rec.Attempts-1, 0)
		}
		return nil
	})
	switch {
	case err == nil:
		_ = m.store.Publish(ctx, m.topic(), []byte(offered+id)) // a hint
	case !errors.Is(err, errLost) && !errors.Is(err, errGone):
		m.opts.Logger.WarnContext(ctx, "tasks: a task was not given back; its lease ends by itself", "task", id, "error", err)
	}
}

// fail ends a task with the error of its handler, or as cancelled if the client wanted that.
func (r *record) fail(cause, err error) {
	_, cancelled := errors.AsType[*mcp.CancelError](cause)
	switch {
	case cancelled || r.Cancelled:
		r.setStatus(Cancelled, "")
		return
	case errors.Is(cause, errExpired):
		err = errExpired
	}
	r.Error = core.AsError(err)
	r.setStatus(Failed, r.Error.Message)
}

// maxQuestions bounds the questions of one task.
const maxQuestions = 512

// ask makes the task wait for answers. Digests are those of the questions by the handler's
// keys; a handler that asks by itself has none.
func (r *record) ask(asked *mcp.InputRequired, digests map[string]string) {
	if r.Cancelled {
		r.setStatus(Cancelled, "")
		return
	}
	if r.Asked == nil {
		r.Asked = map[string]question{}
	}
	for key, q := range asked.InputRequests {
		if r.isOpen(key, digests[key]) {
			continue
		}
		r.Asked[r.publicKey(key)] = question{Key: key, Digest: digests[key], Request: q}
	}
	r.State = asked.RequestState
	if len(r.Asked) > maxQuestions {
		r.fail(nil, mcp.Errorf(mcp.CodeInternalError, "the task asked more than %d questions", maxQuestions))
		return
	}
	r.setStatus(InputRequired, "")
}

// isOpen reports whether the question waits for an answer already.
func (r *record) isOpen(key, digest string) bool {
	for _, q := range r.Asked {
		if q.Key == key && q.Digest == digest && q.Answer == nil {
			return true
		}
	}
	return false
}

// publicKey returns a key for a question that no other question of the task ever had.
func (r *record) publicKey(key string) string {
	public := key
	for n := 2; ; n++ {
		if _, used := r.Asked[public]; !used {
			return public
		}
		public = fmt.Sprintf("%s-%d", key, n)
	}
}

// accept stores an answer, and reports whether the question was open.
func (r *record) accept(public string, answer json.RawMessage) bool {
	q, ok := r.Asked[public]
	if !ok || q.Answer != nil {
		return false
	}
	q.Answer = answer
	r.Asked[public] = q
	if q.Digest != "" {
		r.remember(replay.Memory{Answers: map[string]replay.Answer{q.Key: {Question: q.Digest, Answer: answer}}})
	}
	return true
}

// isAnswered reports whether no question waits for an answer.
func (r *record) isAnswered() bool {
	for _, q := range r.Asked {
		if q.Answer == nil {
			return false
		}
	}
	return true
}
