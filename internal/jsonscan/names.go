// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonscan

import "bytes"

// names remembers the member names of every object that is open, to refuse a
// second one. Small objects are compared name by name in one shared slice;
// an object that grows gets a set, so that a large one costs linear time.
//
// What ordinary messages need has no pointers in it: nothing is to be cleared between
// messages, and the garbage collector need not look.
type names struct {
	data  []byte // what is read
	seen  []span
	bases []base
	odd   [][]byte              // names that are written with escapes
	sets  []map[string]struct{} // of objects that have grown
	room  [24]span
	open  [8]base
}

// span is a name: a part of the data or, if from is negative, the odd name ^from.
type span struct{ from, to int }

// base is an open object: where its names start, and the number of its set, 0 if it
// has none.
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

// keep keeps a name that does not stand in the data as it is.
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

// add reports false if the innermost object has the name already.
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

// gather makes a set of names and returns its number.
func (n *names) gather(list []span) int {
	set := make(map[string]struct{}, 4*smallObject)
	for _, s := range list {
		set[string(n.at(s))] = struct{}{}
	}
	n.sets = append(n.sets, set)
	return len(n.sets)
}
