// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package skills

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/go-psi/psi/internal/strictjson"
)

// Bounds of front matter. References in YAML can make a small text a huge value.
const (
	maxFrontmatter = 64 << 10 // bytes
	maxValues      = 10_000
	maxDepth       = 32
)

// ParseFrontmatter returns the front matter of a SKILL.md: the YAML between a first line
// "---" and the next one. Its values are those that JSON has; dates are texts. It returns an
// error if there is no front matter, if it is no YAML, has a field twice, or has a value that
// JSON does not have.
func ParseFrontmatter(text []byte) (Frontmatter, error) {
	block, err := frontmatterIn(text)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Load(block, &doc); err != nil {
		return nil, fmt.Errorf("the front matter is not YAML: %w", err)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("the front matter has no fields such as name: refunds")
	}
	var c converter
	value, err := c.convert(doc.Content[0], 0)
	if err != nil {
		return nil, fmt.Errorf("the front matter: %w", err)
	}
	f := Frontmatter{}
	for field, v := range value.(map[string]any) {
		if f[field], err = strictjson.Marshal(v); err != nil {
			return nil, fmt.Errorf("the front matter: %s: %w", field, err)
		}
	}
	return f, nil
}

// frontmatterIn returns the YAML of the front matter of a text.
func frontmatterIn(text []byte) ([]byte, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	if !isDelimiter(first) {
		return nil, errors.New("there is no front matter: the first line must be ---")
	}
	for end := 0; end < len(rest); {
		line, _, _ := bytes.Cut(rest[end:], []byte("\n"))
		if isDelimiter(line) {
			if !utf8.Valid(rest[:end]) {
				return nil, errors.New("the front matter is not valid UTF-8")
			}
			return rest[:end], nil
		}
		if end += len(line) + 1; end > maxFrontmatter {
			return nil, fmt.Errorf("the front matter is longer than %d bytes, or has no end: a line ---", maxFrontmatter)
		}
	}
	return nil, errors.New("the front matter has no end: a line ---")
}

func isDelimiter(line []byte) bool { return string(bytes.TrimRight(line, " \t\r")) == "---" }

// A converter makes YAML values JSON values.
type converter struct{ values int }

func (c *converter) convert(n *yaml.Node, depth int) (any, error) {
	if c.values++; c.values > maxValues {
		return nil, fmt.Errorf("line %d: it has more than %d values", n.Line, maxValues)
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("line %d: it is nested more than %d levels deep", n.Line, maxDepth)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return c.convert(n.Alias, depth+1)
	case yaml.MappingNode:
		return c.convertMapping(n, depth)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			v, err := c.convert(item, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.ScalarNode:
		return scalar(n)
	}
	return nil, fmt.Errorf("line %d: it has a value that JSON does not have", n.Line)
}

func (c *converter) convertMapping(n *yaml.Node, depth int) (any, error) {
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: the name of a field is not a text", key.Line)
		}
		if _, twice := m[key.Value]; twice {
			return nil, fmt.Errorf("line %d: the field %q is there twice", key.Line, key.Value)
		}
		v, err := c.convert(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		m[key.Value] = v
	}
	return m, nil
}

// scalar returns the value of a scalar. What YAML takes for a date is a text.
func scalar(n *yaml.Node) (v any, err error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!str", "!!timestamp", "!!merge":
		return n.Value, nil
	case "!!bool", "!!int", "!!float":
		err = n.Decode(&v)
	default:
		return nil, fmt.Errorf("line %d: the tag %s is not one of JSON's types", n.Line, n.Tag)
	}
	if f, ok := v.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
		err = errors.New("JSON has no such number")
	}
	if err != nil {
		return nil, fmt.Errorf("line %d: %q: %w", n.Line, n.Value, err)
	}
	return v, nil
}

// How many characters these fields have at most (agentskills.io).
const (
	maxDescription   = 1024
	maxCompatibility = 500
)

// check returns what is wrong with the front matter of a skill in a directory of a name.
func (f Frontmatter) check(dir string) error {
	name, description := f.Name(), f.Description()
	switch {
	case name == "":
		return errors.New("the front matter has no name, or one that is not a text")
	case !isName(name):
		return fmt.Errorf("the name %.80q is not one of a skill: 1 to 64 of the characters a to z, 0 to 9 and -, with no hyphen at an end or beside another", name)
	case name != dir:
		return fmt.Errorf("the name is %q, but the directory is %q: they must be the same", name, dir)
	case strings.TrimSpace(description) == "":
		return errors.New("the front matter has no description: what the skill does, and when to use it")
	case utf8.RuneCountInString(description) > maxDescription:
		return fmt.Errorf("the description has %d characters, and the limit is %d", utf8.RuneCountInString(description), maxDescription)
	}
	return nil
}

// isName reports whether the name is one of a skill (agentskills.io).
func isName(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" &&
		name[0] != '-' && name[len(name)-1] != '-' && !strings.Contains(name, "--")
}

// canonical returns the values of the front matter, in which equal numbers are equal.
func (f Frontmatter) canonical() map[string]any {
	values := make(map[string]any, len(f))
	for field, raw := range f {
		var v any
		if json.Unmarshal(raw, &v) != nil {
			v = string(raw)
		}
		values[field] = v
	}
	return values
}

// differences returns the names of the fields in which f and other differ, sorted.
func (f Frontmatter) differences(other Frontmatter) []string {
	mine, theirs := f.canonical(), other.canonical()
	fields := map[string]bool{}
	for field := range mine {
		fields[field] = true
	}
	for field := range theirs {
		fields[field] = true
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(fields)), func(field string) bool {
		a, inMine := mine[field]
		b, inTheirs := theirs[field]
		return inMine == inTheirs && reflect.DeepEqual(a, b)
	})
}
