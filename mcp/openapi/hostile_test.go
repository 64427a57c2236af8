// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/openapi"
)

const head = `openapi: 3.1.0
paths: {/a: {post: {requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/S0"}}}}}}, /b: {get: {}}}
`

func schemas(n int, format func(i int) string) string {
	var b strings.Builder
	b.WriteString(head + "components:\n  schemas:\n")
	for i := range n {
		fmt.Fprintf(&b, "    S%d: %s\n", i, format(i))
	}
	return b.String()
}

func ref(i int) string { return fmt.Sprintf(`{$ref: "#/components/schemas/S%d"}`, i) }

// many returns a list of n elements.
func many(n int, format string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(all, ", ")
}

// hostile are documents that are small and mean much.
func hostile() map[string]string {
	laugh := "x-0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 10; i++ {
		laugh += fmt.Sprintf("x-%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10))
	}
	all := func(i int) string {
		var props []string
		for j := range 40 {
			props = append(props, fmt.Sprintf("p%d: %s", j, ref(j)))
		}
		return "{type: object, properties: {" + strings.Join(props, ", ") + "}}"
	}
	return map[string]string{
		"aliases": head + laugh,
		"doubled": schemas(41, func(i int) string {
			if i == 40 {
				return "{type: string}"
			}
			return fmt.Sprintf("{type: object, properties: {a: %s, b: %s}}", ref(i+1), ref(i+1))
		}),
		"doubled by allOf": schemas(41, func(i int) string {
			if i == 40 {
				return "{type: object}"
			}
			return fmt.Sprintf("{allOf: [%s, %s]}", ref(i+1), ref(i+1))
		}),
		"doubled by oneOf": schemas(41, func(i int) string {
			return fmt.Sprintf("{properties: {x: {}}, oneOf: [%s, %s]}", ref(min(i+1, 40)), ref(min(i+1, 40)))
		}),
		"every cycle": schemas(40, all),
		"cycle of allOf": schemas(2, func(i int) string {
			return fmt.Sprintf("{allOf: [%s, {type: object, properties: {a: {type: string}}}]}", ref(1-i))
		}),
		"cycle of nothing": schemas(2, func(i int) string { return ref(1 - i) }),
		"deep":             schemas(1, func(int) string { return strings.Repeat("{items: ", 400) + "{}" + strings.Repeat("}", 400) }),
		"too deep":         schemas(1, func(int) string { return strings.Repeat("{items: ", 9000) + "{}" + strings.Repeat("}", 9000) }),
		"missing":          schemas(1, func(int) string { return ref(7) }),
		"a file":           schemas(1, func(int) string { return `{$ref: "/etc/passwd"}` }),
		"a URL":            schemas(1, func(int) string { return `{$ref: "http://127.0.0.1:1/schema.json"}` }),
		"large":            schemas(1, func(int) string { return "{description: \"" + strings.Repeat("x", 8<<20) + "\"}" }),
		"many parts": schemas(2, func(i int) string {
			if i == 0 {
				return "{allOf: [" + strings.Repeat(ref(1)+", ", 4000) + ref(1) + "]}"
			}
			return "{type: object, required: [" + many(500, "r%d") + "], properties: {" + many(500, "r%d: {type: string}") + "}}"
		}),
		"many required": schemas(1, func(int) string {
			return "{type: array, items: {type: object, required: [" + many(50_000, "r%d") + "]}}"
		}),
		"many tags": schemas(2, func(i int) string {
			if i == 0 {
				return "{oneOf: [" + strings.Repeat(ref(1)+", ", 100) + ref(1) + "], discriminator: {propertyName: x, mapping: {" + many(20_000, "m%d: S1") + "}}}"
			}
			return "{type: object}"
		}),
		"one operation at many paths": `{"openapi":"3.1.0","x":{"get":{"responses":{` + many(10_000, `"2%d":{"description":""}`) + `}}},"paths":{"/b":{"get":{}},` +
			many(10_000, `"/c%d":{"$ref":"#/x"}`) + `}}`,
		"many types of many responses": `{"swagger":"2.0","produces":[` + many(8_000, `"a/b%d"`) + `],"paths":{"/b":{"get":{}},"/a":{"get":{"responses":{` +
			many(8_000, `"2%d":{"schema":{}}`) + `}}}}}`,
		"a long value": schemas(2, func(i int) string {
			if i == 0 {
				return "{type: object, properties: {in: {type: object, properties: {" + many(3900, `p%d: {$ref: "#/components/schemas/S1"}`) + "}}}}"
			}
			return "{enum: [" + strings.Repeat("x", 4<<20) + "]}"
		}),
		"regexp":          schemas(1, func(int) string { return `{type: object, properties: {a: {type: string, pattern: "(a{1000}){1000}"}}}` }),
		"path of another": "openapi: 3.0.0\npaths: {/../admin: {get: {}}, \"//evil.example.com/x\": {get: {}}, /b: {get: {}}}",
		"numbers": schemas(1, func(int) string {
			return "{type: array, minItems: -1, maxItems: 1e999, multipleOf: 0, items: {type: number, multipleOf: 0}}"
		}),
		"values, not types": `{"openapi":"3.0.0","paths":{"/b":{"get":{"parameters":7,"responses":[],"tags":{}}},"/c":[],"/d":{"get":[]},"/e":{"get":{"parameters":[7]}}}}`,
	}
}

// TestHostileDocuments checks that one operation does not affect the other, and that reading
// ends: the time limit is that of the test.
func TestHostileDocuments(t *testing.T) {
	for name, doc := range hostile() {
		t.Run(name, func(t *testing.T) {
			api, err := openapi.New([]byte(doc), &openapi.Options{Handler: echo})
			if name == "aliases" || name == "too deep" {
				if err == nil {
					t.Error("it was read")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			mux := quietMux()
			if err := api.Register(mux); err != nil {
				t.Fatal(err)
			}
			if got, want := textOf(call(t, mux, "get_b", `{}`)), "GET /b|||"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			t.Logf("%.500v", api.Omitted())
		})
	}
}

func quietMux() *mcp.Mux {
	return mcp.NewMux("api", "v1.0.0", &mcp.MuxOptions{Logger: slog.New(slog.DiscardHandler)})
}

// Text of the document does not reach a terminal as it is.
func TestTextIsEscaped(t *testing.T) {
	doc := operation("/x", "get", `{"summary":"\u001b[2Ja","description":"b\u202ec","responses":{}}`)
	mux := serve(t, doc, &openapi.Options{Handler: echo, Select: func(op *openapi.Operation) bool {
		if got, want := op.Tool.Title+"|"+op.Tool.Description, `\x1b[2Ja|\x1b[2Ja.`+"\n"+`b\u202ec`; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		return true
	}})
	_ = mux
}

func FuzzNew(f *testing.F) {
	for _, doc := range hostile() {
		if len(doc) < 64<<10 { // longer ones are slow to change
			f.Add([]byte(doc))
		}
	}
	f.Add([]byte(pets))
	f.Fuzz(func(t *testing.T, doc []byte) {
		api, err := openapi.New(doc, &openapi.Options{Handler: http.NotFoundHandler(), Select: func(op *openapi.Operation) bool {
			op.Resource = op.Deprecated
			return true
		}})
		if err != nil {
			return
		}
		if err := api.Register(quietMux()); err != nil {
			t.Errorf("%v\n%s", err, doc)
		}
	})
}
