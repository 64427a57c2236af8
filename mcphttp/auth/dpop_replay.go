// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp/store"
)

// A usedProof identifies a proof that was used.
type usedProof struct {
	jkt, id string
	issued  time.Time
}

// A replay records used proofs.
type replay interface {
	// first reports whether a proof is used for the first time, and records it until it
	// expires, atomically.
	first(ctx context.Context, p usedProof, expires time.Time) (bool, error)
}

// sharedReplay records proofs for several replicas. It rejects proofs of a key that has
// used up its share of this process's memory, so that one caller cannot fill the store.
type sharedReplay struct {
	own    *memoryReplay
	values store.Values
}

func newSharedReplay(own *memoryReplay, values store.Values) replay {
	own.refuses = true
	return sharedReplay{own, values}
}

func (s sharedReplay) first(ctx context.Context, p usedProof, expires time.Time) (bool, error) {
	if fresh, err := s.own.first(ctx, p, expires); !fresh {
		return false, err
	}
	key := digestOf(p.jkt + "\x00" + p.id)
	name := "dpop/" + base64.RawURLEncoding.EncodeToString(key[:])
	_, err := s.values.Put(ctx, name, nil, 0, time.Until(expires)+time.Second)
	if errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}

// memoryReplay holds the proofs of each key in sets, one for each time slice in which they
// were issued, so that expired proofs are dropped together. If it is full, the oldest
// slices of the keys with the most proofs are dropped early. Proofs of such a key that were
// issued in a dropped slice or earlier are then rejected, because they may have been used.
// One key cannot use up the room of the others. The limit is not for a principal: the
// instances of one service each have their own key.
type memoryReplay struct {
	window, slice time.Duration
	maxProofs     int // across all keys
	maxOfKey      int
	maxKeys       int
	refuses       bool // reject proofs of a full key instead of dropping its oldest ones

	mu      sync.Mutex
	keys    map[shortDigest]*keyProofs
	count   int
	expired int64 // newest slice whose proofs are rejected for every key
}

// A shortDigest is long enough to distinguish proofs, and half as long as a digest.
type shortDigest [16]byte

func shortDigestOf(s string) shortDigest {
	sum := digestOf(s)
	return shortDigest(sum[:16])
}

// keyProofs are the proofs of one key.
type keyProofs struct {
	slices map[int64]map[shortDigest]struct{}
	count  int
	closed int64 // newest slice whose proofs are rejected
}

func newMemoryReplay(window time.Duration, limit int) *memoryReplay {
	limit = max(1, limit)
	return &memoryReplay{
		window: window, slice: max(window/16, time.Second), keys: map[shortDigest]*keyProofs{},
		maxProofs: limit, maxOfKey: max(limit/16, min(limit, 16)), maxKeys: max(limit/8, min(limit, 16)),
	}
}

func (m *memoryReplay) first(_ context.Context, p usedProof, _ time.Time) (bool, error) {
	key, id := shortDigestOf(p.jkt), shortDigestOf(p.id)
	at := p.issued.UnixNano() / int64(m.slice)
	m.mu.Lock()
	defer m.mu.Unlock()
	if expired := time.Now().Add(-m.window).UnixNano()/int64(m.slice) - 1; expired > m.expired {
		m.closeLocked(expired)
	}
	k := m.keys[key]
	if at <= m.expired || k != nil && k.has(id, at) {
		return false, nil
	}
	if k == nil {
		if len(m.keys) >= m.maxKeys {
			m.forgetKeysLocked()
		}
		if at <= m.expired {
			return false, nil
		}
		k = &keyProofs{slices: map[int64]map[shortDigest]struct{}{}, closed: m.expired}
		m.keys[key] = k
	}
	if k.count >= m.maxOfKey {
		if m.refuses {
			return false, nil
		}
		m.shrinkLocked(k)
	}
	if m.count >= m.maxProofs {
		m.makeRoomLocked()
	}
	if at <= k.closed {
		return false, nil
	}
	k.add(id, at)
	m.count++
	return true, nil
}

// has reports whether a proof was used, or may have been used.
func (k *keyProofs) has(id shortDigest, at int64) bool {
	_, used := k.slices[at][id]
	return used || at <= k.closed
}

func (k *keyProofs) add(id shortDigest, at int64) {
	if k.slices[at] == nil {
		k.slices[at] = map[shortDigest]struct{}{}
	}
	k.slices[at][id] = struct{}{}
	k.count++
}

// close drops the slices up to until, and rejects their proofs from now on. It returns
// the number of proofs dropped.
func (k *keyProofs) close(until int64) (forgotten int) {
	if until <= k.closed {
		return 0
	}
	k.closed = until
	for at, set := range k.slices {
		if at <= until {
			forgotten += len(set)
			delete(k.slices, at)
		}
	}
	k.count -= forgotten
	return forgotten
}

// oldest returns the first slice that has proofs. There must be one.
func (k *keyProofs) oldest() int64 { return slices.Min(slices.Collect(maps.Keys(k.slices))) }

// newest returns the newest slice that has proofs or is closed.
func (k *keyProofs) newest() int64 {
	newest := k.closed
	for at := range k.slices {
		newest = max(newest, at)
	}
	return newest
}

// closeLocked drops the slices of every key up to until, and rejects their proofs from now
// on. It removes keys that have no other slices.
func (m *memoryReplay) closeLocked(until int64) {
	m.expired = max(m.expired, until)
	for name, k := range m.keys {
		m.count -= k.close(m.expired)
		if k.count == 0 && k.closed <= m.expired {
			delete(m.keys, name)
		}
	}
}

// shrinkLocked drops the oldest slice of a key.
func (m *memoryReplay) shrinkLocked(k *keyProofs) { m.count -= k.close(k.oldest()) }

// makeRoomLocked drops a sixteenth of all proofs, to amortize its cost, from the keys with
// the most proofs.
func (m *memoryReplay) makeRoomLocked() {
	goal := m.maxProofs - max(1, m.maxProofs/16)
	level := fairShare(m.keys, goal)
	for _, k := range m.keys { // in random order, so that no key is always first
		for k.count > level && m.count > goal {
			m.shrinkLocked(k)
		}
	}
}

// fairShare returns the maximum number of proofs that each key may keep so that all of them
// fit in room. Keys with fewer proofs leave their room to the others.
func fairShare(keys map[shortDigest]*keyProofs, room int) int {
	counts := make([]int, 0, len(keys))
	for _, k := range keys {
		counts = append(counts, k.count)
	}
	slices.Sort(counts)
	for i, count := range counts {
		share := room / (len(counts) - i)
		if count > share {
			return share
		}
		room -= count
	}
	return room
}

// forgetKeysLocked removes the least recently used sixteenth of the keys. Because their
// used proofs are no longer known, proofs issued at that time or earlier are rejected for
// every key.
func (m *memoryReplay) forgetKeysLocked() {
	all := slices.SortedFunc(maps.Values(m.keys), func(a, b *keyProofs) int { return cmp.Compare(a.newest(), b.newest()) })
	m.closeLocked(all[max(1, len(all)/16)-1].newest())
}
