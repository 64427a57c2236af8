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
	"time"
)

// A sighting is the last observed state of a task that another process runs. A lease
// expires if nothing has changed for its duration, by the clock of the observing process.
type sighting struct {
	epoch, beat uint64
	missing     bool  // the task does not need to run
	round       int64 // the round in the list
	since       time.Time
}

// sweepUntilShutdown takes over tasks that have no owner or whose owner is gone.
func (m *Manager) sweepUntilShutdown() {
	for {
		jitter := time.Duration(rand.Int64N(int64(m.opts.Lease/4) + 1)) //nolint:gosec // jitter is no secret
		timer := time.NewTimer(m.opts.Lease/4 + jitter)
		select {
		case <-m.ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		m.removeAbandoned(m.ctx)
		m.sweep(m.ctx)
	}
}

// A found task is one that a sweep could run, with its creation time.
type found struct {
	candidate

	created time.Time
}

// sweep examines the listed tasks that are neither running nor queued in this process, and
// queues those that it could run.
func (m *Manager) sweep(ctx context.Context) {
	begun, seen, listed := time.Now(), map[string]sighting{}, map[string]struct{}{}
	var all []found
	var failed error
	for shard := range workingShards {
		tasks, err := m.listed(ctx, shard)
		failed = cmp.Or(failed, err)
		for raw, round := range tasks.all() {
			id := string(raw)
			listed[id] = struct{}{}
			if f, ok := m.examine(ctx, shard, id, round, seen); ok {
				all = append(all, f)
			}
		}
	}
	if failed != nil && ctx.Err() == nil {
		m.opts.Logger.WarnContext(ctx, "tasks: the list of working tasks cannot be read completely", "error", failed)
		maps.Copy(m.seen, seen) // tasks not seen now may still be listed
	} else {
		m.seen = seen
		m.forgetQueued(listed, begun)
	}
	slices.SortFunc(all, func(a, b found) int { return a.created.Compare(b.created) })
	for _, f := range all {
		m.schedule(f.candidate)
	}
}

// forgetQueued removes the tasks from the queue that were queued before at but are not
// listed: they are running or have ended.
func (m *Manager) forgetQueued(listed map[string]struct{}, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue.retain(func(c candidate) bool {
		_, ok := listed[c.id]
		return ok || !c.queued.Before(at)
	})
}

// examine examines a task that is listed in a shard and reports whether this process could
// run it.
func (m *Manager) examine(ctx context.Context, shard int, id string, round int64, seen map[string]sighting) (f found, ok bool) {
	before, known := m.seen[id]
	if m.knows(id) {
		return f, false
	}
	rec, _, err := m.load(ctx, id)
	now := sighting{round: round, since: time.Now()}
	switch {
	case errors.Is(err, errGone), err == nil && rec.Task.Status != Working:
		now.missing = true
	case err != nil:
		if known {
			seen[id] = before
		}
		return f, false
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
		_ = m.unlistFrom(ctx, shard, id, uint64(round)) // if it fails, the next sweep tries again
		return f, false
	case now.missing, rec.Owner != "" && !unchanged:
		return f, false
	}
	return found{candidate{id, callerOf(rec.Caller), now, time.Now()}, rec.Task.CreatedAt}, true
}

// knows reports whether a task is running or queued in this process.
func (m *Manager) knows(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, queued := m.queue.ids[id]
	return queued || m.running[id] != nil
}
