// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// errExpired is the cancellation cause of a handler whose task has expired.
var errExpired = mcp.Errorf(mcp.CodeInternalError, "the TTL of the task has passed")

// finish stores the outcome of the run.
func (r *run) finish(res mcp.Result, err error) {
	ctx := context.WithoutCancel(r.ctx) // persist bounds the time
	res, err = core.Publish(ctx, r.manager.handler, res, err)
	cause, failure := context.Cause(r.ctx), failureOf(res, err)
	_, asks := res.(*mcp.InputRequired)
	switch {
	case failure != nil && r.isInterrupted(cause):
		r.giveBack(ctx)
		return
	case err != nil && !r.wasReached() && r.isPostponed(ctx, err):
		return // another process may reach the tool when the lease has expired
	}
	switch {
	case err == nil && asks:
		err = r.settle(ctx, r.ask(res))
	case failure != nil && (err != nil || cause != nil):
		err = r.settle(ctx, func(rec *record) error { rec.fail(cause, failure); return nil })
	default:
		err = r.complete(ctx, res)
	}
	if errors.Is(err, store.ErrTooLarge) { // another run would fail the same way
		failure = clientError(err)
		err = r.settle(ctx, func(rec *record) error { rec.fail(nil, failure); return nil })
	}
	if err != nil && !isOver(err) {
		r.manager.opts.Logger.Error("tasks: the outcome of a task was not stored; it is run again", "task", redact.Session(r.record.Task.ID), "error", err)
	}
}

// isOver reports whether err means that the run no longer has a task.
func isOver(err error) bool {
	return errors.Is(err, errLost) || errors.Is(err, errGone) || errors.Is(err, errUnstored)
}

// failureOf returns the error of a failed handler, or nil. Tools turn errors into results.
func failureOf(res mcp.Result, err error) error {
	if r, ok := res.(*mcp.CallToolResult); ok && r != nil && r.IsError && err == nil {
		return cmp.Or[error](r.Err(), errFailed)
	}
	return err
}

// errFailed is the error of a failed tool whose result has no error.
var errFailed = errors.New("tasks: the tool failed")

// isInterrupted reports whether the handler failed for a reason that does not affect other
// processes. Cancellation by the client is no interruption: the task has to end. Tools turn
// errors into results, so a failure is judged by its cause: if the context has ended, the
// task is handed over, cancelled or expired, but not completed.
func (r *run) isInterrupted(cause error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed != nil || errors.Is(cause, errShutdown) || errors.Is(cause, errLost)
}

// isPostponed reports whether a run that ended with err before it reached the tool is to be
// repeated. If the server was busy, the run does not count as an attempt, or a handover of
// many tasks of one caller would fail most of them.
func (r *run) isPostponed(ctx context.Context, err error) bool {
	if _, busy := mcp.RetryAfter(err); !busy {
		return r.record.Attempts < r.manager.opts.MaxAttempts
	}
	_, _ = r.change(ctx, func(rec *record) error { // if it fails, the attempt counts
		rec.Attempts--
		return nil
	})
	return true
}

// wasReached reports whether the request of the task has reached its tool.
func (r *run) wasReached() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reached
}

// ask returns a change that makes the task wait for answers.
func (r *run) ask(res mcp.Result) func(*record) error {
	digests, memory := r.replay.Asked()
	return func(rec *record) error {
		rec.remember(memory)
		rec.ask(res.(*mcp.InputRequired), digests)
		return nil
	}
}

// settle ends the run with a change of the record, and removes the task from the list of
// working tasks.
func (r *run) settle(ctx context.Context, fn func(*record) error) error {
	m, id := r.manager, r.record.Task.ID
	var rec *record
	created := false // then the task is not listed, and its ID is not known yet
	end := func(rec *record) error {
		rec.Owner, rec.Attempts = "", 0
		return fn(rec)
	}
	err := r.persist(ctx, func() (err error) {
		if rec, created, err = r.create(ctx, end); !created && err == nil {
			rec, err = r.change(ctx, end)
		}
		return err
	})
	switch {
	case err == nil && rec.Task.Status == Working:
		m.done.Go(func() { m.runLater(ctx, rec) })
		return nil
	case err != nil || created:
		return err
	}
	m.announce(ctx, id)
	if err := m.unlist(ctx, id, rec.Round); err != nil {
		m.opts.Logger.WarnContext(ctx, "tasks: a task was not taken off the list of working ones, which is done later", "task", redact.Session(id), "error", err)
	}
	return nil
}

// maxPause bounds the pause before a handler runs again that asked for that. It is shorter
// if clients poll more often. A counter of rounds would have to be stored.
const maxPause = time.Second

// runLater makes a task that has no owner run again after a pause, or immediately in another
// process if this one shuts down. If this process ends, a sweeper finds the task.
func (m *Manager) runLater(ctx context.Context, rec *record) {
	_ = async.Sleep(m.ctx, min(m.opts.PollInterval, maxPause))
	m.offer(ctx, rec)
}

// complete stores a result: in the record if it is small, otherwise separately, before the
// record. A result beyond the share of the caller fails the task, even if it is quick;
// otherwise it would depend on the grace period whether the call succeeds.
func (r *run) complete(ctx context.Context, res mcp.Result) error {
	raw, err := r.encode(ctx, res)
	if limit := min(maxResult, r.manager.opts.MaxBytes); err == nil && len(raw) > limit {
		err = mcp.Errorf(mcp.CodeTooLarge, "the result of the task has %d bytes; the limit is %d", len(raw), limit)
	}
	if err != nil {
		return r.settle(ctx, func(rec *record) error { rec.fail(nil, err); return nil })
	}
	if len(raw) <= maxInline {
		return r.settle(ctx, func(rec *record) error {
			rec.setStatus(Completed, rec.Task.StatusMessage)
			rec.Result = raw
			return nil
		})
	}
	parts, large := 0, *r.record
	large.Apart += len(raw)
	err = r.persist(ctx, func() (err error) {
		if err = r.manager.count(ctx, &large); err != nil {
			return err
		}
		parts, err = r.manager.putParts(ctx, "result", resultID(r.record), raw, r.record.rest())
		return err
	})
	if err != nil {
		return err
	}
	return r.settle(ctx, func(rec *record) error {
		rec.setStatus(Completed, rec.Task.StatusMessage)
		rec.Results = parts
		rec.Apart += len(raw)
		return nil
	})
}

// encode encodes a result. It recovers panics, because the result may have types of the
// handler.
func (r *run) encode(ctx context.Context, res mcp.Result) (raw json.RawMessage, err error) {
	defer func() {
		if v := recover(); v != nil {
			r.manager.opts.Logger.ErrorContext(ctx, "tasks: the result of a task cannot be encoded", "task", redact.Session(r.record.Task.ID), "panic", fmt.Sprint(v))
			err = mcp.Errorf(mcp.CodeInternalError, "the result of the task cannot be encoded")
		}
	}()
	if core.Base(res).ResultType == ResultTask {
		return nil, mcp.Errorf(mcp.CodeInternalError, "the tool %q was answered with a task, which cannot be the result of a task; "+
			"pass the request of the task on, or call the other tool without declaring %s", r.record.Tool, Extension)
	}
	return mcp.MarshalResult(res)
}

// resultID returns the ID of the result of one owner. It differs for each owner, because a
// former owner must not overwrite the result.
func resultID(rec *record) string { return fmt.Sprintf("%s/%d", rec.Task.ID, rec.Epoch) }

// giveBack releases the lease, so that any process can run the task again immediately.
func (r *run) giveBack(ctx context.Context) {
	m, id := r.manager, r.record.Task.ID
	rec, err := r.change(ctx, func(rec *record) error {
		rec.Owner = ""
		if errors.Is(context.Cause(r.ctx), errShutdown) {
			rec.Attempts = max(rec.Attempts-1, 0)
		}
		return nil
	})
	switch {
	case err == nil:
		m.announceOffer(ctx, rec)
	case !isOver(err):
		m.opts.Logger.WarnContext(ctx, "tasks: a task was not handed back; its lease will expire", "task", redact.Session(id), "error", err)
	}
}

// fail ends a task with the error of its handler, or as cancelled if the client has
// cancelled it.
func (r *record) fail(cause, err error) {
	_, cancelled := errors.AsType[*mcp.CancelError](cause)
	switch {
	case cancelled || r.Cancelled:
		r.setStatus(Cancelled, "")
		return
	case errors.Is(cause, errExpired):
		err = errExpired
	}
	r.Error = core.ModernError(err)
	r.setStatus(Failed, r.Error.Message)
}
