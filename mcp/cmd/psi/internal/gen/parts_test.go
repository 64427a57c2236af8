// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gen_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/cmd/psi/internal/gen"
	"github.com/go-psi/psi/mcp/cmd/psi/internal/gen/testdata/parts"
)

// Generators of schemas wrap a reference in allOf to add a description or a default, and
// split limits from types. The type is that of what is combined.
func TestFindingR2AllOfOfOneType(t *testing.T) {
	for schema, want := range map[string]struct{ in, out string }{
		`{"allOf":[{"$ref":"#/$defs/Kind"}],"default":"A"}`:                               {"*TKind", "*TKind2"},
		`{"allOf":[{"type":"string"},{"$ref":"#/$defs/Kind"}]}`:                           {"*TKind", "*TKind2"},
		`{"allOf":[{"type":"number"},{"minimum":0}]}`:                                     {"*float64", "*float64"},
		`{"allOf":[{"type":"number"},{"type":"integer"}]}`:                                {"*int64", "*int64"},
		`{"allOf":[{"minItems":1},{"type":"array"},{"items":{"type":"string"}}]}`:         {"[]string", "[]string"},
		`{"allOf":[{"allOf":[{"type":"string"},{"minLength":1}]},{"pattern":"x"}]}`:       {"*string", "*string"},
		`{"allOf":[{"type":["string","null"]}]}`:                                          {"*string", "*string"},
		`{"allOf":[{"oneOf":[{"const":"a"},{"const":"b"}]}]}`:                             {"*TInputA", "*TOutputA"},
		`{"allOf":[{"enum":[1,2.5]}]}`:                                                    {"*float64", "*float64"},
		`{"allOf":[{"$ref":"#/$defs/Object"}],"description":"d"}`:                         {"*TObject", "*TObject2"},
		`{"allOf":[{"$ref":"#/$defs/Object"},{"properties":{"b":{"type":"boolean"}}}]}`:   {"*TInputA", "*TOutputA"},
		`{"allOf":[{"description":"d"},{"title":"t"}]}`:                                   {"any", "json.RawMessage"},
		`{"allOf":[{"type":"string"},{"type":"integer"}]}`:                                {"any", "json.RawMessage"},
		`{"allOf":[{"anyOf":[{"type":"string"},{"type":"integer"}]}]}`:                    {"any", "json.RawMessage"},
		`{"allOf":[{"$ref":"#/$defs/Loop"}]}`:                                             {"any", "json.RawMessage"},
		`{"allOf":[{"$ref":"#/$defs/Object"},{"anyOf":[{"required":["x"]},{"not":{}}]}]}`: {"*TInputA", "*TOutputA"},
	} {
		t.Run(schema, func(t *testing.T) {
			whole := `{"type":"object","properties":{"a":` + schema + `},"$defs":{"Kind":{"type":"string","enum":["A","B"]},"Object":{"type":"object","properties":{"x":{"type":"string"}}},
				"Loop":{"allOf":[{"$ref":"#/$defs/Loop"}]}}}`
			if _, err := jsonschema.Compile([]byte(whole), nil); err != nil {
				t.Fatal(err)
			}
			source := comment.ReplaceAllString(one(t, whole, whole), "")
			contains(t, source, "type TInput struct { A "+want.in+" `json:\"a,omitzero\"` }", "type TOutput struct { A "+want.out+" `json:\"a,omitzero\"` }")
		})
	}
}

// partsServer has tools whose schemas name members in alternatives and conditions.
func partsServer() *gen.Server {
	const edit = `{"type":"object","required":["a","cuts"],"properties":{"a":{"type":"string"}},
		"anyOf":[{"properties":{"b":{"type":"integer"}},"required":["b"]},{"required":["c"]}],
		"if":{"properties":{"a":{"const":"x"}}},"then":{"properties":{"d":{"type":"boolean"}}},
		"dependentSchemas":{"a":{"oneOf":[{"$ref":"#/$defs/E"}]}},"$defs":{"E":{"properties":{"e":{}}}}}`
	const kind = `{"type":"object","properties":{"kind":{"allOf":[{"$ref":"#/$defs/Kind"}],"default":"A"},"size":{"allOf":[{"type":"number"},{"minimum":0}]}},
		"$defs":{"Kind":{"enum":["A","B"]}}}`
	return &gen.Server{Name: "Parts", Tools: []*mcp.Tool{
		{Name: "edit", InputSchema: json.RawMessage(edit), OutputSchema: json.RawMessage(edit)},
		{Name: "kind", InputSchema: json.RawMessage(kind), OutputSchema: json.RawMessage(kind)},
		{Name: "connect", InputSchema: json.RawMessage(`{"type":"object","required":["connectionId"]}`)},
	}}
}

func TestPartsGolden(t *testing.T) { golden(t, "parts", partsServer()) }

// What a schema names is not lost when a value is decoded and encoded again.
func TestFindingR2RoundTrip(t *testing.T) {
	const edit = `{"a":"x","cuts":[1],"b":2,"c":null,"d":true,"e":{"f":1}}`
	for _, test := range []struct {
		value string
		into  any
	}{
		{edit, new(parts.EditInput)},
		{edit, new(parts.EditOutput)},
		{`{"kind":"B","size":1.5}`, new(parts.KindInput)},
		{`{"kind":"B","size":1.5}`, new(parts.KindOutput)},
	} {
		if err := jsonschema.Unmarshal([]byte(test.value), test.into); err != nil {
			t.Errorf("%T: %v", test.into, err)
			continue
		}
		got, err := jsonschema.Marshal(test.into)
		if err != nil || canonical(t, got) != canonical(t, []byte(test.value)) {
			t.Errorf("%T: %s became %s, %v", test.into, test.value, got, err)
		}
	}
}

// canonical returns the value with sorted names.
func canonical(t *testing.T, raw []byte) string {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	sorted, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(sorted)
}

// An object that allows no other members has none, whatever an alternative names.
func TestClosedObjectsHaveNoExtra(t *testing.T) {
	source := one(t, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false,"anyOf":[{"required":["a"]},{"required":["b"]}]}`, "")
	if strings.Contains(source, "Extra") {
		t.Errorf("there is a field for others in\n%s", source)
	}
}

// A small schema can take over a large definition many times. Written out, 48 KiB became
// 33 MB.
func TestFindingX15GeneratedTypesAreBounded(t *testing.T) {
	var properties, objects, texts []string
	for i := range 1000 {
		properties = append(properties, fmt.Sprintf(`"p%d":{"type":"string"}`, i))
		objects = append(objects, fmt.Sprintf(`"o%d":{"type":"object","allOf":[{"$ref":"#/$defs/D"},{"required":[]}]}`, i))
	}
	for i := range 2000 {
		texts = append(texts, fmt.Sprintf(`"o%d":{"$ref":"#/$defs/D"}`, i))
	}
	for name, schema := range map[string]string{
		"fields": `{"type":"object","properties":{` + strings.Join(objects, ",") + `},"$defs":{"D":{"properties":{` + strings.Join(properties, ",") + `}}}}`,
		"alternatives": `{"type":"object","properties":{` + strings.ReplaceAll(strings.Join(objects[:700], ","), `"allOf"`, `"properties":{"a":{}},"anyOf"`) +
			`},"$defs":{"D":{"properties":{` + strings.Join(properties, ",") + `}}}}`,
		"values": `{"type":"object","properties":{` + strings.Join(texts, ",") + `},"$defs":{"D":{"enum":[` + strings.TrimSuffix(strings.Repeat(`1,`, 1), ",") +
			strings.Join(numbers(3000), "") + `]}}}`,
	} {
		tool := &mcp.Tool{Name: "t", InputSchema: json.RawMessage(schema)}
		source, err := gen.Generate(&gen.Server{Name: "s", Tools: []*mcp.Tool{tool, tool}}, "p")
		if err == nil || !strings.Contains(err.Error(), `at the tool "t"`) {
			t.Errorf("%s: %d bytes of schema became %d bytes of Go, and the error is %v", name, len(schema), len(source), err)
		}
	}
}

// numbers returns n numbers that follow another one in a list.
func numbers(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf(",%d", i+2))
	}
	return list
}
