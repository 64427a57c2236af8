// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package uritemplate

import "slices"

// program is a template as a nondeterministic automaton with few kinds of states.
//
// States are ordered such that every state that can be reached from a state without reading
// a character has a lower index. A single pass in index order therefore evaluates all
// states at one position of a URI.
type program struct {
	states []state
	start  int
}

// state is one state of a program: what it reads and where it leads.
type state struct {
	kind stateKind
	next int // literal, read: the state after it

	literal  string  // literal: the text it reads
	branches []int   // choice: the states it leads to, best first
	capture  capture // read: what it reads
}

type stateKind uint8

const (
	accept  stateKind = iota // the end of the URI
	literal                  // reads a text
	choice                   // reads nothing, leads to one of several states
	read                     // reads characters and binds them to a variable
)

// capture describes a run of characters that is the value of a variable.
type capture struct {
	name      string
	allowed   class
	separator byte // between the elements of an exploded list, or 0
	min, max  int  // in characters; max may be unlimited
	explode   bool
	prefix    int    // the variable's own prefix, or unlimited
	bit       uint64 // of the expression
}

// accepts reports whether a character of these kinds, whose first byte is first, can be
// part of the value.
func (c *capture) accepts(kinds class, first byte) bool {
	return kinds&c.allowed != 0 || c.separator != 0 && c.separator == first
}

// compile translates the parts of a template, starting with the last, so that the states
// that follow are known.
func compile(parts []part) program {
	p := program{states: []state{{kind: accept}}}
	for _, part := range slices.Backward(parts) {
		switch {
		case part.vars == nil:
			p.start = p.literal(part.literal, p.start)
		case part.op.named:
			p.start = p.pairs(part, p.start)
		case part.op.first != "":
			p.start = p.optional(part, p.start)
		default:
			p.start = p.required(part, p.start)
		}
	}
	return p
}

func (p *program) add(s state) int {
	p.states = append(p.states, s)
	return len(p.states) - 1
}

func (p *program) literal(text string, next int) int {
	return p.add(state{kind: literal, literal: text, next: next})
}

func (p *program) choice(branches ...int) int {
	return p.add(state{kind: choice, branches: branches})
}

// value adds a state that reads the value of v.
func (p *program) value(op operator, v variable, atLeast, next int) int {
	c := capture{name: v.name, allowed: op.allowed, min: atLeast, max: v.prefix, explode: v.explode, prefix: v.prefix, bit: v.bit}
	if op.separator == "&" {
		c.allowed = unreserved | queryChar
	}
	if v.explode && !op.named {
		c.separator = op.separator[0]
	}
	return p.add(state{kind: read, capture: c, next: next})
}

// required adds {x,y} or {+x,y}: every variable is present.
func (p *program) required(part part, next int) int {
	atLeast := 1
	if part.op.allowed&reserved != 0 {
		atLeast = 0
	}
	for i, v := range slices.Backward(part.vars) {
		next = p.value(part.op, v, atLeast, next)
		if i > 0 {
			next = p.literal(part.op.separator, next)
		}
	}
	return next
}

// optional adds {#x,y}, {.x,y} or {/x,y}: the first few of the variables are present, each
// after its delimiter.
func (p *program) optional(part part, end int) int {
	next := end
	for i, v := range slices.Backward(part.vars) {
		delimiter := part.op.separator
		if i == 0 {
			delimiter = part.op.first
		}
		value := p.value(part.op, v, 0, next)
		next = p.choice(p.literal(delimiter, value), end)
	}
	return next
}

// pairs adds {;x,y}, {?x,y} or {&x,y}: some of the variables are present as name=value, in
// any order. A name alone has the empty value.
//
//	first ──name=──value──▶ more ──▶ end
//	                 ▲        │
//	                 └─name=──┘
func (p *program) pairs(part part, end int) int {
	others := p.keys(part.op.separator, part.vars)
	firsts := p.keys(part.op.first, part.vars)
	more := p.choice(append(slices.Clip(others), end)...)
	for i, v := range part.vars {
		value := p.value(part.op, v, 0, more)
		nothing := p.value(part.op, v, 0, more)
		p.states[nothing].capture.max = 0
		for _, keys := range [][]int{firsts, others} {
			p.states[keys[2*i]].next = value
			p.states[keys[2*i+1]].next = nothing
		}
	}
	return p.choice(append(firsts, end)...)
}

// keys adds two states for each variable: one that reads its name and an equals sign, and
// one that reads only its name. The caller sets the states after them.
func (p *program) keys(delimiter string, vars []variable) []int {
	states := make([]int, 0, 2*len(vars)+1)
	for _, v := range vars {
		states = append(states, p.literal(delimiter+v.name+"=", 0), p.literal(delimiter+v.name, 0))
	}
	return states
}
