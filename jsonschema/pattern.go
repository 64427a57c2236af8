// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"strings"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/go-psi/psi/internal/schematree"
)

// maxPatternSize bounds the size of all regular expressions of one schema.
const maxPatternSize = 100_000

// A pattern is a regular expression. Matching n bytes takes time proportional to n times
// its size.
type pattern struct {
	*regexp.Regexp // nil if Go cannot compile text
	text           string
	size           int
}

func (p *pattern) String() string { return p.text }

// cost returns the cost of matching n bytes.
func (p *pattern) cost(n int) int {
	return 1 + int(min(int64(n)*int64(p.size)/256, math.MaxInt32-1))
}

// patterns are the regular expressions of one schema.
type patterns struct {
	known map[string]*pattern // by text
	left  int                 // size that more expressions may have; negative after one was too large
}

func newPatterns() *patterns {
	return &patterns{known: map[string]*pattern{}, left: maxPatternSize}
}

var errPatterns = fmt.Errorf("jsonschema: the regular expressions of the schema expand to more than %d instructions", maxPatternSize)

// compile returns the regular expression with the given text. It fails only if all
// expressions together are too large.
func (p *patterns) compile(text string) (*pattern, error) {
	if known := p.known[text]; known != nil {
		return known, nil
	}
	made := &pattern{text: text, size: 1}
	expr := inGo(text)
	if tree, err := syntax.Parse(expr, syntax.Perl); err == nil {
		made.size = schematree.PatternSize(tree, maxPatternSize)
		if p.left -= made.size; p.left < 0 {
			return nil, errPatterns
		}
		made.Regexp, _ = regexp.Compile(expr)
	}
	p.known[text] = made
	return made, nil
}

// engine is compile for the library, which also checks the format of the regular expressions
// in a schema with it.
func (p *patterns) engine(text string) (santhosh.Regexp, error) {
	made, err := p.compile(text)
	if err != nil {
		return nil, err
	}
	return made, nil
}

// whiteSpace are the characters that \s matches in ECMAScript, as part of a class. In Go, \s
// only matches those in ASCII.
const whiteSpace = `\s\v\x{feff}\p{Z}`

// inGo returns the regular expression with \s, \S, the dot and empty classes as they are
// defined in ECMAScript. An \S in a class keeps its meaning in Go, which matches more.
func inGo(text string) string {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch {
		case inClass && strings.HasPrefix(rest, `\s`):
			b.WriteString(whiteSpace)
			i++
		case strings.HasPrefix(rest, `\s`):
			b.WriteString("[" + whiteSpace + "]")
			i++
		case !inClass && strings.HasPrefix(rest, `\S`):
			b.WriteString("[^" + whiteSpace + "]")
			i++
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteString(rest[:2])
			i++
		case !inClass && strings.HasPrefix(rest, "[]"):
			b.WriteString(`[^\x00-\x{10FFFF}]`) // nothing
			i++
		case !inClass && strings.HasPrefix(rest, "[^]"):
			b.WriteString(`[\x00-\x{10FFFF}]`)
			i += 2
		case !inClass && rest[0] == '.' && !strings.Contains(text, "(?s"):
			b.WriteString(`[^\n\r\x{2028}\x{2029}]`)
		case !inClass && rest[0] == '[':
			inClass = true
			b.WriteByte('[')
		default:
			inClass = inClass && rest[0] != ']'
			b.WriteByte(rest[0])
		}
	}
	return b.String()
}
