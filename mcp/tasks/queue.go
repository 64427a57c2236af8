// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/mcp"
)

// A candidate is a task that this process could run.
type candidate struct {
	id     string
	caller string
	gone   sighting  // the last sighting of an owner that is gone; zero if the task has no owner
	queued time.Time // when it was queued
}

// A queue holds the tasks that wait for a slot of this process. Callers take turns, so that
// a caller with many tasks does not delay others. The tasks of one caller are in order of
// arrival. Adding and removing take constant time. Preferring callers with the fewest tasks
// was rejected: it needs a search, and turns are fair in the long run.
type queue struct {
	waiting map[string][]candidate // by caller; no slice is empty
	turns   []string               // the waiting callers, next first
	ids     map[string]struct{}
}

// add adds a task, unless it is already queued.
func (q *queue) add(c candidate) {
	if _, ok := q.ids[c.id]; ok {
		return
	}
	if q.ids == nil {
		q.ids, q.waiting = map[string]struct{}{}, map[string][]candidate{}
	}
	q.ids[c.id] = struct{}{}
	if len(q.waiting[c.caller]) == 0 {
		q.turns = append(q.turns, c.caller)
	}
	q.waiting[c.caller] = append(q.waiting[c.caller], c)
}

// next removes and returns the task whose turn it is, passing over callers for whom mayRun
// returns false.
func (q *queue) next(mayRun func(caller string) bool) (c candidate, ok bool) {
	turn := slices.IndexFunc(q.turns, mayRun)
	if turn < 0 {
		return candidate{}, false
	}
	caller := q.turns[turn]
	copy(q.turns[1:], q.turns[:turn]) // few: most have no slot, and those may run
	q.turns = q.turns[1:]
	c = q.waiting[caller][0]
	delete(q.ids, c.id)
	if rest := q.waiting[caller][1:]; len(rest) > 0 {
		q.waiting[caller] = rest
		q.turns = append(q.turns, caller)
	} else {
		delete(q.waiting, caller)
	}
	return c, true
}

// retain removes the tasks for which fn returns false.
func (q *queue) retain(fn func(candidate) bool) {
	old := *q
	*q = queue{}
	for _, caller := range old.turns {
		for _, c := range old.waiting[caller] {
			if fn(c) {
				q.add(c)
			}
		}
	}
}

// mayRunLocked reports whether a caller may have another slot. A task cannot be interrupted,
// so slots are held back for callers who have none: a caller can have three times as many as
// are free. It needs no configuration, and lets a process with few slots use all of them. A
// single caller uses 48 of 64.
func (m *Manager) mayRunLocked(caller string) bool {
	return !m.closed && m.slotsOf[caller] < 3*(m.opts.MaxRunning-m.slots)
}

func (m *Manager) takeSlotLocked(caller string) {
	m.slots++
	m.slotsOf[caller]++
	m.done.Add(1)
}

// reserve takes a slot for the run of a new task and reports whether the caller could have
// one. While tasks of the caller are queued, it cannot.
func (m *Manager) reserve(caller string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.mayRunLocked(caller) || len(m.queue.waiting[caller]) > 0 {
		return false
	}
	m.takeSlotLocked(caller)
	return true
}

// release passes the slot of a caller on to the next queued task, or frees it.
func (m *Manager) release(caller string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slots--
	if m.slotsOf[caller]--; m.slotsOf[caller] == 0 {
		delete(m.slotsOf, caller)
	}
	m.dispatchLocked()
	m.done.Done()
}

// schedule queues tasks and runs them in turn, immediately if slots are free. It reports
// whether no task has to wait.
func (m *Manager) schedule(candidates ...candidate) (idle bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	for _, c := range candidates {
		m.queue.add(c) // even if it runs here: that run may be about to end
	}
	m.dispatchLocked()
	return len(m.queue.turns) == 0
}

// dispatchLocked assigns the free slots to queued tasks.
func (m *Manager) dispatchLocked() {
	for m.slots < m.opts.MaxRunning {
		c, ok := m.queue.next(m.mayRunLocked)
		if !ok {
			return
		}
		m.takeSlotLocked(c.caller)
		go m.resume(c)
	}
}

// launch runs serve, which calls the handler of a task, on a new goroutine and stores the
// outcome. The run has a slot, which it releases at the end.
func (m *Manager) launch(r *run, serve func() (mcp.Result, error)) {
	go func() {
		o := outcome{err: errExited}
		defer func() { // even if the handler calls runtime.Goexit
			if !r.handOver(o) {
				r.end(o)
			}
		}()
		o.res, o.err = serve()
	}()
}

// handOver passes the outcome to awaitTask and reports whether awaitTask was still waiting.
func (r *run) handOver(o outcome) bool {
	if r.decided == nil {
		return false
	}
	select {
	case r.outcomes <- o:
		return true
	case <-r.decided:
		return false
	}
}

// end stores the outcome of a run and releases its slot.
func (r *run) end(o outcome) {
	r.finish(o.res, o.err)
	r.detach()
	r.manager.release(r.slot)
}

// An outcome is what a handler returned.
type outcome struct {
	res mcp.Result
	err error
}

// errExited is the error of a handler that ended its goroutine.
var errExited = errors.New("tasks: the handler called runtime.Goexit")

// resume runs a task again if this process obtains the lease. The caller has taken a slot
// for it.
func (m *Manager) resume(c candidate) {
	rec, err := m.acquire(context.WithoutCancel(m.ctx), c.id, c.gone)
	if err != nil {
		m.release(c.caller)
		return
	}
	r := m.newRun(rec)
	r.slot = c.caller
	r.created = rec.Task
	ctx := r.contextFor(context.Background())
	r.startRenewal()
	m.launch(r, func() (mcp.Result, error) {
		var req *mcp.Request
		err := r.persist(ctx, func() (err error) {
			req, err = m.restore(ctx, rec)
			return err
		})
		if err != nil {
			return nil, err
		}
		res, err := core.Serve(context.WithValue(core.ContextWithRequest(ctx, req), runKey{}, r), m.handler, req, nil, m.opts.Logger)
		r.mu.Lock()
		continueHandler := r.continueHandler
		r.mu.Unlock()
		if continueHandler != nil {
			return continueHandler()
		}
		return res, err
	})
}

// offer makes a task that has no owner run: in this process if a slot is free, otherwise in
// any process.
func (m *Manager) offer(ctx context.Context, rec *record) {
	if !m.schedule(candidate{id: rec.Task.ID, caller: callerOf(rec.Caller), queued: time.Now()}) {
		m.announceOffer(ctx, rec)
	}
}

// Errors of acquire: this process must not run the task.
var (
	errTaken    = errors.New("tasks: another process runs the task")
	errNotToRun = errors.New("tasks: the task is not one to run")
)

// acquire makes this process the owner of a task.
func (m *Manager) acquire(ctx context.Context, id string, gone sighting) (*record, error) {
	exhausted := false
	rec, err := m.change(ctx, id, func(rec *record) error {
		exhausted = false
		switch {
		case rec.Task.Status != Working:
			return errNotToRun
		case rec.Owner != "" && (gone.epoch != rec.Epoch || gone.beat != rec.Beat):
			return errTaken
		case rec.Cancelled:
			exhausted = true
			rec.Owner = ""
			rec.setStatus(Cancelled, "")
			return nil
		case rec.Attempts >= m.opts.MaxAttempts:
			exhausted = true
			rec.Owner = ""
			rec.fail(nil, mcp.Errorf(mcp.CodeInternalError, "the task was started %d times; its process exited each time", rec.Attempts))
			return nil
		}
		rec.Owner = m.owner
		rec.Epoch++
		rec.Attempts++
		return nil
	})
	if err == nil && exhausted {
		m.announce(ctx, id)
		m.opts.Logger.ErrorContext(ctx, "tasks: a task is not run again", "task", redact.Session(id), "status", rec.Task.Status, "error", rec.Task.StatusMessage)
		return nil, errors.Join(errNotToRun, m.unlist(ctx, id, rec.Round))
	}
	return rec, err
}
