// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonscan

import "bytes"

// names remembers the member names of every object that is open, to refuse a
// second one. Small objects are compared name by name in one shared slice;
// an object that grows gets a set, so that a large one costs linear time.
type names struct {
	seen  [][]byte
	bases []base
	room  [24][]byte
	open  [8]base
}

type base struct {
	start int
	set   map[string]struct{}
}

const smallObject = 16

func (n *names) reset() {
	clear(n.room[:])
	n.seen, n.bases = n.room[:0], n.open[:0]
}

func (n *names) push() { n.bases = append(n.bases, base{start: len(n.seen)}) }

func (n *names) pop() {
	last := len(n.bases) - 1
	n.seen = n.seen[:n.bases[last].start]
	n.bases = n.bases[:last]
}

// add reports false if the innermost object has the name already.
func (n *names) add(name []byte) bool {
	b := &n.bases[len(n.bases)-1]
	if b.set != nil {
		before := len(b.set)
		b.set[string(name)] = struct{}{}
		return len(b.set) > before
	}
	siblings := n.seen[b.start:]
	for _, s := range siblings {
		if bytes.Equal(s, name) {
			return false
		}
	}
	n.seen = append(n.seen, name)
	if len(siblings) >= smallObject {
		b.set = make(map[string]struct{}, 4*smallObject)
		for _, s := range n.seen[b.start:] {
			b.set[string(s)] = struct{}{}
		}
	}
	return true
}
