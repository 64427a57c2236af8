// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/jsonschema"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestGolden(t *testing.T) {
	for _, tt := range golden {
		t.Run(tt.name, func(t *testing.T) {
			got, err := jsonschema.ForType(tt.typ)
			if (err != nil) != tt.failing {
				t.Fatalf("ForType(%v): error %v, want an error: %t", tt.typ, err, tt.failing)
			}
			if err != nil {
				got = []byte(err.Error())
			} else {
				got = indent(t, got)
			}
			file := filepath.Join("testdata", tt.name+".golden")
			if *update {
				if err := os.WriteFile(file, append(got, '\n'), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != strings.TrimSuffix(string(want), "\n") {
				t.Errorf("%s differs; if that is meant, run the test with -update. Got:\n%s", file, got)
			}
		})
	}
}

func indent(t *testing.T, schema []byte) []byte {
	t.Helper()
	v := jsontext.Value(bytes.Clone(schema))
	if err := v.Compact(); err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	if !bytes.Equal(v, schema) {
		t.Errorf("schema is not compact: %s", schema)
	}
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		t.Fatal(err)
	}
	return v
}

// T55: inferred schemas pass the lint of every provider.
func TestInferredIsPortable(t *testing.T) {
	for _, tt := range golden {
		if tt.failing || tt.name == "scalar" || tt.name == "list" { // not the input schema of a tool
			continue
		}
		schema, err := jsonschema.ForType(tt.typ)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range jsonschema.Lint(schema) {
			t.Errorf("%s: %v", tt.name, f)
		}
	}
}

// Every inferred schema can be proved, unless a method supplied it.
func TestInferredIsProvable(t *testing.T) {
	for _, tt := range golden {
		if tt.failing || tt.name == "keywords" { // uniqueItems, multipleOf 0.5
			continue
		}
		if s := compileFor(t, tt.typ); !jsonschema.HasProof(s) {
			t.Errorf("%s: no proof", tt.name)
		}
	}
}

func compileFor(t testing.TB, typ reflect.Type) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.ForType(typ)
	if err != nil {
		t.Fatal(err)
	}
	s, err := jsonschema.Compile(schema, &jsonschema.Options{AssertFormats: true})
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return s
}

// T56: a type used in several places and concurrently has its full schema everywhere.
func TestForConcurrent(t *testing.T) {
	type here struct{ A, B pair[point, node] }
	var wg sync.WaitGroup
	results := make([]string, 8)
	for i := range results {
		wg.Go(func() {
			schema, err := jsonschema.For[here]()
			if err != nil {
				t.Error(err)
			}
			results[i] = string(schema)
		})
	}
	wg.Wait()
	for _, r := range results {
		if r != results[0] {
			t.Errorf("schemas differ:\n%s\n%s", r, results[0])
		}
	}
	if n := strings.Count(results[0], `"x":{"type":"integer"}`); n != 2 {
		t.Errorf("point is expanded %d times, want 2: %s", n, results[0])
	}
}

// T57: a recursive type validates a deep value, and its root has the type "object".
func TestRecursive(t *testing.T) {
	s := compileFor(t, reflect.TypeFor[node]())
	deep := `{"value":1,"next":{"value":2,"next":{"value":3,"next":{"value":4,"next":{"value":5}}}}}`
	if err := s.Validate(t.Context(), []byte(deep)); err != nil {
		t.Error(err)
	}
	bad := strings.Replace(deep, "5", `"five"`, 1)
	err := s.Validate(t.Context(), []byte(bad))
	if err == nil || !strings.Contains(err.Error(), "/next/next/next/next/value: expected integer, got string") {
		t.Errorf("got %v", err)
	}
}

func TestResultBelongsToCaller(t *testing.T) {
	a, err := jsonschema.For[point]()
	if err != nil {
		t.Fatal(err)
	}
	want := string(a)
	clear(a)
	if b, _ := jsonschema.For[*point](); string(b) != want {
		t.Errorf("after the first result was changed: %q", b)
	}
}

// T58: a time is a date-time everywhere, and may be null only behind a pointer.
func TestTimes(t *testing.T) {
	type times struct {
		Plain   time.Time    `json:"plain"`
		Pointer *time.Time   `json:"pointer"`
		Outer   embeddedTime `json:"outer"`
	}
	s := compileFor(t, reflect.TypeFor[times]())
	const moment = `"2026-01-31T13:00:00Z"`
	for data, valid := range map[string]bool{
		`{"plain":` + moment + `,"pointer":null,"outer":` + moment + `}`:           true,
		`{"plain":` + moment + `,"outer":` + moment + `}`:                          true,
		`{"plain":null,"outer":` + moment + `}`:                                    false,
		`{"plain":` + moment + `,"outer":{"Time":` + moment + `,"Lost":1}}`:        false,
		`{"plain":` + moment + `,"pointer":"yesterday","outer":` + moment + `}`:    false,
		`{"plain":` + moment + `,"pointer":` + moment + `,"outer":` + moment + `}`: true,
	} {
		if err := s.Validate(t.Context(), []byte(data)); (err == nil) != valid {
			t.Errorf("%s: %v", data, err)
		}
	}
}

type selfPointer *selfPointer

type brokenRef struct{}

func (brokenRef) JSONSchema() string { return "" } // has another return type, so it is not called

func TestForErrors(t *testing.T) {
	tests := []struct {
		typ  reflect.Type
		want string
	}{
		{nil, "no type"},
		{reflect.TypeFor[struct{ P selfPointer }](), "struct.P: a pointer type that points to itself"},
		{structOf("A", reflect.TypeFor[int](), `json:"a,omitEmpty"`), "omitEmpty"},
		{reflect.TypeFor[struct{ hidden int }](), "no exported fields"},
		{structOf("A", reflect.TypeFor[int](), `jsonschema:"minimum=007"`), "minimum=007 in the jsonschema tag: it must be a number"},
	}
	for _, tt := range tests {
		_, err := jsonschema.ForType(tt.typ)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ForType(%v): error %v, want %q", tt.typ, err, tt.want)
		}
	}
	if _, err := jsonschema.For[brokenRef](); err != nil {
		t.Error(err)
	}
}

// A type whose expansion doubles at every level is rejected at the limit.
func TestForBounded(t *testing.T) {
	typ := reflect.TypeFor[int]()
	for range 20 {
		typ = reflect.StructOf([]reflect.StructField{{Name: "A", Type: typ}, {Name: "B", Type: typ}})
	}
	_, err := jsonschema.ForType(typ)
	if err == nil || !strings.Contains(err.Error(), "nodes") {
		t.Errorf("error %v", err)
	}
}

func FuzzTags(f *testing.F) {
	f.Add("name,omitempty", "minimum=1,enum=2,default=x", "text")
	f.Add(",string", `pattern=^a\,b$,nullable,required`, "")
	f.Add("a", "oneof_required=x,anyof_type=string;integer,format=date", "<&>")
	f.Fuzz(func(t *testing.T, json, schema, description string) {
		tag := reflect.StructTag("json:" + strconv.Quote(json) + " jsonschema:" + strconv.Quote(schema) + " jsonschema_description:" + strconv.Quote(description))
		typ := reflect.StructOf([]reflect.StructField{
			{Name: "A", Type: reflect.TypeFor[string](), Tag: tag},
			{Name: "B", Type: reflect.TypeFor[[]int](), Tag: reflect.StructTag("jsonschema:" + strconv.Quote(schema))},
		})
		got, err := jsonschema.ForType(typ)
		if err == nil && !jsontext.Value(got).IsValid() {
			t.Errorf("not JSON: %s", got)
		}
	})
}

// An escaped comma is part of the description, and so is a keyword that follows it.
func TestEscapedComma(t *testing.T) {
	got, err := jsonschema.ForType(structOf("A", reflect.TypeFor[int](), `jsonschema:"description=or\\,nullable"`))
	if err != nil || !strings.Contains(string(got), `"or,nullable"`) {
		t.Errorf("got %s, %v", got, err)
	}
}

// Arguments are described without null, which Options.OptionalNull accepts for what is
// optional. Output schemas, which also describe what is written, keep it.
func TestFindingR24InputSchemas(t *testing.T) {
	type node struct {
		Next *node `json:"next"`
	}
	type all struct {
		Text     *string         `json:"text"`
		Required *int            `json:"required" jsonschema:"required"`
		Nullable int             `json:"nullable" jsonschema:"nullable"`
		Nodes    []*node         `json:"nodes"`
		Numbers  []*int          `json:"numbers"`
		Rates    map[string]*int `json:"rates"`
	}
	raw, err := jsonschema.ForInput[all]()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"$defs":{"node":{"properties":{"next":{"$ref":"#/$defs/node"}},"additionalProperties":false,"type":"object"}},` +
		`"properties":{"text":{"type":"string"},"required":{"type":["integer","null"]},"nullable":{"type":["integer","null"]},` +
		`"nodes":{"items":{"$ref":"#/$defs/node"},"type":"array"},"numbers":{"items":{"type":["integer","null"]},"type":"array"},` +
		`"rates":{"properties":{},"additionalProperties":{"type":"integer"},"type":"object"}},` +
		`"additionalProperties":false,"type":"object","required":["required","nullable","nodes","numbers","rates"]}`
	if string(raw) != want {
		t.Errorf("got  %s\nwant %s", raw, want)
	}
	s := compile(t, string(raw), &jsonschema.Options{OptionalNull: true})
	for value, valid := range map[string]bool{
		`{"text":null,"required":null,"nullable":null,"nodes":[{"next":null}],"numbers":[null],"rates":{"a":null}}`: true,
		`{"required":1,"nullable":1,"nodes":[null],"numbers":[],"rates":{}}`:                                        false,
		`{"required":1,"nullable":1,"nodes":null,"numbers":[],"rates":{}}`:                                          false,
	} {
		if err := s.Validate(t.Context(), []byte(value)); (err == nil) != valid {
			t.Errorf("%s: %v", value, err)
		}
	}
	if output, err := jsonschema.For[all](); err != nil || strings.Count(string(output), `"null"`) != 7 {
		t.Errorf("the schema for output is %s, %v", output, err)
	}
}
