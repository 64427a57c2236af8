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
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"

	"github.com/go-psi/psi/internal/strictjson"
)

// Limits of front matter. References in YAML can expand a small text into a huge value.
const (
	maxFrontmatter = 64 << 10 // bytes
	maxValues      = 10_000
	maxDepth       = 32
)

// ParseFrontmatter returns the front matter of a SKILL.md: the YAML between a first line
// "---" and the next one. Its values are JSON values; dates are strings. It returns an
// error if there is no front matter, if it is not YAML, has a field twice, or has a value
// that JSON cannot represent.
func ParseFrontmatter(text []byte) (Frontmatter, error) {
	block, err := frontmatterIn(text)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Load(block, &doc); err != nil {
		return nil, notYAML(block, err)
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

// unquoted matches a field with a text that YAML takes for another field, because it contains
// a colon followed by a space: the most frequent mistake.
var unquoted = regexp.MustCompile(`^\s*([\w-]+):\s+[^\s"'|>\[{&*!#].*:\s`)

// notYAML explains why the block is not YAML, whose parser returned err.
func notYAML(block []byte, err error) error {
	line := 1 // the delimiter
	for text := range bytes.Lines(block) {
		line++
		if field := unquoted.FindSubmatch(text); field != nil {
			return fmt.Errorf("line %d: put the text of %s into quotes, because it contains a colon followed by a space", line, field[1])
		}
	}
	return fmt.Errorf("the front matter is not YAML: %w", err)
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

// A converter converts YAML values to JSON values. It reads the nodes of the YAML, so dates
// and keys stay texts, a duplicate field is an error, and aliases cannot turn a small text
// into a large value.
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
			return nil, fmt.Errorf("line %d: duplicate field %q", key.Line, key.Value)
		}
		v, err := c.convert(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		m[key.Value] = v
	}
	return m, nil
}

// scalar returns the value of a scalar.
func scalar(n *yaml.Node) (v any, err error) {
	switch tag := n.ShortTag(); {
	case n.Style == 0: // neither quoted nor tagged
		v, err = plainScalar(n.Value)
	case tag == "!!null":
		return nil, nil
	case tag == "!!str", tag == "!!timestamp":
		return n.Value, nil
	case tag == "!!bool", tag == "!!int", tag == "!!float":
		err = n.Decode(&v)
	default:
		return nil, fmt.Errorf("line %d: the tag %s is not one of JSON's types", n.Line, n.Tag)
	}
	if f, ok := v.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
		err = errNoNumber
	}
	if err != nil {
		return nil, fmt.Errorf("line %d: %q: %w", n.Line, n.Value, err)
	}
	return v, nil
}

var errNoNumber = errors.New("JSON cannot represent this number; quote it if it is a string")

// Numbers in the core schema of YAML 1.2 (10.3.2).
var (
	integer = regexp.MustCompile(`^([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$`)
	float   = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	noFloat = regexp.MustCompile(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// plainScalar returns the value of a scalar in the core schema of YAML 1.2, as hosts in
// other languages interpret it. The YAML package also accepts dates and the numbers of YAML
// 1.1, such as 1_000 and 014.
func plainScalar(text string) (any, error) {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return nil, nil
	case "true", "True", "TRUE":
		return true, nil
	case "false", "False", "FALSE":
		return false, nil
	}
	switch {
	case integer.MatchString(text):
		return parseInteger(text)
	case float.MatchString(text):
		return strconv.ParseFloat(text, 64)
	case noFloat.MatchString(text):
		return nil, errNoNumber
	}
	return text, nil
}

// parseInteger returns the JSON of an integer, with all its digits.
func parseInteger(text string) (jsontext.Value, error) {
	base := 10
	switch digits, isOctal := strings.CutPrefix(text, "0o"); {
	case isOctal:
		text, base = digits, 8
	case strings.HasPrefix(text, "0x"):
		text, base = text[2:], 16
	}
	n, ok := new(big.Int).SetString(text, base)
	if !ok || n.BitLen() > 1023 { // no float64 is much larger
		return nil, errNoNumber
	}
	return jsontext.Value(n.String()), nil
}

// Maximum lengths of fields, in characters (agentskills.io).
const (
	maxDescription   = 1024
	maxCompatibility = 500
)

// check returns an error if the front matter is invalid for a skill in the directory dir.
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

// isName reports whether name is a valid name of a skill (agentskills.io).
func isName(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" &&
		name[0] != '-' && name[len(name)-1] != '-' && !strings.Contains(name, "--")
}

// canonical returns the values of the front matter in a form in which equal numbers are
// equal.
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
