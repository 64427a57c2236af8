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

// usedProof is what makes a proof unique, and when it was made.
type usedProof struct {
	jkt, id string
	issued  time.Time
}

// replay knows which proofs were used.
type replay interface {
	// first reports, in one step, whether a proof is used for the first time, and
	// remembers it until it has expired.
	first(ctx context.Context, p usedProof, expires time.Time) (bool, error)
}

// sharedReplay is for replicas. A key that has used up its share of the proofs of this
// process is refused here, so that one caller cannot fill the store for all.
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

// memoryReplay keeps the proofs of each key apart, in a set for each slice of time in
// which they were issued, so that old ones are forgotten at once. If there is no room,
// the keys with the most proofs forget their oldest slices early, and nothing issued in
// these, or before, is accepted from the same key any more: what is not known to be new
// is refused. One key cannot take the room of the others.
type memoryReplay struct {
	window, slice time.Duration
	maxProofs     int // of all keys
	maxOfKey      int
	maxKeys       int
	refuses       bool // proofs of a key that has no room, in place of forgetting its oldest

	mu      sync.Mutex
	keys    map[shortDigest]*keyProofs
	count   int
	expired int64 // the newest slice that is refused from every key
}

// shortDigest is enough to tell proofs apart, and half as long.
type shortDigest [16]byte

func shortDigestOf(s string) shortDigest {
	sum := digestOf(s)
	return shortDigest(sum[:16])
}

// keyProofs are the proofs of one key.
type keyProofs struct {
	slices map[int64]map[shortDigest]struct{}
	count  int
	closed int64 // the newest slice that is refused
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

// has reports whether a proof was used, or may have been.
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

// close forgets, and refuses from now on, what was issued in a slice or before. It
// returns how many proofs that were.
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

// oldest is the first slice that there are proofs of; there is at least one.
func (k *keyProofs) oldest() int64 { return slices.Min(slices.Collect(maps.Keys(k.slices))) }

// newest is the last slice of which it is known which proofs were used.
func (k *keyProofs) newest() int64 {
	newest := k.closed
	for at := range k.slices {
		newest = max(newest, at)
	}
	return newest
}

// closeLocked forgets, and refuses from every key from now on, what was issued in a slice
// or before. Keys of which nothing else is known are forgotten.
func (m *memoryReplay) closeLocked(until int64) {
	m.expired = max(m.expired, until)
	for name, k := range m.keys {
		m.count -= k.close(m.expired)
		if k.count == 0 && k.closed <= m.expired {
			delete(m.keys, name)
		}
	}
}

// shrinkLocked has a key forget its oldest slice.
func (m *memoryReplay) shrinkLocked(k *keyProofs) { m.count -= k.close(k.oldest()) }

// makeRoomLocked forgets a sixteenth of all proofs, which makes up for the time that it
// takes. Each key keeps as much as every other, or what it has if that is less.
func (m *memoryReplay) makeRoomLocked() {
	goal := m.maxProofs - max(1, m.maxProofs/16)
	level := fairShare(m.keys, goal)
	for _, k := range m.keys { // in no order, so that nobody is always the first
		for k.count > level && m.count > goal {
			m.shrinkLocked(k)
		}
	}
}

// fairShare is the most that every key can have if there is room for so many proofs in
// all, and what keys with fewer do not need goes to the others.
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

// forgetKeysLocked forgets a sixteenth of the keys, those that have been used the longest
// ago. Since their proofs are not known any more, what was issued at their time is refused
// from every key.
func (m *memoryReplay) forgetKeysLocked() {
	all := slices.SortedFunc(maps.Values(m.keys), func(a, b *keyProofs) int { return cmp.Compare(a.newest(), b.newest()) })
	m.closeLocked(all[max(1, len(all)/16)-1].newest())
}
