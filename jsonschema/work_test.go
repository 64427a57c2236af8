// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/go-psi/psi/jsonschema"
)

// filter is the schema of a filter expression as used by search tools. Three alternatives
// lead to the same member.
const filter = `{"$ref":"#/$defs/filter","$defs":{"filter":{"oneOf":[
	{"type":"object","properties":{"op":{"const":"and"},"args":{"type":"array","items":{"$ref":"#/$defs/filter"}}},"required":["op","args"]},
	{"type":"object","properties":{"op":{"const":"or"}, "args":{"type":"array","items":{"$ref":"#/$defs/filter"}}},"required":["op","args"]},
	{"type":"object","properties":{"op":{"const":"not"},"args":{"type":"array","items":{"$ref":"#/$defs/filter"}}},"required":["op","args"]},
	{"type":"object","properties":{"field":{"type":"string"},"value":{"type":"integer"}},"required":["field","value"],"additionalProperties":false}
]}}}`

// expression returns a filter of the given depth.
func expression(depth int, innermost string) []byte {
	return []byte(strings.Repeat(`{"op":"not","args":[`, depth) + innermost + strings.Repeat(`]}`, depth))
}

// The work grows linearly with the depth of the value. Without remembered outcomes,
// validating a filter of 260 bytes takes 21 seconds, and three times as long for each
// additional level.
func TestFindingS4WorkIsLinearInDepth(t *testing.T) {
	s := compile(t, filter, nil)
	for _, innermost := range []string{`{"field":"a","value":1}`, `{"field":"a","value":"1"}`} {
		var before int
		for depth := 0; depth <= 60; depth += 10 {
			work, err := jsonschema.Work(s, expression(depth, innermost))
			if errors.Is(err, jsonschema.ErrTooMuchWork) {
				t.Fatalf("depth %d: %v", depth, err)
			}
			if depth > 20 && work-before > 1000 {
				t.Errorf("depth %d takes %d, ten levels less took %d", depth, work, before)
			}
			before = work
		}
		if before > 10_000 {
			t.Errorf("sixty levels take %d", before)
		}
	}
}

// An error deep inside a filter is explained like one in a shallow filter.
func TestFindingS4DeepFilterIsExplained(t *testing.T) {
	s := compile(t, filter, nil)
	const depth = 13
	if err := s.Validate(t.Context(), expression(depth, `{"field":"a","value":1}`)); err != nil {
		t.Errorf("a valid filter: %v", err)
	}
	err := s.Validate(t.Context(), expression(depth, `{"field":"a","value":"1"}`))
	want := strings.Repeat("/args/0", depth) + `/value: expected integer, got string "1"`
	if errorText(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Outcomes are also remembered in alternatives that only decide, whose errors the library
// leaves empty.
func TestFindingS4NegationsAreRemembered(t *testing.T) {
	s := compile(t, `{"$ref":"#/$defs/d","$defs":{"d":{"anyOf":[
		{"not":{"properties":{"a":{"$ref":"#/$defs/d"}},"required":["a"]}},
		{"not":{"properties":{"a":{"$ref":"#/$defs/d"},"b":true},"required":["a"]}},
		{"if":{"properties":{"a":{"$ref":"#/$defs/d"}}},"then":false}
	]}}}`, nil)
	deep := strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat(`}`, 100)
	if work, err := jsonschema.Work(s, []byte(deep)); work > 20_000 || errors.Is(err, jsonschema.ErrTooMuchWork) {
		t.Errorf("took %d: %v", work, err)
	}
}

// Outcomes are not remembered next to keywords that make them depend on the surrounding
// schemas. Such alternatives take their full work, up to the limit.
func TestFindingS4UnevaluatedIsBounded(t *testing.T) {
	s := jsonschema.LimitWork(compile(t, strings.Replace(filter, `"oneOf"`, `"unevaluatedProperties":false,"oneOf"`, 1), nil), 100_000)
	if err := s.Validate(t.Context(), expression(4, `{"field":"a","value":1}`)); err != nil {
		t.Errorf("four levels: %v", err)
	}
	err := s.Validate(t.Context(), expression(40, `{"field":"a","value":1}`))
	if !errors.Is(err, jsonschema.ErrTooMuchWork) || !strings.Contains(err.Error(), "multiply with the depth") {
		t.Errorf("forty levels: %v", err)
	}
	if _, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		t.Error("a value of which nothing is known is said to be invalid")
	}
}

// Work is limited if each of many schemas applies to each of many items. Otherwise, a few
// KB of schema and value would take seconds.
func TestFindingCM17SchemasTimesValuesAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, `,{"maximum":%d}`, i+5)
	}
	s := jsonschema.LimitWork(compile(t, `{"items":{"allOf":[true`+b.String()+`]}}`, nil), 50_000)
	if err := s.Validate(t.Context(), []byte(`[1,2,3]`)); err != nil {
		t.Error(err)
	}
	err := s.Validate(t.Context(), []byte("[1"+strings.Repeat(",1", 5000)+"]"))
	if !errors.Is(err, jsonschema.ErrTooMuchWork) || !strings.Contains(err.Error(), "too many schemas") {
		t.Errorf("got %v", err)
	}
}

// Costly keywords count as work even though each of these schemas has few subschemas.
func TestFindingCM17CostlyKeywordsAreBounded(t *testing.T) {
	list := func(of string, n int) string { return "[" + of + strings.Repeat(","+of, n-1) + "]" }
	numbers, err := json.Marshal(make([]int, 2000))
	if err != nil {
		t.Fatal(err)
	}
	nested := "0"
	for i := range 100 {
		nested = fmt.Sprintf("[%d,%s]", i, nested)
	}
	for name, tt := range map[string]struct{ schema, data string }{
		"pattern":            {`{"minProperties":0,"pattern":"^(x+x+){100}z$"}`, `"` + strings.Repeat("x", 50_000) + `"`},
		"pattern of a proof": {`{"pattern":"^(x+x+){100}z$"}`, `"` + strings.Repeat("x", 50_000) + `"`},
		"names":              {`{"patternProperties":{"^(x+x+){100}z$":true}}`, `{"` + strings.Repeat("x", 50_000) + `":1}`},
		"enum":               {`{"items":{"enum":` + string(numbers) + `}}`, list("1", 1000)},
		"unique":             {`{"uniqueItems":true,"items":{"$ref":"#"}}`, nested},
		"large numbers":      {`{"items":{"maximum":5,"minProperties":0}}`, list("1e-999", 2000)},
		"property names":     {`{"propertyNames":{"allOf":[{"minLength":1}` + strings.Repeat(`,{"minLength":1}`, 500) + `]}}`, manyMembers(200)},
	} {
		s := jsonschema.LimitWork(compile(t, tt.schema, nil), 20_000)
		if err := s.Validate(t.Context(), []byte(tt.data)); !errors.Is(err, jsonschema.ErrTooMuchWork) {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}

func manyMembers(n int) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"member%d":1`, i)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// A short regular expression that would expand to gigabytes is rejected.
func TestFindingCM17PatternsAreBounded(t *testing.T) {
	_, err := jsonschema.Compile([]byte(`{"pattern":"`+strings.Repeat("(a{1000}b{1000})", 100)+`"}`), nil)
	if err == nil || !strings.Contains(err.Error(), "regular expressions") {
		t.Errorf("got %v", err)
	}
}

// Long chains of references are rejected, because the library detects cycles by comparing
// each schema of a chain with all schemas before it.
func TestFindingCM17ChainsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, `"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
	}
	_, err := jsonschema.Compile([]byte(`{"items":{"$ref":"#/$defs/d0"},"$defs":{`+b.String()+`"d2000":{}}}`), nil)
	if err == nil || !strings.Contains(err.Error(), "chain of more than 500") {
		t.Errorf("got %v", err)
	}
}

// An endingContext is done once its Err method has been called a number of times.
type endingContext struct {
	context.Context //nolint:containedctx // it is one
	left            int
}

func (c *endingContext) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// Validation stops if its context is done, before or while it runs.
func TestFindingS4ContextEndsValidation(t *testing.T) {
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the caller left"))
	large := []byte("[1" + strings.Repeat(",1", 100_000) + "]")
	for name, schema := range map[string]string{
		"validator": `{"items":{"anyOf":[{"type":"string"},{"type":"integer"}]}}`,
		"explained": `{"items":{"type":"string"}}`,
	} {
		s := compile(t, schema, nil)
		if err := s.Validate(gone, large); err == nil || !strings.Contains(err.Error(), "the caller left") {
			t.Errorf("%s: %.200v", name, err)
		}
		asked := &endingContext{t.Context(), 10}
		if err := s.Validate(asked, large); err == nil || !strings.Contains(err.Error(), "stopped") || asked.left < -2 {
			t.Errorf("%s: %.200v, and asked %d times more", name, err, -asked.left)
		}
	}
}

// If an object has many invalid members, the first are listed in a fixed order and the
// others are counted.
func TestFindingW18ManyWrongMembers(t *testing.T) {
	s := compile(t, `{"additionalProperties":{"type":"string"}}`, nil)
	const n = 50_000
	err := s.Validate(t.Context(), []byte(manyMembers(n)))
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok || len(invalid.Problems)+invalid.More != n {
		t.Fatalf("got %.200v", err)
	}
	if got := invalid.Problems[3].Pointer; got != "/member100" {
		t.Errorf("the fourth problem is at %s", got)
	}
}

// The closest of many alternatives is found, wherever it is and wherever it fails.
func TestFindingS4NearestOfManyAlternatives(t *testing.T) {
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, `,{"type":"object","properties":{"kind":{"const":"k%d"},"size":{"type":"integer"}},"required":["kind"]}`, i)
	}
	s := compile(t, `{"type":"array","items":{"anyOf":[`+b.String()[1:]+`]}}`, nil)
	err := s.Validate(t.Context(), []byte(`[{"kind":"k90","size":"x"},{"kind":"k7","size":1},{"kind":"k3","size":null}]`))
	want := "/0/size: expected integer, got string \"x\"\n/2/size: expected integer, got null"
	if errorText(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// A long name above many values is not copied for each of them, neither where null is taken
// for an absent property, nor where problems are explained. Without that, 300 KiB took 18
// seconds, and 400 KiB 36.
func TestLongNameAboveManyValues(t *testing.T) {
	s := compile(t, `{"properties":{"a":{"type":"string"}},"additionalProperties":{"type":"array","items":{"type":"integer"}}}`,
		&jsonschema.Options{OptionalNull: true})
	for _, item := range []string{`0`, `""`, `null`, `{"a":null}`} {
		value := `{"a":null,"z":"","` + strings.Repeat("x", 100_000) + `":[` + strings.Repeat(item+",", 20_000) + item + `]}`
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := s.Validate(t.Context(), []byte(value)); err == nil {
			t.Errorf("a string at /z is accepted")
		}
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 200 {
			t.Errorf("items %s: %d MiB for %d bytes", item, got, len(value))
		}
	}
}
