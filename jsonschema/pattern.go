// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"

	"github.com/go-psi/psi/internal/schematree"
)

// maxPatternSize bounds the size of all regular expressions of one schema. A few bytes,
// such as (a{1000}b{1000}){9}, can expand to as many instructions.
const maxPatternSize = 100_000

// A pattern is a compiled regular expression. Matching n bytes takes time proportional
// to n times its size.
type pattern struct {
	*regexp.Regexp
	size int
}

// cost returns the cost of matching n bytes.
func (p *pattern) cost(n int) int {
	return 1 + int(min(int64(n)*int64(p.size)/256, math.MaxInt32-1))
}

// patterns holds the regular expressions of a schema by their text. The value is nil if Go
// cannot compile the expression.
type patterns map[string]*pattern

// add compiles a regular expression, unless it is larger than left, and returns its size.
func (p patterns) add(text string, left int) (size int) {
	if _, known := p[text]; known {
		return 0
	}
	p[text] = nil
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0
	}
	if size = patternSize(tree); size > left {
		return size
	}
	if re, err := regexp.Compile(text); err == nil {
		p[text] = &pattern{re, size}
	}
	return size
}

// patternSize estimates the number of instructions of a regular expression.
func patternSize(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)/8 // character classes are searched by bisection
	for _, sub := range re.Sub {
		size += patternSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(1, re.Min, re.Max)
	}
	return min(size, maxPatternSize+1)
}

// patternsOf compiles the regular expressions of a document.
func patternsOf(document any) (patterns, error) {
	p, left := patterns{}, maxPatternSize
	schematree.Walk(document, "", func(_ string, schema any) {
		obj, _ := schema.(map[string]any)
		if text, ok := obj["pattern"].(string); ok && left >= 0 {
			left -= p.add(text, left)
		}
		byPattern, _ := obj["patternProperties"].(map[string]any)
		for text := range byPattern {
			if left >= 0 {
				left -= p.add(text, left)
			}
		}
	})
	if left < 0 {
		return nil, fmt.Errorf("jsonschema: the regular expressions of the schema expand to more than %d instructions", maxPatternSize)
	}
	return p, nil
}
