// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package uritemplate

import (
	"encoding/binary"
	"slices"
	"strings"
)

// A Relation describes how the sets of URIs that two templates match relate.
type Relation uint8

// The relations of a template a to a template b.
const (
	Overlaps     Relation = iota // some URIs match both, others only a, others only b
	Equivalent                   // the same URIs match both
	MoreSpecific                 // what matches a matches b, and b matches more
	LessSpecific                 // what matches b matches a, and a matches more
	Disjoint                     // no URI matches both
)

func (r Relation) String() string {
	switch r {
	case Equivalent:
		return "equivalent"
	case MoreSpecific:
		return "more specific"
	case LessSpecific:
		return "less specific"
	case Disjoint:
		return "disjoint"
	default:
		return "overlaps"
	}
}

// maxPositions limits the work of Compare: how many positions may be visited, including repeated
// visits. Routing patterns need a few thousand.
const maxPositions = 1 << 18

// Compare returns the relation of two templates, for the rules that net/http has for
// patterns: if two match, the more specific one wins, and two that overlap, or are
// equivalent, conflict.
//
// The result compares the automata of the templates. It is conservative where they know
// less than [Template.Match], or where the comparison would take long. Two templates that
// differ only in that Match rejects a repeated name with two values are Equivalent. If a
// comparison exceeds its limit, the result is Overlaps. That takes a large prefix, or
// several query variables after text after a {+x}.
func Compare(a, b *Template) Relation {
	c := comparison{a: &a.program, b: &b.program, seen: map[string]bool{}}
	c.symbols = alphabet(c.a, c.b)
	c.textual = !slices.ContainsFunc(c.symbols, malformed)
	c.visit(pair{c.a.startPositions(), c.b.startPositions()})
	for len(c.todo) > 0 {
		if c.positions > maxPositions || c.both && c.onlyA && c.onlyB {
			return Overlaps
		}
		next := c.todo[len(c.todo)-1]
		c.todo = c.todo[:len(c.todo)-1]
		for _, symbol := range c.symbols {
			c.visit(pair{c.step(c.a, next.a, symbol), c.step(c.b, next.b, symbol)})
		}
	}
	switch {
	case !c.both:
		return Disjoint
	case c.onlyA && c.onlyB:
		return Overlaps
	case c.onlyA:
		return LessSpecific
	case c.onlyB:
		return MoreSpecific
	}
	return Equivalent
}

// comparison walks two programs in step, over every text that both can read.
type comparison struct {
	a, b               *program
	symbols            []string
	textual            bool // no symbol is malformed
	todo               []pair
	seen               map[string]bool
	positions          int  // number of visited positions, including repeated visits
	both, onlyA, onlyB bool // whether there is such a URI
}

// position is a place in a program: a state and how far it has read, in bytes for
// literals and in characters for captures.
type position struct{ state, read int }

func compareSpots(x, y position) int {
	if x.state != y.state {
		return x.state - y.state
	}
	return x.read - y.read
}

// pair holds all positions that the programs can be at after reading the same text.
type pair struct{ a, b []position }

// visit records what a pair shows, and schedules the pair. Every position leads to a match of
// its program, so if one program has no positions left, there is a URI that only the other one matches.
func (c *comparison) visit(p pair) {
	acceptsA, acceptsB := accepting(p.a), accepting(p.b)
	c.both = c.both || acceptsA && acceptsB
	c.onlyA = c.onlyA || acceptsA && !acceptsB || len(p.a) > 0 && len(p.b) == 0
	c.onlyB = c.onlyB || acceptsB && !acceptsA || len(p.b) > 0 && len(p.a) == 0
	if len(p.a) == 0 || len(p.b) == 0 {
		return
	}
	if key := p.key(); !c.seen[key] {
		c.seen[key] = true
		c.todo = append(c.todo, p)
	}
}

func (p pair) key() string {
	key := binary.AppendUvarint(nil, uint64(len(p.a)))
	for _, s := range slices.Concat(p.a, p.b) {
		key = binary.AppendUvarint(key, uint64(s.state))
		key = binary.AppendUvarint(key, uint64(s.read))
	}
	return string(key)
}

// accepting reports whether one of the positions is the end, which is state 0.
func accepting(positions []position) bool {
	return slices.ContainsFunc(positions, func(s position) bool { return s.state == 0 })
}

// startPositions returns the positions before anything is read, sorted.
func (p *program) startPositions() []position {
	return sorted(p.closure(nil, position{state: p.start}))
}

// step returns the positions of p after reading a symbol, sorted.
func (c *comparison) step(p *program, from []position, symbol string) []position {
	var to []position
	kinds, size := nextChar(symbol, 0)
	for _, at := range from {
		s := &p.states[at.state]
		switch s.kind {
		case literal:
			if strings.HasPrefix(s.literal[at.read:], symbol) {
				to = p.closure(to, position{at.state, at.read + len(symbol)})
			}
		case read:
			if size > 0 && s.capture.accepts(kinds, symbol[0]) && at.read != s.capture.max {
				to = p.closure(to, position{at.state, s.capture.count(at.read + 1)})
			}
		}
	}
	c.positions += len(from) + len(to)
	for _, at := range to {
		if c.textual && p.takesAll(at) {
			return sorted(p.closure(nil, at)) // other positions add nothing
		}
	}
	return sorted(to)
}

// takesAll reports whether every text leads to a match from a position, as at the {+x} of {+x}{?y}.
func (p *program) takesAll(at position) bool {
	s := &p.states[at.state]
	return s.kind == read && s.capture.allowed == unreserved|reserved && s.capture.max == unlimited &&
		at.read >= s.capture.min && accepting(p.closure(nil, at))
}

func sorted(positions []position) []position {
	slices.SortFunc(positions, compareSpots)
	return slices.Compact(positions)
}

// count limits n where a larger number makes no difference.
func (c *capture) count(n int) int {
	if c.max == unlimited {
		return min(n, c.min)
	}
	return n
}

// closure appends the positions that can be reached from at without reading.
func (p *program) closure(to []position, at position) []position {
	s := &p.states[at.state]
	switch s.kind {
	case literal:
		if at.read == len(s.literal) {
			return p.closure(to, position{state: s.next})
		}
	case choice:
		for _, next := range s.branches {
			to = p.closure(to, position{state: next})
		}
		return to
	case read:
		if at.read >= s.capture.min {
			to = p.closure(to, position{state: s.next})
		}
	}
	return append(to, at)
}

// alphabet returns enough characters to tell the programs apart: those in their
// literals, all delimiters, and one of each kind that stands for all the others.
func alphabet(programs ...*program) []string {
	const word = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
	symbols := strings.Split(":/?#[]@!$&'()*+,;=", "")
	symbols = append(symbols, ".", "é")
	for _, p := range programs {
		for i := range p.states {
			symbols = appendSymbols(symbols, p.states[i].literal)
		}
	}
	for _, candidates := range []func(i int) string{
		func(i int) string { return word[i : i+1] },
		func(i int) string { return string(appendEncoded(nil, word[i:i+1], 0)) },
	} {
		for i := range len(word) {
			if s := candidates(i); !slices.Contains(symbols, s) {
				symbols = append(symbols, s)
				break
			}
		}
	}
	slices.Sort(symbols)
	return slices.Compact(symbols)
}

// malformed reports whether a symbol is an octet that is not UTF-8 by itself. Only a
// literal can contain it.
func malformed(symbol string) bool {
	_, size := nextChar(symbol, 0)
	return size == 0
}

func appendSymbols(symbols []string, text string) []string {
	for pos := 0; pos < len(text); {
		_, size := nextChar(text, pos)
		if size == 0 {
			size = len("%00") // malformed
		}
		symbols = append(symbols, text[pos:pos+size])
		pos += size
	}
	return symbols
}
