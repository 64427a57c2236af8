// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
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
	stored := make(chan struct{})
	defer close(stored)
	memory, ok := r.replay.Keep(func(ctx context.Context, key string, value json.RawMessage) error {
		<-stored
		return r.keep(ctx, key, value)
	})
	if !ok {
		m.unreserve()
		return errBusy
	}
	task, err := m.create(ctx, req, ttl, memory, true)
	if err != nil {
		r.replay.Release()
		m.opts.Logger.WarnContext(ctx, "tasks: a call does not become a task", "tool", req.Name(), "error", err)
		return err
	}
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
		if rec.Owner != r.manager.owner || rec.Epoch != r.record.Epoch {
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
		if err == nil || errors.Is(err, errLost) || errors.Is(err, errGone) || time.Now().After(deadline) || pause.For(ctx, delay) != nil {
			return err
		}
	}
}

// keep stores a value of Once.
func (r *run) keep(ctx context.Context, key string, value json.RawMessage) error {
	err := r.persist(ctx, func() error {
		_, err := r.change(ctx, func(rec *record) error {
			if rec.Memory.Once == nil {
				rec.Memory.Once = map[string]json.RawMessage{}
			}
			rec.Memory.Once[key], rec.Attempts = value, 1
			return nil
		})
		return err
	})
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failed = err
		return fmt.Errorf("tasks: the value of Once under %q was not stored: %w", key, err)
	}
	return nil
}

// renew keeps the lease and the status message up to date until the handler has returned.
func (r *run) renew(returned <-chan struct{}) {
	m := r.manager
	ticker := time.NewTicker(min(m.opts.Lease/3, m.opts.PollInterval))
	defer ticker.Stop()
	last := time.Now()
	for {
		poked := false
		select {
		case <-returned:
			return
		case <-r.poked:
			poked = true
		case <-ticker.C:
		}
		message, isNew := r.newMessage()
		if !poked && !isNew && time.Since(last) < m.opts.Lease/3 {
			continue
		}
		rec, err := r.change(m.ctx, func(rec *record) error {
			if isNew {
				rec.setStatus(Working, message)
			}
			return nil
		})
		switch {
		case err == nil:
			last = time.Now()
			r.noteWritten(rec, message, isNew)
		case errors.Is(err, errLost), errors.Is(err, errGone), time.Since(last) > m.opts.Lease*2/3:
			r.cancel(errLost)
		}
	}
}

func (r *run) newMessage() (message string, isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.message, r.message != r.written
}

func (r *run) noteWritten(rec *record, message string, isNew bool) {
	if rec.Cancelled {
		r.cancel(&mcp.CancelError{Reason: "the task was cancelled"})
	}
	if isNew {
		r.mu.Lock()
		r.written = message
		r.mu.Unlock()
		r.manager.announce(r.manager.ctx, rec.Task.ID)
	}
}

// finish stores the outcome of the run.
func (r *run) finish(res mcp.Result, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), r.manager.opts.Lease)
	defer cancel()
	cause := context.Cause(r.ctx)
	r.mu.Lock()
	failed, reached := r.failed, r.reached
	r.mu.Unlock()
	asked, asks := res.(*mcp.InputRequired)
	switch {
	case err != nil && (errors.Is(cause, errShutdown) || errors.Is(cause, errLost) || failed != nil || !reached && r.record.Attempts < r.manager.opts.MaxAttempts):
		r.giveBack(ctx)
		return
	case err == nil && asks:
		err = r.settle(ctx, func(rec *record) error { return rec.ask(asked, r.replay.Asked()) })
	case err == nil:
		err = r.complete(ctx, res)
	default:
		err = r.settle(ctx, func(rec *record) error { rec.fail(cause, err); return nil })
	}
	if err != nil {
		r.manager.opts.Logger.Error("tasks: the outcome of a task was not stored; it is run again", "task", r.record.Task.ID, "error", err)
	}
}

// settle ends the run with a change of the record, and takes the task off the list of those
// that are working.
func (r *run) settle(ctx context.Context, fn func(*record) error) error {
	m, id := r.manager, r.record.Task.ID
	err := r.persist(ctx, func() error {
		_, err := r.change(ctx, func(rec *record) error {
			rec.Owner, rec.Attempts = "", 0
			return fn(rec)
		})
		return err
	})
	if err != nil {
		return err
	}
	m.announce(ctx, id)
	if err := m.unlist(ctx, id); err != nil {
		m.opts.Logger.WarnContext(ctx, "tasks: a task was not taken off the list of working ones, which is done later", "task", id, "error", err)
	}
	return nil
}

// complete stores a result. The result is stored beside the record and before it.
func (r *run) complete(ctx context.Context, res mcp.Result) error {
	raw, err := core.MarshalResult(res)
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

// resultID names the result of one owner, which a former owner must not overwrite.
func resultID(rec *record) string { return fmt.Sprintf("%s/%d", rec.Task.ID, rec.Epoch) }

// giveBack gives up the lease, so that any process can run the task again at once.
func (r *run) giveBack(ctx context.Context) {
	_, err := r.change(ctx, func(rec *record) error {
		rec.Owner = ""
		if errors.Is(context.Cause(r.ctx), errShutdown) {
			rec.Attempts = max(rec.Attempts-1, 0)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errLost) && !errors.Is(err, errGone) {
		r.manager.opts.Logger.WarnContext(ctx, "tasks: a task was not given back; its lease ends by itself", "task", r.record.Task.ID, "error", err)
	}
}

// fail ends a task with the error of its handler, or as cancelled if the client wanted that.
func (r *record) fail(cause, err error) {
	if _, cancelled := errors.AsType[*mcp.CancelError](cause); cancelled || r.Cancelled {
		r.setStatus(Cancelled, "")
		return
	}
	r.Error = core.AsError(err)
	r.setStatus(Failed, r.Error.Message)
}

// maxQuestions bounds the questions of one task.
const maxQuestions = 512

// ask makes the task wait for answers. Digests are those of the questions by the handler's
// keys; a handler that asks by itself has none.
func (r *record) ask(asked *mcp.InputRequired, digests map[string]string) error {
	if r.Cancelled {
		r.setStatus(Cancelled, "")
		return nil
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
		return nil
	}
	r.setStatus(InputRequired, "")
	return nil
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
		if r.Memory.Answers == nil {
			r.Memory.Answers = map[string]replay.Answer{}
		}
		r.Memory.Answers[q.Key] = replay.Answer{Question: q.Digest, Answer: answer}
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
