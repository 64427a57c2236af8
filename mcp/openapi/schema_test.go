// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/openapi"
)

// TestInputSchemas shows what arguments become of the schema of a body.
func TestInputSchemas(t *testing.T) {
	const components = `"components":{"schemas":{
		"ID":{"type":"string","readOnly":true},
		"Cat":{"type":"object","properties":{"kind":{"type":"string"},"lives":{"type":"integer"}}},
		"Dog":{"type":"object","properties":{"kind":{"type":"string","enum":["dog","cat"]}}},
		"Deep":{"type":"object","properties":{"deep":{"$ref":"#/components/schemas/Deep"}}}}}`
	const cat, dog = `{"$ref":"#/components/schemas/Cat"}`, `{"$ref":"#/components/schemas/Dog"}`
	const anything = `{"items":{},"properties":{},"type":["array","boolean","null","number","object","string"]}`
	for name, test := range map[string]struct{ body, want string }{
		"read-only by reference": {
			`{"type":"object","properties":{"id":{"$ref":"#/components/schemas/ID"},"key":{"allOf":[{"$ref":"#/components/schemas/ID"}]},"name":{"type":"string"}}}`,
			`{"additionalProperties":false,"properties":{"name":{"type":"string"}},"type":"object"}`,
		},
		"read-only inside": {
			`{"type":"array","items":{"type":"object","properties":{"id":{"$ref":"#/components/schemas/ID"}}}}`,
			`{"additionalProperties":false,"properties":{"body":{"items":{"properties":{},"type":"object"},"type":"array"}},"required":["body"],"type":"object"}`,
		},
		"required, and not described": {
			`{"type":"object","required":["team"],"properties":{"name":{"type":"string"}}}`,
			`{"additionalProperties":false,"properties":{"name":{"type":"string"},"team":` + anything + `},"required":["team"],"type":"object"}`,
		},
		"required inside, and not described": {
			`{"type":"array","items":{"type":"object","required":["team"]}}`,
			`{"additionalProperties":false,"properties":{"body":{"items":{"properties":{"team":` + anything + `},"required":["team"],"type":"object"},"type":"array"}},"required":["body"],"type":"object"}`,
		},
		"names that providers reject": {
			`{"type":"object","required":["pet[name]"],"properties":{"pet[name]":{"type":"string"},"größe":{"type":"integer"}}}`,
			`{"additionalProperties":false,"properties":{"gr_e":{"type":"integer"},"pet_name":{"type":"string"}},"required":["pet_name"],"type":"object"}`,
		},
		"discriminator with a mapping": {
			`{"oneOf":[` + cat + `,` + dog + `],"discriminator":{"propertyName":"kind","mapping":{"cat":"#/components/schemas/Cat","dog":"Dog"}}}`,
			`{"additionalProperties":false,"properties":{"body":{"anyOf":[{"properties":{"kind":{"enum":["cat"],"type":"string"},"lives":{"type":"integer"}},"required":["kind"],"type":"object"},` +
				`{"properties":{"kind":{"enum":["dog"],"type":"string"}},"required":["kind"],"type":"object"}]}},"required":["body"],"type":"object"}`,
		},
		"discriminator without a mapping": {
			`{"anyOf":[` + cat + `],"discriminator":{"propertyName":"species"}}`,
			`{"additionalProperties":false,"properties":{"body":{"anyOf":[{"properties":{"kind":{"type":"string"},"lives":{"type":"integer"},"species":{"enum":["Cat"],"type":"string"}},"required":["species"],"type":"object"}]}},"required":["body"],"type":"object"}`,
		},
		"values of another type": {
			`{"type":"object","properties":{"a":{"type":"string","enum":[true,false]},"b":{"type":"array","enum":["x","y"],"items":{"type":"string"}},
				"c":{"type":"integer","enum":["x"]},"d":{"type":"integer","enum":["1","2"]}}}`,
			`{"additionalProperties":false,"properties":{"a":{"enum":["true","false"],"type":"string"},"b":{"items":{"enum":["x","y"],"type":"string"},"type":"array"},` +
				`"c":{"type":"integer"},"d":{"enum":[1,2],"type":"integer"}},"type":"object"}`,
		},
		"one member in several parts": {
			`{"allOf":[{"type":"object","properties":{"rules":{"type":"object","properties":{"in":{"type":"integer"}}}}},{"properties":{"rules":{"description":"The rules."}}}],"properties":{"rules":{"required":["in"]}}}`,
			`{"additionalProperties":false,"properties":{"rules":{"description":"The rules.","properties":{"in":{"type":"integer"}},"required":["in"],"type":"object"}},"type":"object"}`,
		},
		"only null": {
			`{"type":"object","properties":{"a":{"type":"null"},"b":{"enum":[null]},"c":{"enum":[null,{"x":1}]}}}`,
			`{"additionalProperties":false,"properties":{"a":{"type":"null"},"b":{"type":"null"},"c":` + anything + `},"type":"object"}`,
		},
		"values beside a format": {
			`{"type":"object","properties":{"day":{"type":"string","format":"date","enum":["20260102"]}}}`,
			`{"additionalProperties":false,"properties":{"day":{"enum":["20260102"],"type":"string"}},"type":"object"}`,
		},
		"patterns between slashes": {
			`{"type":"object","properties":{"a":{"type":"string","pattern":"/^[a-z]+$/"},"b":{"type":"string","pattern":"/^[a-z]+$/i"},"c":{"type":"string","pattern":"/v1/"}}}`,
			`{"additionalProperties":false,"properties":{"a":{"pattern":"^[a-z]+$","type":"string"},"b":{"type":"string"},"c":{"pattern":"/v1/","type":"string"}},"type":"object"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			doc := operation("/x", "post", fmt.Sprintf(`{"requestBody":{"required":true,"content":{"application/json":{"schema":%s}}}}`, test.body))
			doc = doc[:len(doc)-1] + "," + components + "}"
			for tool, err := range mcptest.Connect(t, serve(t, doc, &openapi.Options{Handler: echo})).Tools(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				if got := string(tool.InputSchema); got != test.want {
					t.Errorf("got  %s\nwant %s", got, test.want)
				}
			}
		})
	}
}

// Arguments with other names than the members of a body are sent under the names of the members.
func TestRenamedMembers(t *testing.T) {
	doc := operation("/x", "post", `{"requestBody":{"content":{"application/x-www-form-urlencoded":{"schema":{"type":"object","properties":{"pet[name]":{"type":"string"},"pet-name":{"type":"string"},"pet name":{"type":"string"}}}}}}}`)
	mux := serve(t, doc, &openapi.Options{Handler: echo})
	if got, want := textOf(call(t, mux, "op", `{"pet_name":"a","pet-name":"b","pet_name_body":"c"}`)), "POST /x|||pet%20name=a&pet-name=b&pet%5Bname%5D=c"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The schema of a result is smaller than that of arguments: it is only a help.
func TestLargeSchemas(t *testing.T) {
	var members []string
	for i := range 1500 {
		members = append(members, fmt.Sprintf(`"m%d":{"type":"integer"}`, i))
	}
	large := `{"type":"object","properties":{"all":{"type":"object","properties":{` + strings.Join(members, ",") + `}}}}`
	doc := operation("/x", "post", fmt.Sprintf(`{"requestBody":{"content":{"application/json":{"schema":%s}}},
		"responses":{"200":{"content":{"application/json":{"schema":%s}}}}}`, large, large))
	for tool, err := range mcptest.Connect(t, serve(t, doc, &openapi.Options{Handler: echo})).Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if in, out := string(tool.InputSchema), string(tool.OutputSchema); !strings.Contains(in, `"m1499"`) || out != `{"properties":{"all":{"properties":{},"type":"object"}},"type":"object"}` {
			t.Errorf("got %d bytes and %.300s", len(in), out)
		}
	}
}

// A body of text is as the document describes it.
func TestTextBodySchema(t *testing.T) {
	doc := operation("/x", "post", `{"requestBody":{"content":{"text/plain":{"schema":{"type":"string","minLength":5}}}}}`)
	mux := serve(t, doc, &openapi.Options{Handler: echo})
	if res := call(t, mux, "op", `{"body":"hi"}`); !res.IsError || !strings.Contains(textOf(res), "at least 5") {
		t.Errorf("got %s", textOf(res))
	}
}

// What is cut off a schema keeps its type.
func TestCutSchemas(t *testing.T) {
	schema := `{"type":"string"}`
	for range 30 {
		schema = `{"type":"object","properties":{"in":` + schema + `}}`
	}
	doc := operation("/x", "post", fmt.Sprintf(`{"requestBody":{"content":{"application/json":{"schema":{"type":"array","items":%s}}}}}`, schema))
	for tool, err := range mcptest.Connect(t, serve(t, doc, &openapi.Options{Handler: echo})).Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if got := string(tool.InputSchema); !strings.Contains(got, `"in":{"properties":{},"type":"object"}`) || strings.Contains(got, "boolean") {
			t.Errorf("got %s", got)
		}
	}
}
