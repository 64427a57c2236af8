// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonscan

import "bytes"

// names holds the member names of every open object, to reject duplicates. In small
// objects, the names are compared one by one in a shared slice. A large object gets a set,
// so that it takes linear time.
//
// The fields that ordinary messages need have no pointers: they need not be cleared between
// messages, and the garbage collector does not scan them.
type names struct {
	data  []byte // the input
	seen  []span
	bases []base
	odd   [][]byte              // names that are written with escapes
	sets  []map[string]struct{} // of large objects
	room  [24]span
	open  [8]base
}

// span is a name: a part of data or, if from is negative, the name odd[^from].
type span struct{ from, to int }

// base is an open object: the start of its names in seen, and the number of its set, or 0
// if it has none.
type base struct{ start, set int }

const smallObject = 16

func (n *names) reset(data []byte) {
	n.data, n.seen, n.bases = data, n.room[:0], n.open[:0]
	clear(n.odd)
	clear(n.sets)
	n.odd, n.sets = n.odd[:0], n.sets[:0]
}

func (n *names) push() { n.bases = append(n.bases, base{start: len(n.seen)}) }

func (n *names) pop() {
	last := len(n.bases) - 1
	if set := n.bases[last].set; set > 0 { // it is the last: only the innermost object grows
		n.sets[set-1] = nil
		n.sets = n.sets[:set-1]
	}
	n.seen = n.seen[:n.bases[last].start]
	n.bases = n.bases[:last]
}

// keep stores a name that the data does not contain in unescaped form.
func (n *names) keep(name []byte) span {
	n.odd = append(n.odd, name)
	return span{from: ^(len(n.odd) - 1)}
}

func (n *names) at(s span) []byte {
	if s.from < 0 {
		return n.odd[^s.from]
	}
	return n.data[s.from:s.to]
}

// add returns false if the innermost object already has the name.
func (n *names) add(s span) bool {
	b := &n.bases[len(n.bases)-1]
	name := n.at(s)
	if b.set > 0 {
		set := n.sets[b.set-1]
		before := len(set)
		set[string(name)] = struct{}{}
		return len(set) > before
	}
	siblings := n.seen[b.start:]
	for _, sibling := range siblings {
		if bytes.Equal(n.at(sibling), name) {
			return false
		}
	}
	n.seen = append(n.seen, s)
	if len(siblings) >= smallObject {
		b.set = n.gather(n.seen[b.start:])
	}
	return true
}

// gather creates a set of names and returns its number.
func (n *names) gather(list []span) int {
	set := make(map[string]struct{}, 4*smallObject)
	for _, s := range list {
		set[string(n.at(s))] = struct{}{}
	}
	n.sets = append(n.sets, set)
	return len(n.sets)
}
