// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/go-psi/psi/jsonschema"
)

func TestProofAllocatesNothing(t *testing.T) {
	s := compile(t, order, &jsonschema.Options{AssertFormats: true})
	data := []byte(`{"item":"abc","colour":"red","qty":95,"size":1.25,"when":"2026-01-31T13:00:00Z","tags":["a","b"],"to":{"zip":"x"},"v":2}`)
	if !jsonschema.HasProof(s) || s.Validate(context.Background(), data) != nil {
		t.Fatalf("proof %t, %v", jsonschema.HasProof(s), s.Validate(context.Background(), data))
	}
	allocs := testing.AllocsPerRun(200, func() {
		if s.Validate(context.Background(), data) != nil {
			t.Fatal("not valid")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// The proof proves exactly the values marked as proved, all of which are valid.
func TestProof(t *testing.T) {
	tests := []struct {
		schema, data string
		proved       bool
	}{
		{`true`, `[{"a":[null,1.5,true]}]`, true},
		{`{}`, `"x"`, true},
		{`{"type":"integer"}`, `9007199254740993`, true},
		{`{"type":"integer"}`, `-1.00`, true},
		{`{"type":"integer"}`, `1e2`, false},
		{`{"type":"number"}`, `1e2`, true},
		{`{"type":"integer","maximum":9007199254740992}`, `9007199254740993`, false},
		{`{"minimum":0.5}`, `0.5`, true},
		{`{"minimum":0.5}`, `0.50`, false},
		{`{"minimum":0.5}`, `1`, true},
		{`{"exclusiveMinimum":3}`, `3`, false},
		{`{"maximum":1e1000}`, `3`, true},
		{`{"multipleOf":3}`, `-9`, true},
		{`{"multipleOf":3}`, `9.0`, false},
		{`{"enum":["a\"b",1,null,true]}`, `"a\u0022b"`, true},
		{`{"enum":["a",1,null,true]}`, `1`, true},
		{`{"enum":["a",1,null,true]}`, `true`, true},
		{`{"enum":["a",1,null,true]}`, `false`, false},
		{`{"enum":["true"]}`, `true`, false},
		{`{"enum":[[1]]}`, `[1]`, false},
		{`{"const":"a","enum":["a"]}`, `"a"`, false},
		{`{"minLength":2,"maxLength":2}`, `"é\ud83d\ude00"`, true},
		{`{"maxLength":1}`, `"ab"`, false},
		{`{"pattern":"^\\n$"}`, `"\n"`, true},
		{`{"type":["string","null"]}`, `null`, true},
		{`{"anyOf":[{"type":"string","enum":["a"]},{"type":"null"}]}`, `null`, true},
		{`{"anyOf":[{"type":"string","enum":["a"]},{"type":"null"}]}`, `"a"`, true},
		{`{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `"a"`, false},
		{`{"properties":{"a":{"type":"null"}}}`, `{"b":1,"a":null}`, true},
		{`{"properties":{"a":{"type":"null"}}}`, `{"A":1}`, true},
		{`{"properties":{"a":true},"additionalProperties":false}`, `{"A":1}`, false},
		{`{"properties":{"a":false}}`, `{"b":1}`, true},
		{`{"properties":{"a":false}}`, `{"a":1}`, false},
		{`{"required":["a"]}`, `{"a":1}`, true},
		{`{"required":["a"]}`, `{}`, false},
		{`{"required":["a"],"additionalProperties":{"type":"integer"}}`, `{"a":"x"}`, false},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, `"x"`, true},
		{`{"$ref":"#/$defs/a~1b","$defs":{"a/b":{"$ref":"#/$defs/c"},"c":{"items":{"$ref":"#"}}}}`, `[[[]]]`, true},
		{`{"$ref":"#"}`, `1`, false},
		{`{"uniqueItems":true}`, `[1]`, true},
		{`{"uniqueItems":true}`, `[1,2]`, false},
		{`{"multipleOf":0.5}`, `1.5`, false},
		{`{"oneOf":[{"const":"a","title":"A"},{"const":1}]}`, `"a"`, true},
		{`{"oneOf":[{"const":"a","title":"A"},{"const":"a"}]}`, `"b"`, false},
		{`{"enum":["a"],"anyOf":[{"const":"a"}]}`, `"a"`, false},
		{`{"x-own":1,"unknown":2}`, `1`, false},
		{`{"x-own":1,"title":"t","default":2}`, `1`, true},
		{`{"$id":"https://example.com/"}`, `1`, false},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","type":"string"}`, `"x"`, true},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","type":"string"}`, `"x"`, false},
		{`{"items":{"type":"integer"},"minItems":1,"maxItems":2}`, `[1,2]`, true},
		{`{"items":{"type":"integer"},"minItems":1,"maxItems":2}`, `[1,2,3]`, false},
		{`true`, `{"a":1,"a":2}`, false},
		{`true`, "\"\xff\"", false},
		{`true`, `1 2`, false},
		{`true`, `1e999999999`, false},
		{`true`, ` `, false},
	}
	for _, tt := range tests {
		s := compile(t, tt.schema, nil)
		if got := jsonschema.Proves(s, []byte(tt.data)); got != tt.proved {
			t.Errorf("%s against %s: proved %t", tt.data, tt.schema, got)
		}
		if tt.proved && jsonschema.ValidateTree(s, []byte(tt.data)) != nil {
			t.Errorf("%s against %s: proved, but not valid", tt.data, tt.schema)
		}
	}
}

func TestManyProperties(t *testing.T) {
	var props, required, data []string
	for i := range 64 {
		name := fmt.Sprintf("p%d", i)
		props = append(props, fmt.Sprintf(`%q:{"type":"integer"}`, name))
		required = append(required, fmt.Sprintf("%q", name))
		data = append(data, fmt.Sprintf("%q:%d", name, i))
	}
	schema := func() string {
		return `{"properties":{` + strings.Join(props, ",") + `},"required":[` + strings.Join(required, ",") + `]}`
	}
	s := compile(t, schema(), nil)
	if !jsonschema.Proves(s, []byte("{"+strings.Join(data, ",")+"}")) {
		t.Error("64 required properties are not proved")
	}
	if jsonschema.Proves(s, []byte("{"+strings.Join(data[:63], ",")+"}")) {
		t.Error("63 of 64 required properties are proved")
	}
	required = append(required, `"more"`)
	if jsonschema.HasProof(compile(t, schema(), nil)) {
		t.Error("there is a proof for 65 required properties")
	}
}

// FuzzProof compares the proof with the validator: proved values must be valid. Schemas are
// generated from the seed. The values are data itself and values that resemble the schema.
func FuzzProof(f *testing.F) {
	f.Add(uint64(1), []byte(`{"a":1,"b":[null],"c":"x"}`))
	f.Add(uint64(2), []byte(`9007199254740993`))
	f.Add(uint64(3), []byte(`{"a":null}`))
	f.Fuzz(func(t *testing.T, seed uint64, data []byte) {
		checkProof(t, seed, data)
	})
}

func TestProofAgreesOnRandomSchemas(t *testing.T) {
	proved := 0
	for seed := range uint64(4000) {
		proved += checkProof(t, seed, []byte(`{"a":1}`))
	}
	if proved < 4000 {
		t.Errorf("only %d values proved: the test shows little", proved)
	}
}

func checkProof(t *testing.T, seed uint64, data []byte) (proved int) {
	t.Helper()
	g := schemaGenerator{rand.New(rand.NewPCG(seed, 0)), 0}
	schema := g.root()
	for _, opts := range []*jsonschema.Options{nil, {OptionalNull: true, AssertFormats: true}} {
		s := compile(t, schema, opts)
		for i := range 8 {
			if i > 0 {
				data = []byte(g.value(3))
			}
			if !jsonschema.Proves(s, data) {
				continue
			}
			proved++
			if err := jsonschema.ValidateTree(s, data); err != nil {
				t.Fatalf("proved, but not valid (%+v)\nschema %s\ndata   %s\n%v", opts, schema, data, err)
			}
		}
	}
	return proved
}

// A schemaGenerator generates schemas of the provable subset, and values that are likely
// to be valid.
type schemaGenerator struct {
	*rand.Rand
	defs int
}

func (g *schemaGenerator) root() string {
	g.defs = g.IntN(3)
	var defs []string
	for i := range g.defs {
		defs = append(defs, fmt.Sprintf(`"d%d":%s`, i, g.schema(2)))
	}
	body := strings.TrimPrefix(g.object(3), "{")
	return `{"$defs":{` + strings.Join(defs, ",") + `},` + body
}

func (g *schemaGenerator) schema(depth int) string {
	if depth == 0 {
		return g.scalarSchema()
	}
	switch g.IntN(8) {
	case 0:
		return g.object(depth - 1)
	case 1:
		return fmt.Sprintf(`{"type":"array","items":%s,"minItems":%d,"maxItems":%d}`, g.schema(depth-1), g.IntN(2), 1+g.IntN(3))
	case 2:
		return fmt.Sprintf(`{"anyOf":[%s,{"type":"null"}]}`, g.schema(depth-1))
	case 3:
		if g.defs > 0 {
			return fmt.Sprintf(`{"description":"d","$ref":"#/$defs/d%d"}`, g.IntN(g.defs))
		}
	}
	return g.scalarSchema()
}

func (g *schemaGenerator) object(depth int) string {
	var props, required []string
	for _, name := range []string{"a", "b", "c", `\"`} {
		if g.IntN(2) == 0 {
			props = append(props, fmt.Sprintf(`"%s":%s`, name, g.schema(depth)))
		}
		if g.IntN(4) == 0 {
			required = append(required, `"`+name+`"`)
		}
	}
	others := []string{"true", "false", g.schema(0)}[g.IntN(3)]
	return fmt.Sprintf(`{"type":["object","null","integer"],"properties":{%s},"required":[%s],"additionalProperties":%s}`,
		strings.Join(props, ","), strings.Join(required, ","), others)
}

func (g *schemaGenerator) scalarSchema() string {
	list := []string{
		`true`, `false`, `{}`, `{"type":"integer"}`, `{"type":"number","minimum":0.1}`, `{"maximum":9007199254740992}`,
		`{"exclusiveMinimum":-1,"exclusiveMaximum":2.50}`, `{"multipleOf":2}`, `{"enum":[1,"a",null,2.5,[1]]}`,
		`{"const":1.0}`, `{"const":null}`, `{"type":"string","minLength":1,"maxLength":2}`, `{"pattern":"^[a-z\\n]*$"}`,
		`{"type":["string","null"],"enum":["a","é"]}`, `{"type":"boolean"}`, `{"type":"null"}`,
		`{"type":"string","format":"date-time"}`, `{"format":"date"}`, `{"type":"array","items":false}`,
		`{"uniqueItems":true,"minItems":1}`, `{"uniqueItems":false}`, `{"multipleOf":0.1,"minimum":0.1}`, `{"type":["array","object","string"],"maxLength":1}`,
		`{"oneOf":[{"const":"a","title":"A"},{"const":1.0}]}`, `{"type":"string","anyOf":[{"const":"a"},{"const":"a"}],"maxLength":0}`, `{"type":"string","oneOf":[{"const":"a"}],"enumNames":["A"]}`,
		`{"anyOf":[{"const":"a"},{"type":"null"}]}`, `{"const":1,"oneOf":[{"const":1},{"const":2}]}`, `{"format":"email","minLength":3}`, `{"type":"string","format":"uri"}`, `{"enum":["email",{"a":[1.0]},[null]]}`, `{"const":{"a":1}}`,
		`{"type":"integer","minimum":9007199254740993}`, `{"enum":[9007199254740993,1e3]}`, `{"enum":[]}`,
	}
	return list[g.IntN(len(list))]
}

func (g *schemaGenerator) value(depth int) string {
	scalars := []string{
		`1`, `2`, `0`, `-0`, `1.0`, `2.50`, `0.1`, `0.10`, `1e3`, `9007199254740993`, `9007199254740992.0`, `"a"`, `"\u0061"`, `"é"`,
		`"\n"`, `""`, `"abc"`, `null`, `null`, `true`, `false`, `"2026-02-29T00:00:00Z"`, `"2026-02-28T00:00:00.5-00:30"`, `"2024-02-29"`,
		`"2016-12-31t23:59:60z"`, `"a@b.example"`, `"urn:a:b"`, `10e-1`, `100.0e-2`,
	}
	switch kind := g.IntN(6); {
	case depth > 0 && (depth == 3 || kind == 0):
		var members []string
		for _, name := range []string{"a", "b", "c", `\"`, "z"} {
			if g.IntN(3) > 0 {
				members = append(members, fmt.Sprintf(`"%s":%s`, name, g.value(depth-1)))
			}
		}
		return "{" + strings.Join(members, ", ") + "}"
	case depth > 0 && kind == 1:
		items := make([]string, g.IntN(3))
		for i := range items {
			items[i] = g.value(depth - 1)
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	return scalars[g.IntN(len(scalars))]
}

func BenchmarkValidate(b *testing.B) {
	small := compileFor(b, reflect.TypeFor[struct {
		City  string `json:"city" jsonschema:"minLength=1"`
		Unit  string `json:"unit" jsonschema:"enum=c,enum=f"`
		Days  int    `json:"days" jsonschema:"minimum=1,maximum=14"`
		Flags []bool `json:"flags"`
	}]())
	data := []byte(`{"city":"Lisbon","unit":"c","days":3,"flags":[true,false]}`)
	for name, validate := range map[string]func() error{
		"proof":   func() error { return small.Validate(context.Background(), data) },
		"tree":    func() error { return jsonschema.ValidateTree(small, data) },
		"invalid": func() error { _ = small.Validate(context.Background(), []byte(`{"city":1}`)); return nil },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := validate(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFor(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := jsonschema.For[keywords](); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := jsonschema.Compile([]byte(order), nil); err != nil {
			b.Fatal(err)
		}
	}
}
