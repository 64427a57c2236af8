// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi_test

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// A sampler makes arguments that a schema allows.
type sampler struct {
	root map[string]any
	all  bool // optional members, too
	left int  // values until only required members are made
}

// sample returns arguments with a value for each required property of a schema or, if all,
// for each property.
func sample(t *testing.T, raw []byte, all bool) map[string]any {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(raw, &root); err != nil {
		t.Fatal(err)
	}
	s := &sampler{root: root, all: all, left: 500}
	return s.value(root, 0, 0).(map[string]any)
}

// value returns the n-th value of a schema.
func (s *sampler) value(schema map[string]any, depth, n int) any {
	s.left--
	if ref, ok := schema["$ref"].(string); ok && depth < 20 {
		defs, _ := s.root["$defs"].(map[string]any)
		target, _ := defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		return s.value(target, depth+1, n)
	}
	if some, ok := schema["anyOf"].([]any); ok && len(some) > 0 {
		first, _ := some[0].(map[string]any)
		return s.value(first, depth+1, n)
	}
	if enum, ok := schema["enum"].([]any); ok && len(enum) > 0 {
		return enum[n%len(enum)]
	}
	switch schema["type"] {
	case "object":
		return s.object(schema, depth)
	case "array":
		items, _ := schema["items"].(map[string]any)
		least, _ := schema["minItems"].(float64)
		list := []any{}
		if most, ok := schema["maxItems"].(float64); (depth < 8 || least > 0) && (!ok || most > 0) {
			if !ok {
				most = 2
			}
			if schema["uniqueItems"] == true {
				most = 1
			}
			least = max(least, min(most, 2))
		}
		for i := range int(least) {
			list = append(list, s.value(items, depth+1, i))
		}
		return list
	case "integer", "number":
		return number(schema, n)
	case "boolean":
		return true
	case "null":
		return nil
	}
	return text(schema, n)
}

func (s *sampler) object(schema map[string]any, depth int) map[string]any {
	obj := map[string]any{}
	props, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		property, _ := props[name].(map[string]any)
		if props["base64"] != nil && props["text"] != nil { // a file
			return map[string]any{"name": "a.txt", "text": "hello"}
		}
		// An object without members is not sent.
		if slices.Contains(required, any(name)) || s.all && depth < 4 && s.left > 0 || depth > 0 && depth < 8 && len(required)+len(obj) == 0 {
			obj[name] = s.value(property, depth+1, 0)
		}
	}
	return obj
}

func number(schema map[string]any, n int) float64 {
	step, ok := schema["multipleOf"].(float64)
	if !ok {
		step = 1
	}
	value, least := step, math.Inf(-1)
	if v, ok := schema["minimum"].(float64); ok {
		value, least = v, v
	}
	if v, ok := schema["exclusiveMinimum"].(float64); ok {
		value, least = v+step, v
	}
	if most, ok := schema["maximum"].(float64); ok && most < value {
		value = most
	}
	if below, ok := schema["exclusiveMaximum"].(float64); ok && below <= value {
		if value = below - step; value <= least {
			value = (least + below) / 2
		}
	}
	if schema["multipleOf"] != nil {
		value = math.Ceil(value/step-1e-9) * step
	}
	return value + step*float64(n)
}

var formats = map[string]string{
	"date-time": "2026-01-02T03:04:05Z", "date": "2026-01-02", "email": "ann@example.com", "uri": "https://example.com",
	"uuid": "123e4567-e89b-12d3-a456-426614174000", "byte": "aGVsbG8=",
}

// text returns a string of the format, pattern and length of a schema.
func text(schema map[string]any, n int) string {
	format, _ := schema["format"].(string)
	sample, hasFormat := formats[format]
	least, _ := schema["minLength"].(float64)
	pattern, hasPattern := schema["pattern"].(string)
	switch {
	case hasFormat && !hasPattern:
		return sample
	case hasPattern:
		for _, s := range []string{sample, strings.ToUpper(sample)} {
			if re, err := regexp.Compile(pattern); hasFormat && err == nil && re.MatchString(s) {
				return s
			}
		}
		return matching(pattern, int(least))
	}
	most, ok := schema["maxLength"].(float64)
	if !ok {
		most = 1 << 20
	}
	word := strings.Repeat("w+ /&=%?#;", 1+int(least)/10) // which must be escaped
	if n > 0 {
		word = string(rune('a'+n%26)) + word
	}
	return word[:min(max(int(least), 9), int(most), len(word))]
}

// matching returns a string that a regular expression matches, of the length if possible.
func matching(pattern string, length int) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	re = re.Simplify()
	for more := range 100 {
		if s := generate(re, more); len(s) >= length && s != "" {
			return s
		}
	}
	s := generate(re, 0) // of a pattern without an end, perhaps
	return s + strings.Repeat("a", max(0, length-len(s)))
}

// generate repeats what may be repeated more times than it must.
func generate(re *syntax.Regexp, more int) string {
	var b strings.Builder
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		return string(pick(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "a"
	case syntax.OpCapture:
		return generate(re.Sub[0], more)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			b.WriteString(generate(sub, more))
		}
	case syntax.OpAlternate:
		return generate(re.Sub[0], more)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		times := more
		if re.Op == syntax.OpPlus {
			times++
		}
		if re.Op == syntax.OpQuest {
			times = min(times, 1)
		}
		for range times {
			b.WriteString(generate(re.Sub[0], more))
		}
	}
	return b.String()
}

// pick returns a character of a class, a letter or a digit if there is one.
func pick(class []rune) rune {
	for _, want := range "a1A-_ " {
		for i := 0; i < len(class); i += 2 {
			if class[i] <= want && want <= class[i+1] {
				return want
			}
		}
	}
	return class[0]
}
