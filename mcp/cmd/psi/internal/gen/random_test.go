// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gen_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/cmd/psi/internal/gen"
)

// TestRandomSchemas generates clients for valid schemas with random combinations of
// keywords.
func TestRandomSchemas(t *testing.T) {
	for seed := range uint64(100) {
		r := randomizer{rand.New(rand.NewPCG(seed, 0))}
		var tools []*mcp.Tool
		for i := range 3 {
			tools = append(tools, &mcp.Tool{Name: r.name(), InputSchema: r.root(t), OutputSchema: r.root(t), Description: fmt.Sprint(i)})
		}
		source, err := gen.Generate(&gen.Server{Name: "random", Tools: tools}, "")
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		typeCheck(t, source)
	}
}

type randomizer struct{ *rand.Rand }

func (r randomizer) root(t *testing.T) json.RawMessage {
	schema := r.schema(4)
	if obj, ok := schema.(map[string]any); ok {
		obj["$defs"] = map[string]any{"A": r.schema(3), "b c": r.schema(2), "Input": r.schema(2)}
		if r.IntN(2) == 0 {
			obj["type"] = "object"
		}
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jsonschema.Compile(raw, nil); err != nil {
		t.Logf("not a schema: %v", err)
	}
	return raw
}

func pick[T any](r randomizer, list ...T) T { return list[r.IntN(len(list))] }

func (r randomizer) name() string {
	return pick(r, "a", "A", "b c", "B_C", "id", "user-id", "ID", "Extra", "", "-", "1", "näme", "名", "a,b", "Client", "text", "input", "output", "type")
}

func (r randomizer) schema(depth int) any {
	if r.IntN(20) == 0 {
		return r.IntN(2) == 0
	}
	s := map[string]any{}
	if r.IntN(4) > 0 {
		s["type"] = pick[any](r, "string", "integer", "number", "boolean", "array", "object", "object", []string{"string", "null"}, []string{"object", "null"}, []string{"integer", "string"})
	}
	for range r.IntN(3) {
		r.keyword(s, depth)
	}
	return s
}

func (r randomizer) keyword(s map[string]any, depth int) {
	switch r.IntN(14) {
	case 0:
		s["enum"] = pick(r, []any{"a", "b", "A"}, []any{1, 2}, []any{1.5}, []any{true}, []any{nil}, []any{"", nil, "+", "-"}, []any{1, "a"}, []any{[]any{}})
	case 1:
		s["const"] = pick[any](r, "a", 1, nil, true)
	case 2:
		s["format"] = pick(r, "date-time", "uri")
	case 3:
		s["contentEncoding"] = "base64"
	case 4:
		s["description"] = pick(r, "what it is", "*/ // \n\n\n- list\n\tcode", "")
	case 5:
		s["default"] = pick[any](r, "a", 1, nil, []any{})
	case 6:
		s["title"] = r.name()
	case 7:
		s["$ref"] = pick(r, "#", "#/$defs/A", "#/$defs/b%20c", "#/$defs/Input")
	}
	if depth == 0 {
		return
	}
	switch r.IntN(7) {
	case 0, 1:
		properties := map[string]any{}
		for range r.IntN(4) {
			properties[r.name()] = r.schema(depth - 1)
		}
		s["properties"] = properties
		s["required"] = []string{r.name() + "x", "a", "id"}
	case 2:
		s["items"] = r.schema(depth - 1)
	case 3:
		s["additionalProperties"] = r.schema(depth - 1)
	default:
		s[pick(r, "allOf", "anyOf", "oneOf")] = []any{r.schema(depth - 1), pick[any](r, r.schema(depth-1), map[string]any{"type": "null"})}
	}
}
