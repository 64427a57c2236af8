// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package uritemplate

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits on what is parsed and matched. They far exceed what routing patterns need, and
// keep the cost of one match in check.
const (
	MaxTemplate  = 4 << 10 // bytes in a template
	MaxVariables = 64      // variables in a template
	MaxURI       = 8 << 10 // bytes in a URI that is matched
)

// maxPrefix is the largest length in {x:length}, from RFC 6570, section 2.4.1.
const maxPrefix = 9999

// unlimited is the prefix length of a variable without one.
const unlimited = -1

// A Template is a parsed URI template. It is immutable and safe for concurrent use.
type Template struct {
	source  string
	parts   []part
	names   []string
	again   []repeatedName
	program program
}

// repeatedName is a name that appears in several expressions.
type repeatedName struct {
	name        string
	expressions uint64 // their bits
}

// part is literal text, or an expression if vars is not empty.
type part struct {
	literal string // as expansion writes it: percent-encoded where needed
	op      operator
	vars    []variable
}

// variable is one variable of an expression with its modifier.
type variable struct {
	name    string
	prefix  int // in characters, or unlimited
	explode bool
	bit     uint64 // of the expression
}

// ParseError describes what is wrong with a template, and where.
type ParseError struct {
	Template string
	Offset   int // in bytes, from 0
	Reason   string
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("uritemplate: %q at offset %d: %s", e.Template, e.Offset, e.Reason)
}

// IsTemplate reports whether s is meant as a template rather than as a URI, that is,
// whether it contains a brace, which no URI may contain.
func IsTemplate(s string) bool { return strings.ContainsAny(s, "{}") }

// Parse parses a template of any level of RFC 6570. Text without expressions is also a
// template, which matches only itself. An error is a *[ParseError].
func Parse(s string) (*Template, error) {
	p := parser{src: s}
	if len(s) > MaxTemplate {
		return nil, p.errorf(MaxTemplate, "longer than %d bytes", MaxTemplate)
	}
	for p.pos < len(s) {
		var err error
		if s[p.pos] == '{' {
			err = p.expression()
		} else {
			err = p.literal()
		}
		if err != nil {
			return nil, err
		}
	}
	return &Template{source: s, parts: p.parts, names: p.names, again: repeated(p.parts), program: compile(p.parts)}, nil
}

// repeated returns the names that appear in several expressions.
func repeated(parts []part) []repeatedName {
	var names []repeatedName
	for _, part := range parts {
		for _, v := range part.vars {
			i := slices.IndexFunc(names, func(a repeatedName) bool { return a.name == v.name })
			if i < 0 {
				names = append(names, repeatedName{v.name, v.bit})
			} else {
				names[i].expressions |= v.bit
			}
		}
	}
	return slices.DeleteFunc(names, func(a repeatedName) bool { return bits.OnesCount64(a.expressions) < 2 })
}

// String returns the text that was parsed.
func (t *Template) String() string { return t.source }

// Names returns the names of the variables in the order of their first
// appearance. The caller owns the slice.
func (t *Template) Names() []string { return slices.Clone(t.names) }

// Required returns the names of the variables that appear outside of the expressions {?…}
// and {&…}, in the order of their first appearance.
func (t *Template) Required() []string {
	var names []string
	for _, part := range t.parts {
		for _, v := range part.vars {
			if optional := part.op.named && part.op.first != ";"; !optional && !slices.Contains(names, v.name) {
				names = append(names, v.name)
			}
		}
	}
	return names
}

// parser reads a template from left to right; pos is the next byte to read.
type parser struct {
	src   string
	pos   int
	parts []part
	names []string
	count int // of variables, including repeated ones
}

func (p *parser) errorf(offset int, format string, args ...any) error {
	return &ParseError{Template: p.src, Offset: offset, Reason: fmt.Sprintf(format, args...)}
}

// literal reads text up to the next expression.
func (p *parser) literal() error {
	start := p.pos
	for p.pos < len(p.src) && p.src[p.pos] != '{' {
		size, err := p.literalChar()
		if err != nil {
			return err
		}
		p.pos += size
	}
	text := appendEncoded(nil, p.src[start:p.pos], reserved|unreserved)
	p.parts = append(p.parts, part{literal: string(text)})
	return nil
}

// literalChar checks one character of literal text and returns its length.
func (p *parser) literalChar() (int, error) {
	c := p.src[p.pos]
	switch {
	case c == '}':
		return 0, p.errorf(p.pos, `"}" without a "{" before it`)
	case c == '%':
		if _, ok := unescape(p.src, p.pos); !ok {
			return 0, p.errorf(p.pos, `"%%" is not followed by two hexadecimal digits`)
		}
		return 3, nil
	case c >= utf8.RuneSelf:
		r, size := utf8.DecodeRuneInString(p.src[p.pos:])
		if r == utf8.RuneError && size == 1 {
			return 0, p.errorf(p.pos, "invalid UTF-8")
		}
		return size, nil
	case classOf(c) == 0:
		return 0, p.errorf(p.pos, "character %q must be percent-encoded in a URI", c)
	}
	return 1, nil
}

// expression reads one expression, including its braces.
func (p *parser) expression() error {
	open := p.pos
	length := strings.IndexAny(p.src[open+1:], "{}")
	if length < 0 || p.src[open+1+length] == '{' {
		return p.errorf(open, `expression is not closed by "}"`)
	}
	end := open + 1 + length
	p.pos++
	part, bit := part{}, uint64(1)<<p.count // there are no more expressions than variables
	if p.pos < end {
		c := p.src[p.pos]
		if strings.IndexByte("=,!@|", c) >= 0 {
			return p.errorf(p.pos, "operator %q is reserved by RFC 6570 for extensions", c)
		}
		if op, ok := operators[c]; ok {
			part.op = op
			p.pos++
		} else {
			part.op = simple
		}
	}
	for {
		v, err := p.variable(end)
		if err != nil {
			return err
		}
		v.bit = bit
		part.vars = append(part.vars, v)
		if p.pos == end {
			break
		}
		p.pos++ // the comma
	}
	p.pos = end + 1
	p.parts = append(p.parts, part)
	return nil
}

// variable reads one variable with its modifier, up to a comma or end.
func (p *parser) variable(end int) (variable, error) {
	start := p.pos
	if p.count++; p.count > MaxVariables {
		return variable{}, p.errorf(start, "more than %d variables", MaxVariables)
	}
	if err := p.name(end); err != nil {
		return variable{}, err
	}
	v := variable{name: p.src[start:p.pos], prefix: unlimited}
	if p.pos < end && p.src[p.pos] == '*' {
		v.explode = true
		p.pos++
	} else if p.pos < end && p.src[p.pos] == ':' {
		p.pos++
		n, err := p.prefixLength(end)
		if err != nil {
			return variable{}, err
		}
		v.prefix = n
	}
	if p.pos < end && p.src[p.pos] != ',' {
		return variable{}, p.errorf(p.pos, "unexpected %q after variable %q", p.src[p.pos], v.name)
	}
	if !slices.Contains(p.names, v.name) {
		p.names = append(p.names, v.name)
	}
	return v, nil
}

// name reads a variable name: letters, digits, "_" and percent-encoded octets,
// with single dots between them.
func (p *parser) name(end int) error {
	start, dotted := p.pos, true // a dot may not come first
	for p.pos < end {
		c := p.src[p.pos]
		switch {
		case c == '%':
			if _, ok := unescape(p.src[:end], p.pos); !ok {
				return p.errorf(p.pos, `"%%" is not followed by two hexadecimal digits`)
			}
			p.pos += 2
		case c == '.' && dotted:
			return p.errorf(p.pos, "a dot must be between two characters of a name")
		case c != '.' && c != '_' && !isAlphanumeric(c):
			return p.endOfName(start, dotted)
		}
		dotted = c == '.'
		p.pos++
	}
	return p.endOfName(start, dotted)
}

func (p *parser) endOfName(start int, dotted bool) error {
	switch {
	case p.pos == start:
		return p.errorf(start, "a variable name is missing")
	case dotted:
		return p.errorf(p.pos-1, "a dot must be between two characters of a name")
	case strings.IndexByte(",:*}", p.src[p.pos]) < 0:
		return p.errorf(p.pos, "character %q is not allowed in a variable name", p.src[p.pos])
	}
	return nil
}

// prefixLength reads the number after the colon of {x:3}.
func (p *parser) prefixLength(end int) (int, error) {
	start, n := p.pos, 0
	for ; p.pos < end && '0' <= p.src[p.pos] && p.src[p.pos] <= '9' && n <= maxPrefix; p.pos++ {
		n = n*10 + int(p.src[p.pos]-'0')
	}
	if n == 0 || n > maxPrefix || p.src[start] == '0' {
		return 0, p.errorf(start, "a prefix length must be a number from 1 to %d", maxPrefix)
	}
	return n, nil
}
