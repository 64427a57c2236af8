// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"math"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// addToIndex counts a new task, whose request has a size, for its caller. It fails if the
// caller has too many unexpired tasks, or if they are too large. Unauthenticated callers
// cannot be told apart and are counted together.
func (m *Manager) addToIndex(ctx context.Context, rec *record, size int) error {
	if err := m.checkRoom(ctx, rec.Caller, size); err != nil {
		return err
	}
	id, now, expires := rec.Task.ID, time.Now().Unix(), rec.expires()
	add := func(limit int, x index) (index, error) {
		x = x.since(now)
		if x.count() >= limit { // some may have had a shorter TTL than those before them
			x = x.unexpired()
		}
		if x.count() >= limit {
			return nil, errElsewhere
		}
		return x.add(id, expires, 0), nil
	}
	err := m.changeCaller(ctx, rec.Caller, id, add)
	switch {
	case !errors.Is(err, errElsewhere):
		return err
	case rec.Caller == nil:
		return mcp.NewRateLimitedError(m.opts.PollInterval, "callers that are not authenticated have too many tasks; they are kept until their TTL has passed")
	}
	return mcp.NewRateLimitedError(m.opts.PollInterval, "the caller has %d tasks, which is the limit; they are kept until their TTL has passed", m.opts.MaxPerCaller)
}

// removeFromIndex removes a task that was counted but could not be stored.
func (m *Manager) removeFromIndex(ctx context.Context, caller *mcp.Principal, id string) error {
	remove := func(x index) (index, error) {
		if _, ok := x.find(id); !ok {
			return nil, errElsewhere
		}
		return x.without(id), nil
	}
	err := m.changeCaller(ctx, caller, id, func(_ int, x index) (index, error) { return remove(x) })
	bytesErr := updateIndex(ctx, m.store, m.bytesKey(caller), m.indexTTL(), remove)
	return cmp.Or(except(err, errElsewhere), except(bytesErr, errElsewhere))
}

// changeCaller changes the index of a caller, which has the expiry times of its tasks in
// Unix seconds. limit is the maximum number of tasks. If change returns errElsewhere, it is
// called with another index that may have the task, or changeCaller returns that error.
func (m *Manager) changeCaller(ctx context.Context, caller *mcp.Principal, id string, change func(limit int, x index) (index, error)) error {
	if caller == nil {
		all := m.anonymous()
		return all.change(ctx, m.store, id, m.indexTTL(), func(shard int, x index) (index, error) { return change(all.share(shard), x) })
	}
	return updateIndex(ctx, m.store, m.key("caller", callerOf(caller)), m.indexTTL(), func(x index) (index, error) {
		return change(m.opts.MaxPerCaller, x)
	})
}

// indexTTL returns how long an index of tasks is kept after its last change: longer than
// any task.
func (m *Manager) indexTTL() time.Duration {
	if ttl := m.longestTTL() + time.Hour; ttl > 0 {
		return ttl
	}
	return math.MaxInt64
}

// smallTask is the size of a task, in bytes, up to which it is not counted in Options.MaxBytes.
// Most tasks are smaller and are written to one index only. The number of tasks bounds them.
// What the Manager itself keeps about a task is not counted: the renewal of a lease must
// never fail because a share is used up.
const smallTask = 2 << 10

// bytesKey returns the key of the index of the large tasks of a caller, with their sizes.
func (m *Manager) bytesKey(caller *mcp.Principal) string {
	return m.key("bytes", cmp.Or(callerOf(caller), "/"))
}

// checkRoom returns an error if the tasks of a caller leave no room for a new one, so that
// it is refused before it has done its work. A sixteenth of Options.MaxBytes is left for
// results.
func (m *Manager) checkRoom(ctx context.Context, caller *mcp.Principal, size int) error {
	x, _, err := m.store.Get(ctx, m.bytesKey(caller))
	if errors.Is(err, store.ErrNotFound) {
		x, err = nil, nil
	}
	if err != nil {
		return err
	}
	if size <= smallTask {
		size = 0
	}
	_, kept := index(x).unexpired().sizes("")
	switch {
	case size > m.opts.MaxBytes:
		return tooLarge("the request has %d bytes; the tasks of a caller may have %d", size, m.opts.MaxBytes)
	case kept > int64(m.opts.MaxBytes-max(size, m.opts.MaxBytes/16)):
		return mcp.NewRateLimitedError(m.opts.PollInterval, "the tasks of the caller have %d bytes; the limit is %d, and they are kept until their TTL has passed", kept, m.opts.MaxBytes)
	}
	return nil
}

// count counts the size of a task for its caller, before the task is written. It fails if the
// tasks of the caller become too large.
func (m *Manager) count(ctx context.Context, rec *record) error {
	id, size := rec.Task.ID, rec.size()
	if size <= max(rec.Counted, smallTask) {
		return nil
	}
	var counted int64
	err := updateIndex(ctx, m.store, m.bytesKey(rec.Caller), m.indexTTL(), func(x index) (index, error) {
		x = x.unexpired()
		own, others := x.sizes(id)
		room := int64(m.opts.MaxBytes) - others
		switch {
		case own >= int64(size):
			counted = own
			return nil, errUnchanged
		case room < int64(size):
			return nil, tooLarge("the task has %d bytes, and other tasks of the caller have %d; the limit is %d, and tasks are kept until their TTL has passed", size, others, m.opts.MaxBytes)
		}
		counted = min(int64(size+min(size/4, maxInline)), room) // a record grows in many steps
		return x.without(id).add(id, rec.expires(), counted), nil
	})
	if err == nil {
		rec.Counted = int(counted)
	}
	return err
}

// tooLarge returns an error for the client that is also a [store.ErrTooLarge].
func tooLarge(format string, args ...any) error {
	err := mcp.Errorf(mcp.CodeTooLarge, format, args...)
	err.Cause = store.ErrTooLarge
	return err
}

// callerOf returns a name of a caller for store keys and for turns in the queue, or "" for
// unauthenticated callers.
func callerOf(p *mcp.Principal) string {
	if p == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(p.Key()))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
