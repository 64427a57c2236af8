// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"iter"
	"math"
	"strconv"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// A store cannot be searched, so it holds a list of the working tasks of all processes: the
// tasks that a process must run. A task is listed before its record says that it is working,
// and unlisted after the record says otherwise. Other lists bound what is kept for a caller:
// its tasks, and those among them that are large, with their sizes.

// An index is a value of the store that lists tasks, each with a number and perhaps a size.
// It has one line for each task: the ID, a space, the number, and for a size another space
// and the size in bytes. Malformed lines are skipped. Lines are found and changed in place,
// because an index is changed more often than it is read.
type index []byte

// all returns the entries. The IDs alias the index.
func (x index) all() iter.Seq2[[]byte, int64] {
	return func(yield func([]byte, int64) bool) {
		for line := range bytes.Lines(x) {
			id, number, _, ok := entryOf(line)
			if ok && !yield(id, number) {
				return
			}
		}
	}
}

func entryOf(line []byte) (id []byte, number, size int64, ok bool) {
	if len(line) <= idLength+2 || line[idLength] != ' ' || line[len(line)-1] != '\n' {
		return nil, 0, 0, false
	}
	first, second, hasSize := bytes.Cut(line[idLength+1:len(line)-1], []byte{' '})
	number, ok = numberOf(first)
	if ok && hasSize {
		size, ok = numberOf(second)
	}
	return line[:idLength], number, size, ok
}

func numberOf(digits []byte) (n int64, ok bool) {
	for _, digit := range digits {
		if digit < '0' || digit > '9' || n > 1<<58 {
			return 0, false
		}
		n = 10*n + int64(digit-'0')
	}
	return n, len(digits) > 0
}

// sizes returns the size of a task, and of all other tasks together.
func (x index) sizes(id string) (own, others int64) {
	for line := range bytes.Lines(x) {
		switch other, _, size, ok := entryOf(line); {
		case !ok:
		case string(other) == id:
			own = size
		default:
			others += size
		}
	}
	return own, others
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

// add returns the index with an entry for a task, which must not have one yet. A size of 0
// is left out.
func (x index) add(id string, number, size int64) index {
	x = append(append(x, id...), ' ')
	x = strconv.AppendInt(x, number, 10)
	if size > 0 {
		x = strconv.AppendInt(append(x, ' '), size, 10)
	}
	return append(x, '\n')
}

// since returns the index starting with its first entry whose number is at least number.
func (x index) since(number int64) index {
	at := 0
	for line := range bytes.Lines(x) {
		if _, n, _, ok := entryOf(line); ok && n >= number {
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
		if id, number, _, ok := entryOf(line); ok && fn(id, number) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// unexpired returns the entries whose number is not in the past. It overwrites x.
func (x index) unexpired() index {
	now := time.Now().Unix()
	return x.keep(func(_ []byte, expires int64) bool { return expires >= now })
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

// A list that many processes change is spread over shards by a hash of the IDs, so that
// processes seldom change the same shard concurrently. Each shard has a share of the limit of
// the list. What is too much for a shard is in one of the next shards, because the hashes are
// not even. Choosing another ID instead was rejected: the list is written after the ID is in
// the index of the caller.
type shards struct {
	key   func(shard int) string // in the store
	n     int
	limit int
}

const (
	// The maximum number of shards of the list of working tasks, and of the tasks of
	// unauthenticated callers.
	workingShards   = 32
	anonymousShards = 256
	// minShare is the minimum share of a shard. With smaller shares, a list would refuse
	// entries long before it has reached its limit.
	minShare = 128
	// maxPlaces is the number of shards that can have the entry of a task.
	maxPlaces = 8
)

// shardsFor returns how a list with a limit is spread.
func shardsFor(limit, most int, key func(int) string) shards {
	return shards{key, min(max(limit/minShare, 1), most), limit}
}

// places returns the shards that can have the entry of a task, in the order in which they
// are searched.
func (s shards) places(id string) iter.Seq[int] {
	return func(yield func(int) bool) {
		first := int(crc32.ChecksumIEEE([]byte(id)) % uint32(s.n))
		for i := range min(s.n, maxPlaces) {
			if !yield((first + i) % s.n) {
				return
			}
		}
	}
}

// share returns the share of a shard in the limit. The shares add up to the limit.
func (s shards) share(shard int) int {
	share := s.limit / s.n
	if shard < s.limit%s.n {
		share++
	}
	return share
}

// errElsewhere means that an entry is in another shard or does not fit into this one.
var errElsewhere = errors.New("tasks: not in this shard")

// change calls change with the shards that can have the entry of a task, until it does not
// return errElsewhere.
func (s shards) change(ctx context.Context, st store.Values, id string, ttl time.Duration, change func(shard int, x index) (index, error)) error {
	err := errElsewhere
	for shard := range s.places(id) {
		err = updateIndex(ctx, st, s.key(shard), ttl, func(x index) (index, error) { return change(shard, x) })
		if !errors.Is(err, errElsewhere) {
			break
		}
	}
	return err
}

func (m *Manager) working() shards {
	return shardsFor(m.maxWorking, workingShards, func(shard int) string { return m.key("working", strconv.Itoa(shard)) })
}

// anonymousFor returns the maximum number of tasks kept for all unauthenticated callers, given
// that for an authenticated one: they are many, and cannot be told apart.
func anonymousFor(maxPerCaller int) int { return 10 * min(maxPerCaller, math.MaxInt/10) }

func (m *Manager) anonymous() shards {
	return shardsFor(anonymousFor(m.opts.MaxPerCaller), anonymousShards, func(shard int) string { return m.key("caller", "/"+strconv.Itoa(shard)) })
}

// list adds a working task to the list, with its round. A round ends when the task waits
// for answers or has ended. list fails if the task is new, has no owner, and too many tasks
// are working. Entries do not expire, because clocks can be wrong; the sweeper removes stale
// entries. The store has no search. A task is listed before its record says that it works,
// and unlisted after, so an entry can be superfluous but is never missing. The process that
// asked must not unlist the next round, hence the round.
func (m *Manager) list(ctx context.Context, rec *record) error {
	id, working := rec.Task.ID, m.working()
	resumes := rec.Round > 0
	err := working.change(ctx, m.store, id, 0, func(shard int, x index) (index, error) {
		_, listed := x.find(id)
		if !listed && (resumes || rec.Owner == "" && x.count() >= working.share(shard)) {
			return nil, errElsewhere
		}
		return x.without(id).add(id, int64(rec.Round), 0), nil
	})
	switch {
	case !errors.Is(err, errElsewhere):
		return err
	case !resumes:
		return mcp.NewRateLimitedError(m.opts.PollInterval, "too many tasks are working; try again later")
	}
	return working.change(ctx, m.store, id, 0, func(_ int, x index) (index, error) { // whatever the limit
		return x.without(id).add(id, int64(rec.Round), 0), nil
	})
}

// unlist removes a task from the list when its round has ended. A later round stays listed,
// because the client may have answered in the meantime.
func (m *Manager) unlist(ctx context.Context, id string, round uint64) error {
	return except(m.working().change(ctx, m.store, id, 0, func(_ int, x index) (index, error) {
		return x.unlisted(id, round)
	}), errElsewhere)
}

// unlistFrom is unlist for a task that was found in a shard: by its hash, it may belong to
// another one, if a replica has or had other options.
func (m *Manager) unlistFrom(ctx context.Context, shard int, id string, round uint64) error {
	return except(updateIndex(ctx, m.store, m.working().key(shard), 0, func(x index) (index, error) {
		return x.unlisted(id, round)
	}), errElsewhere)
}

func (x index) unlisted(id string, round uint64) (index, error) {
	if listed, ok := x.find(id); !ok || uint64(listed) > round {
		return nil, errElsewhere
	}
	return x.without(id), nil
}

// listed returns the working tasks of one shard.
func (m *Manager) listed(ctx context.Context, shard int) (index, error) {
	x, _, err := m.store.Get(ctx, m.key("working", strconv.Itoa(shard)))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return x, err
}

// except returns err, or nil if it is the other error.
func except(err, other error) error {
	if errors.Is(err, other) {
		return nil
	}
	return err
}
