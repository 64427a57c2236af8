// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/pause"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// reserve takes a slot for a run, if one is free.
func (m *Manager) reserve() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.slots >= m.opts.MaxRunning {
		m.queued = true
		return false
	}
	m.slots++
	m.done.Add(1)
	return true
}

// unreserve gives a slot back, and has a task that waits take it.
func (m *Manager) unreserve() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slots--
	if m.queued {
		m.queued = false
		wake(m.freed)
	}
	m.done.Done()
}

// launch runs fn, which runs the handler of a task and stores its outcome.
func (m *Manager) launch(r *run, fn func()) {
	id := r.record.Task.ID
	m.mu.Lock()
	m.running[id] = r
	m.mu.Unlock()
	stop := context.AfterFunc(m.ctx, func() { r.cancel(errShutdown) })
	expiry := time.AfterFunc(r.record.rest(), func() { r.cancel(errExpired) })
	returned := make(chan struct{})
	m.done.Go(func() { r.renew(returned) })
	go func() {
		defer func() {
			stop()
			expiry.Stop()
			close(returned)
			r.cancel(nil)
			m.mu.Lock()
			if m.running[id] == r {
				delete(m.running, id)
			}
			m.mu.Unlock()
			m.unreserve()
		}()
		fn()
	}()
}

// Errors of acquire: the task needs no run of this process.
var (
	errTaken    = errors.New("tasks: another process runs the task")
	errNotToRun = errors.New("tasks: the task is not one to run")
)

// start runs a task again, if this process has a free slot and gets the lease. The sighting
// is that of the owner that has gone; zero means that the task has no owner.
func (m *Manager) start(ctx context.Context, id string, gone sighting) (started bool) {
	if !m.reserve() {
		return false
	}
	rec, err := m.acquire(ctx, id, gone)
	if err != nil {
		m.unreserve()
		return false
	}
	r := m.newRun(rec, true)
	runCtx := r.contextFor(context.Background())
	m.launch(r, func() {
		var req *mcp.Request
		err := r.persist(runCtx, func() (err error) {
			req, err = m.restore(runCtx, rec)
			return err
		})
		if err != nil {
			r.finish(nil, err)
			return
		}
		r.finish(core.Serve(core.ContextWithRequest(runCtx, req), m.handler, req, nil, m.opts.Logger))
	})
	return true
}

// offer has a process run a task that has no owner: this one if it has a free slot.
func (m *Manager) offer(ctx context.Context, id string) {
	if !m.start(ctx, id, sighting{}) {
		_ = m.store.Publish(ctx, m.topic(), []byte(offered+id)) // a hint
	}
}

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
			rec.fail(nil, mcp.Errorf(mcp.CodeInternalError, "the task was begun %d times, and each time the process that ran it ended", rec.Attempts))
			return nil
		}
		rec.Owner = m.owner
		rec.Epoch++
		rec.Attempts++
		return nil
	})
	if err == nil && exhausted {
		m.announce(ctx, id)
		m.opts.Logger.ErrorContext(ctx, "tasks: a task is not run again", "task", id, "status", rec.Task.Status, "error", rec.Task.StatusMessage)
		return nil, errors.Join(errNotToRun, m.unlist(ctx, id, rec.Round))
	}
	return rec, err
}

// A sighting is what was last seen of a task that another process runs. A lease ends when
// nothing has changed for its time, by the clock of the process that watches.
type sighting struct {
	epoch, beat uint64
	missing     bool   // the task needs no run
	round       uint64 // that was listed
	since       time.Time
}

// sweepUntilShutdown takes over tasks that have no owner, or whose owner has gone.
func (m *Manager) sweepUntilShutdown() {
	for {
		jitter := time.Duration(rand.Int64N(int64(m.opts.Lease/4) + 1)) //nolint:gosec // jitter is no secret
		timer := time.NewTimer(m.opts.Lease/4 + jitter)
		select {
		case <-m.ctx.Done():
			timer.Stop()
			return
		case <-m.freed:
			timer.Stop()
		case <-timer.C:
		}
		m.sweep(m.ctx)
	}
}

// A candidate is a task that this process could run.
type candidate struct {
	id     string
	gone   sighting
	caller string
	since  time.Time
}

func (m *Manager) sweep(ctx context.Context) {
	seen := map[string]sighting{}
	var candidates []candidate
	var failed error
	for shard := range shards {
		tasks, err := m.listed(ctx, shard)
		failed = cmp.Or(failed, err)
		for id, round := range tasks {
			if c, ok := m.look(ctx, id, round, seen); ok {
				candidates = append(candidates, c)
			}
		}
	}
	if failed != nil && ctx.Err() == nil {
		m.opts.Logger.WarnContext(ctx, "tasks: the list of working tasks cannot be read completely", "error", failed)
		maps.Copy(m.seen, seen) // what was not seen now may be there
	} else {
		m.seen = seen
	}
	for _, c := range m.fairly(candidates) {
		m.start(ctx, c.id, c.gone)
	}
}

// look looks at a listed task, and reports whether this process could run it.
func (m *Manager) look(ctx context.Context, id string, round uint64, seen map[string]sighting) (c candidate, ok bool) {
	if m.runs(id) {
		return c, false
	}
	rec, _, err := m.load(ctx, id)
	before, known := m.seen[id]
	now := sighting{round: round, since: time.Now()}
	switch {
	case errors.Is(err, errGone), err == nil && rec.Task.Status != Working:
		now.missing = true
	case err != nil:
		if known {
			seen[id] = before
		}
		return c, false
	default:
		now.epoch, now.beat = rec.Epoch, rec.Beat
	}
	if known && before.epoch == now.epoch && before.beat == now.beat && before.missing == now.missing && before.round == now.round {
		now.since = before.since
	}
	seen[id] = now
	unchanged := time.Since(now.since) > m.opts.Lease
	switch {
	case now.missing && unchanged:
		_ = m.unlist(ctx, id, round) // otherwise it is done next time
		return c, false
	case now.missing, rec.Owner != "" && !unchanged:
		return c, false
	}
	return candidate{id, now, callerOf(rec.Caller), rec.Task.CreatedAt}, true
}

func callerOf(p *mcp.Principal) string {
	if p == nil {
		return ""
	}
	return p.Issuer + " " + p.Subject
}

// fairly orders candidates: in turn those of each caller, the oldest first, beginning with
// the callers of whom this process runs the fewest.
func (m *Manager) fairly(candidates []candidate) []candidate {
	turns := map[string]int{}
	m.mu.Lock()
	for _, r := range m.running {
		turns[callerOf(r.record.Caller)]++
	}
	m.mu.Unlock()
	slices.SortFunc(candidates, func(a, b candidate) int { return a.since.Compare(b.since) })
	order := make(map[string]int, len(candidates))
	for _, c := range candidates {
		order[c.id] = turns[c.caller]
		turns[c.caller]++
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return order[a.id] - order[b.id] })
	return candidates
}

// runs reports whether this process runs a task.
func (m *Manager) runs(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.running[id] != nil
}

// topic is where processes tell each other which tasks have changed. The messages are
// hints: who misses one polls.
func (m *Manager) topic() string { return "tasks/" + m.name }

// offered is before the ID of a task that has no owner, in a hint to run it.
const offered = "+"

// announce tells all processes that a task has changed.
func (m *Manager) announce(ctx context.Context, id string) {
	m.hint(id)
	_ = m.store.Publish(ctx, m.topic(), []byte(id)) // a hint
}

// hint wakes the run of a task, and those that watch it.
func (m *Manager) hint(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.running[id]; r != nil {
		wake(r.poked)
	}
	for w := range m.watchers[id] {
		w.add(id)
	}
}

func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// receiveHints receives the hints of other processes until Shutdown.
func (m *Manager) receiveHints() {
	for pause.For(m.ctx, 0) == nil {
		sub, err := m.store.Subscribe(m.ctx, m.topic())
		if err != nil {
			_ = pause.For(m.ctx, m.opts.PollInterval) // until it ends, tasks are polled
			continue
		}
		stop := context.AfterFunc(m.ctx, func() { _ = sub.Close() })
		for {
			message, err := sub.Next(m.ctx)
			if err == nil {
				m.receiveHint(string(message))
			} else if !errors.Is(err, store.ErrOverflow) {
				break
			}
		}
		stop()
		_ = sub.Close()
		_ = pause.For(m.ctx, m.opts.PollInterval)
	}
}

func (m *Manager) receiveHint(message string) {
	if id, ok := strings.CutPrefix(message, offered); ok {
		m.start(m.ctx, id, sighting{})
	} else {
		m.hint(message)
	}
}
