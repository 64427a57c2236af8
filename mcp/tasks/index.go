// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"strconv"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// A store cannot be searched, so it holds a list of the working tasks of all processes: the
// tasks that a process must run. The list is sharded by a hash of the IDs, so that
// processes seldom change the same shard concurrently. A task is listed before its record
// says that it is working, and unlisted after the record says otherwise.

// An index is a value of the store that lists tasks, each with a number. It has one line
// for each task: the ID, a space, and the number. Malformed lines are skipped. Lines are
// found and changed in place, because an index is changed more often than it is read.
type index []byte

// all returns the entries. The IDs alias the index.
func (x index) all() iter.Seq2[[]byte, int64] {
	return func(yield func([]byte, int64) bool) {
		for line := range bytes.Lines(x) {
			id, number, ok := entryOf(line)
			if ok && !yield(id, number) {
				return
			}
		}
	}
}

func entryOf(line []byte) (id []byte, number int64, ok bool) {
	if len(line) <= idLength+2 || line[idLength] != ' ' || line[len(line)-1] != '\n' {
		return nil, 0, false
	}
	for _, digit := range line[idLength+1 : len(line)-1] {
		if digit < '0' || digit > '9' || number > 1<<58 {
			return nil, 0, false
		}
		number = 10*number + int64(digit-'0')
	}
	return line[:idLength], number, true
}

// find returns the number of a task.
func (x index) find(id string) (number int64, ok bool) {
	for other, n := range x.all() {
		if string(other) == id {
			return n, true
		}
	}
	return 0, false
}

// count returns the number of lines.
func (x index) count() int { return bytes.Count(x, []byte{'\n'}) }

// add returns the index with an entry for a task, which must not have one yet.
func (x index) add(id string, number int64) index {
	x = append(append(x, id...), ' ')
	return append(strconv.AppendInt(x, number, 10), '\n')
}

// since returns the index starting with its first entry whose number is at least number.
func (x index) since(number int64) index {
	at := 0
	for line := range bytes.Lines(x) {
		if _, n, ok := entryOf(line); ok && n >= number {
			break
		}
		at += len(line)
	}
	return x[at:]
}

// without returns the index without the entry of a task. It overwrites x.
func (x index) without(id string) index {
	return x.keep(func(other []byte, _ int64) bool { return string(other) != id })
}

// keep returns the entries for which fn returns true. It overwrites x.
func (x index) keep(fn func(id []byte, number int64) bool) index {
	kept := x[:0]
	for line := range bytes.Lines(x) {
		if id, number, ok := entryOf(line); ok && fn(id, number) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// updateIndex changes an index in the store; a missing index is empty. If change returns
// errUnchanged, the index is not written.
func updateIndex(ctx context.Context, s store.Values, key string, ttl time.Duration, change func(index) (index, error)) error {
	err := store.Update(ctx, s, key, ttl, func(old []byte) ([]byte, error) { return change(old) })
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// The number of shards of the list, and of the tasks of unauthenticated callers.
const (
	shards          = 32
	anonymousShards = 256
)

func shardOf(id string, shards uint32) string {
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(id))%shards), 10)
}

// list adds a working task to the list, with its round. A round ends when the task waits
// for answers or has ended. list fails if the task has no owner and too many tasks are
// working. Entries do not expire, because clocks can be wrong; the sweeper removes stale
// entries.
func (m *Manager) list(ctx context.Context, rec *record) error {
	id := rec.Task.ID
	return updateIndex(ctx, m.store, m.key("working", shardOf(id, shards)), 0, func(x index) (index, error) {
		if rec.Owner == "" && x.count() >= max(m.opts.MaxWorking/shards, 1) {
			return nil, mcp.NewRateLimitedError(m.opts.PollInterval, "too many tasks are working; try again later")
		}
		return x.without(id).add(id, int64(rec.Round)), nil
	})
}

// unlist removes a task from the list when its round has ended. A later round stays listed,
// because the client may have answered in the meantime.
func (m *Manager) unlist(ctx context.Context, id string, round uint64) error {
	return updateIndex(ctx, m.store, m.key("working", shardOf(id, shards)), 0, func(x index) (index, error) {
		if listed, ok := x.find(id); !ok || uint64(listed) > round {
			return nil, errUnchanged
		}
		return x.without(id), nil
	})
}

// listed returns the working tasks of one shard.
func (m *Manager) listed(ctx context.Context, shard int) (index, error) {
	x, _, err := m.store.Get(ctx, m.key("working", strconv.Itoa(shard)))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return x, err
}

// addToIndex counts a new task for its caller. It fails if the caller has too many unexpired
// tasks. Unauthenticated callers cannot be told apart and are counted together.
func (m *Manager) addToIndex(ctx context.Context, caller *mcp.Principal, id string, ttl time.Duration) error {
	limit, now := m.maxTasks(caller), time.Now()
	return m.updateCaller(ctx, caller, id, func(x index) (index, error) {
		x = x.since(now.Unix())
		if x.count() >= limit { // some may have had a shorter TTL than those before them
			x = x.keep(func(_ []byte, expires int64) bool { return expires >= now.Unix() })
		}
		switch n := x.count(); {
		case n < limit:
			return x.add(id, now.Add(ttl).Unix()), nil
		case caller == nil:
			return nil, mcp.NewRateLimitedError(m.opts.PollInterval, "callers that are not authenticated have too many tasks; they are kept until their TTL has passed")
		default:
			return nil, mcp.NewRateLimitedError(m.opts.PollInterval, "the caller has %d tasks, which is the limit; they are kept until their TTL has passed", n)
		}
	})
}

// maxTasks returns the maximum number of tasks in the index of a caller.
func (m *Manager) maxTasks(caller *mcp.Principal) int {
	if caller == nil {
		return max(m.opts.MaxAnonymous/anonymousShards, 1)
	}
	return m.opts.MaxPerCaller
}

// removeFromIndex removes a task that was counted but could not be stored.
func (m *Manager) removeFromIndex(ctx context.Context, caller *mcp.Principal, id string) error {
	return m.updateCaller(ctx, caller, id, func(x index) (index, error) { return x.without(id), nil })
}

// updateCaller changes the index of a caller, which has the expiry times of its tasks in
// Unix seconds.
func (m *Manager) updateCaller(ctx context.Context, caller *mcp.Principal, id string, change func(index) (index, error)) error {
	key := m.key("caller", "/"+shardOf(id, anonymousShards))
	if caller != nil {
		key = m.key("caller", callerOf(caller))
	}
	return updateIndex(ctx, m.store, key, m.longestTTL()+time.Hour, change)
}

// callerOf returns a name of a caller for store keys and for turns in the queue, or "" for
// unauthenticated callers.
func callerOf(p *mcp.Principal) string {
	if p == nil {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(p.Issuer), p.Issuer, p.Subject))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
