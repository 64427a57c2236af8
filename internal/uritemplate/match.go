// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package uritemplate

import (
	"iter"
	"strings"
)

// Values holds the variables that a match has bound. The zero value has none.
type Values struct {
	bindings []binding
}

// binding is one occurrence of a variable in a URI.
type binding struct {
	capture *capture
	value   string   // decoded
	list    []string // decoded elements, if the variable is exploded
	seen    uint64   // the bits of the expressions that it was read from
}

// Get returns the value of a variable, or "" if it is not bound. The elements of an
// exploded variable are joined by the separator that they have in the URI. If it matters
// whether an element itself contains the separator, use [Values.List].
func (v Values) Get(name string) string {
	value, _ := v.Lookup(name)
	return value
}

// Lookup returns the value of a variable as [Values.Get] does, and whether it is
// bound. Only variables of expressions that can be absent may be unbound.
func (v Values) Lookup(name string) (value string, bound bool) {
	if b := v.find(name); b != nil {
		return b.value, true
	}
	return "", false
}

// List returns the elements of an exploded variable, the only value of any other variable,
// or nil if the variable is not bound. The caller owns the slice.
func (v Values) List(name string) []string {
	b := v.find(name)
	switch {
	case b == nil:
		return nil
	case b.list == nil:
		return []string{b.value}
	}
	return append([]string(nil), b.list...)
}

// All yields the bound variables, by name, as [Values.Get] returns them.
func (v Values) All() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for _, b := range v.bindings {
			if !yield(b.capture.name, b.value) {
				return
			}
		}
	}
}

func (v Values) find(name string) *binding {
	for i := range v.bindings {
		if v.bindings[i].capture.name == name {
			return &v.bindings[i]
		}
	}
	return nil
}

// isPair reports whether b is one of the repeated name=value pairs of {?x*}.
func (b *binding) isPair() bool { return b.capture.explode && b.capture.separator == 0 }

// bind adds the text that a capture has read. It reports whether the text agrees with an
// existing value of the same name.
func (v *Values) bind(c *capture, raw string) bool {
	b := binding{capture: c, value: decode(raw), seen: c.bit}
	if c.explode {
		b.list = elements(c, raw)
	}
	old := v.find(c.name)
	if old == nil {
		v.bindings = append(v.bindings, b)
		return true
	}
	old.seen |= c.bit
	switch {
	case b.isPair() && old.isPair(): // another pair of {?x*}
		old.value += "," + b.value
		old.list = append(old.list, b.list...)
		return true
	case old.capture.prefix != unlimited && c.prefix == unlimited:
		agrees := truncate(b.value, old.capture.prefix) == old.value
		b.seen = old.seen
		*old = b
		return agrees
	}
	return truncate(old.value, c.prefix) == b.value
}

// elements splits the text of an exploded variable and decodes the pieces.
func elements(c *capture, raw string) []string {
	if c.separator == 0 {
		return []string{decode(raw)}
	}
	list := strings.Split(raw, string(rune(c.separator)))
	for i := range list {
		list[i] = decode(list[i])
	}
	return list
}

// Match extracts the variables from a URI. It reports whether the whole URI matches the
// template, by the rules in the package comment. It never panics and takes time
// proportional to the length of the URI.
func (t *Template) Match(uri string) (Values, bool) {
	start, ok := t.program.start, len(uri) <= MaxURI
	for ok && t.program.states[start].kind == literal { // avoids the table for most mismatches
		uri, ok = strings.CutPrefix(uri, t.program.states[start].literal)
		start = t.program.states[start].next
	}
	if !ok {
		return Values{}, false
	}
	var small [2048]uint16 // enough for ten states and a URI of 200 bytes
	m := matcher{states: t.program.states, uri: uri, table: small[:]}
	if size := len(m.states) * (len(uri) + 1); size > len(small) {
		m.table = make([]uint16, size)
	}
	m.fill()
	if !m.leads(start, 0) {
		return Values{}, false
	}
	values := Values{bindings: make([]binding, 0, len(t.names))}
	return values, t.program.walk(&m, uri, start, &values) && t.agrees(&values)
}

// agrees reports whether every name that appears in several expressions is bound by all of
// them, or by none.
func (t *Template) agrees(values *Values) bool {
	for _, a := range t.again {
		if b := values.find(a.name); b != nil && b.seen != a.expressions {
			return false
		}
	}
	return true
}

// matcher runs a program over a URI in two passes: fill determines, from the end of the
// URI, which states lead to a match at which positions; walk then follows the best path of
// such states from the start.
type matcher struct {
	states []state
	uri    string

	// table has a row of all states for each position. Zero means that the state does not
	// lead to a match from there. For a state that reads characters, any other number is
	// one more than the number of characters to read before the next state takes over; such
	// an entry ignores capture.min and capture.max.
	table []uint16
}

func (m *matcher) entry(state, pos int) uint16 { return m.table[pos*len(m.states)+state] }

func (m *matcher) fill() {
	for pos := len(m.uri); pos >= 0; pos-- {
		kinds, size := nextChar(m.uri, pos)
		for i := range m.states {
			m.table[pos*len(m.states)+i] = m.evaluate(i, pos, kinds, size)
		}
	}
}

// evaluate computes an entry of the table. The character at pos is of the given
// kinds and size.
func (m *matcher) evaluate(i, pos int, kinds class, size int) uint16 {
	s := &m.states[i]
	switch s.kind {
	case accept:
		return entryOf(pos == len(m.uri))
	case literal:
		found := strings.HasPrefix(m.uri[pos:], s.literal)
		return entryOf(found && m.leads(s.next, pos+len(s.literal)))
	case choice:
		return entryOf(m.branch(s, pos) >= 0)
	}
	if m.leads(s.next, pos) {
		return 1
	}
	if size > 0 && s.capture.accepts(kinds, m.uri[pos]) {
		if more := m.entry(i, pos+size); more > 0 {
			return more + 1
		}
	}
	return 0
}

func entryOf(leads bool) uint16 {
	if leads {
		return 1
	}
	return 0
}

// leads reports whether entering a state at pos leads to a match.
func (m *matcher) leads(i, pos int) bool {
	s := &m.states[i]
	if s.kind != read {
		return m.entry(i, pos) > 0
	}
	count := 0
	if s.capture.min > 0 {
		kinds, size := nextChar(m.uri, pos)
		if size == 0 || !s.capture.accepts(kinds, m.uri[pos]) {
			return false
		}
		pos, count = pos+size, 1
	}
	distance := m.entry(i, pos)
	return distance > 0 && (s.capture.max == unlimited || count+int(distance)-1 <= s.capture.max)
}

// branch returns the first branch of a choice that leads to a match, or -1.
func (m *matcher) branch(s *state, pos int) int {
	for _, next := range s.branches {
		if m.leads(next, pos) {
			return next
		}
	}
	return -1
}

// walk follows the states that lead to a match and binds what they read. The values retain
// parts of the program and of the URI, so these are not taken from m: otherwise its table
// would escape to the heap.
func (p *program) walk(m *matcher, uri string, i int, values *Values) bool {
	for pos := 0; ; {
		s := &p.states[i]
		switch s.kind {
		case accept:
			return true
		case literal:
			pos += len(s.literal)
			i = s.next
		case choice:
			i = m.branch(s, pos)
		case read:
			end := m.end(i, pos)
			if !values.bind(&s.capture, uri[pos:end]) {
				return false
			}
			pos, i = end, s.next
		}
	}
}

// end returns the end of the value that state i reads from pos.
func (m *matcher) end(i, pos int) int {
	if m.states[i].capture.min > 0 {
		_, size := nextChar(m.uri, pos)
		pos += size
	}
	for m.entry(i, pos) > 1 {
		_, size := nextChar(m.uri, pos)
		pos += size
	}
	return pos
}
