// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// A header annotation is valid on a string, an integer or a boolean that is reached only
// through properties.
func TestHeaderAnnotations(t *testing.T) {
	const region = `{"type":"string","x-mcp-header":"Region"}`
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":` + region + `}}`:                                                                                    "",
		`{"type":"object","properties":{"a":{"type":"object","properties":{"b":` + region + `}}}}`:                                               "",
		`{"type":"object","properties":{"a":true,"b":{"type":"integer","x-mcp-header":"!#"}}}`:                                                   "",
		`{"type":"object","properties":{"a":{"type":"boolean","description":"an x-mcp-header","x-mcp-header":"a"}}}`:                             "",
		`{"type":"object","title":"x-mcp-header","properties":{"a":{"type":"string","description":"x-mcp-header","examples":["x-mcp-header"]}}}`: "",
		`{"type":"object","default":{"x-mcp-header":"a"},"properties":{"x-mcp-header":{"enum":[{"x-mcp-header":"a"}]}}}`:                         "",
		`{"type":"object","$defs":{"x-mcp-header":true,"b":{"properties":{"x-mcp-header":{"const":{"x-mcp-header":"a"}}}}}}`:                     "",
		`{"type":"object","$defs":{"default":` + region + `}}`:                                                                                   `at / is below "$defs"`,
		`{"type":"object","allOf":[{"properties":{"const":{"prefixItems":[true,` + region + `]}}}]}`:                                             `at / is below "allOf"`,
		`{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"a"}}}`:                                                              `at /a is on a property of type "number"`,
		`{"type":"object","properties":{"a":{"x-mcp-header":"a"}}}`:                                                                              `at /a is on a property of type (not given): it must be string`,
		`{"type":"object","properties":{"a":{"type":["string"],"x-mcp-header":"a"}}}`:                                                            `at /a is on a property of type ["string"]`,
		`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":""}}}`:                                                               `at /a is "": it must be a header token`,
		`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"a b"}}}`:                                                            `at /a is "a b": it must be a header token`,
		`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":7}}}`:                                                                `at /a is 7: it must be a header token`,
		`{"type":"object","properties":{"a":{"type":"array","items":` + region + `}}}`:                                                           `at /a is below "items"`,
		`{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"properties":{"b":` + region + `}}}}}`:                      `at /a is below "additionalProperties"`,
		`{"type":"object","anyOf":[{"properties":{"a":` + region + `}}]}`:                                                                        `at / is below "anyOf"`,
		`{"type":"object","properties":{"a":` + region + `,"b":{"type":"object","properties":{"c":{"type":"string","x-mcp-header":"REGION"}}}}}`: `"Region" at /b/c appears twice`,
	} {
		text := ""
		func() {
			defer func() {
				if v := recover(); v != nil {
					text = fmt.Sprint(v)
				}
			}()
			mcp.NewMux("m", "v1", quiet()).Tool("a", mcp.WithDescription(says(""), &mcp.Tool{InputSchema: json.RawMessage(schema)}))
		}()
		if want == "" && text != "" || !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %s", schema, text, want)
		}
	}
}

// The header of an argument matches its value: the same text, or the same integer.
func TestHeaderValueBounds(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("a", mcp.WithDescription(says(""), &mcp.Tool{InputSchema: json.RawMessage(
		`{"type":"object","properties":{"s":{"type":"string","x-mcp-header":"S"},"n":{"type":"integer","x-mcp-header":"N"},"b":{"type":"boolean","x-mcp-header":"B"},"o":{"type":"object","properties":{"i":{"type":"string","x-mcp-header":"I-n"}}}}}`)}))
	long := strings.Repeat("1", 40)
	for _, c := range []struct{ arguments, key, value, want string }{
		{`{}`, "", "", ""}, {`{"s":null}`, "", "", ""}, {`{"s":""}`, "", "", ""}, {`{"s":"eu"}`, "S", "eu", ""}, {`{"o":{"i":"x"}}`, "I-N", "x", ""},
		{`{"s":"eu"}`, "S", "us", "the header and the argument differ"}, {`{"s":"eu"}`, "", "", "the header is missing"}, {`{"n":0}`, "", "", "the header is missing"},
		{`{}`, "S", "eu", "the argument is absent"}, {`{"s":null}`, "S", "null", "the argument is absent"}, {`{"o":{}}`, "I-N", "x", "the argument is absent"},
		{`{"s":"eu"}`, "S", "eu|eu", "the header appears more than once"}, {`{"s":"ä"}`, "S", "=?base64?w6Q=?=", ""}, {`{"s":"ä"}`, "S", "ä", "must be encoded"}, {`{"s":"a\tb"}`, "S", "a\tb", ""}, {`{"s":"eu"}`, "S", "=?base64?!?=", "header Mcp-Param-S: "},
		{`{"n":42}`, "N", "42", ""}, {`{"n":42}`, "N", "42.0", ""}, {`{"n":42.0}`, "N", "42", ""}, {`{"n":-42}`, "N", "-42.00", ""}, {`{"n":4.2e1}`, "N", "4.2e1", ""},
		{`{"n":42}`, "N", "43", "differ"}, {`{"n":42}`, "N", "042", "differ"}, {`{"n":42}`, "N", "0x2a", "differ"}, {`{"n":42}`, "N", "4.2e1", "differ"}, {`{"n":4.2e1}`, "N", "42", ""}, {`{"n":7e0}`, "N", "7", ""}, {`{"n":-0}`, "N", "0", ""}, {`{"n":7.5}`, "N", "7", "differ"},
		{`{"n":` + long + `}`, "N", long[:38] + "11", ""}, {`{"n":` + long[:38] + `}`, "N", long[:38] + ".0", ""}, {`{"n":` + long + `}`, "N", long + ".0", ""},
		{`{"n":` + long + `.0}`, "N", long, ""}, {`{"n":` + long + `.0}`, "N", long + "1", "differ"},
		{`{"b":true}`, "B", "true", ""}, {`{"b":true}`, "B", "True", "differ"}, {`{"b":1}`, "B", "1.0", "differ"},
	} {
		req := mcptest.NewRequest(mcp.MethodCallTool, tool("a", c.arguments))
		given := http.Header{}
		for value := range strings.SplitSeq(c.value, "|") {
			if c.key != "" {
				given.Add("Mcp-Param-"+c.key, value)
			}
		}
		req.Header = given
		_, err := mux.ServeMCP(t.Context(), req)
		if c.want == "" && err != nil || c.want != "" && (err == nil || mcp.CodeOf(err) != mcp.CodeHeaderMismatch || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s with %s: %q: %v, want %s", c.arguments, c.key, c.value, err, c.want)
		}
	}
}

// The annotations of a schema are found in a single pass, however deep they are. Earlier,
// each level took another pass. The test measures memory, which each pass allocates.
func TestFindingS35DeepAnnotations(t *testing.T) {
	const levels = 50
	filler := strings.Repeat("x", 100_000)
	deep := strings.Repeat(`{"type":"object","properties":{"p":`, levels) +
		`{"type":"string","x-mcp-header":"Region","description":"` + filler + `"}` + strings.Repeat(`}}`, levels)
	c := connect(t, withLists(welcoming(), &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "t", InputSchema: json.RawMessage(deep)}}}), nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res, err := c.ListTools(t.Context(), nil)
	runtime.ReadMemStats(&after)
	if err != nil || len(res.Tools) != 1 {
		t.Fatalf("listed %+v, %v", res, err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 2_000_000 {
		t.Errorf("a list of %d bytes takes %d bytes to read", len(deep), got)
	}
}

// Finding many annotations does not compare each with all others.
func TestFindingS35ManyAnnotations(t *testing.T) {
	const n = 20_000
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"p%d":{"type":"string","x-mcp-header":"H%d"},`, i, i)
	}
	list := func(last string) int {
		schema := `{"type":"object","properties":{` + b.String() + `"last":{"type":"string","x-mcp-header":"` + last + `"}}}`
		c := connect(t, withLists(welcoming(), &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "t", InputSchema: json.RawMessage(schema)}}}), nil)
		res, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(res.Tools)
	}
	if list("Last") != 1 {
		t.Error("a tool whose annotations are all different was dropped")
	}
	if list("h7") != 0 {
		t.Error("a tool with an annotation that appears twice was kept")
	}
}

// A connection to a server that does not compare headers itself reads the list again if the
// server has said that its tools have changed.
func TestLookHeadersOfChangedTools(t *testing.T) {
	server := mcp.NewMux("m", "v1", quiet())
	server.Tool("a", mcp.WithDescription(says("ran"), &mcp.Tool{InputSchema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string","x-mcp-header":"X"}}}`)}))
	changed := make(chan struct{}, 10)
	c := connect(t, server, &mcp.ClientOptions{Version: "2025-11-25", Forward: true, Logger: quiet().Logger, Notification: func(context.Context, *mcp.Conn, *mcp.Request) { changed <- struct{}{} }})
	if _, err := c.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := server.Update(func(m *mcp.Mux) {
		m.RemoveTool("a")
		m.Tool("a", mcp.WithDescription(says("ran"), &mcp.Tool{InputSchema: json.RawMessage(`{"type":"object","properties":{"s":{"type":"string","x-mcp-header":"S"}}}`)}))
	}); err != nil {
		t.Fatal(err)
	}
	<-changed
	for value, refused := range map[string]bool{"us": true, "eu": false} {
		req := mcptest.NewRequest(mcp.MethodCallTool, tool("a", `{"s":"eu"}`))
		req.Header = http.Header{"Mcp-Param-S": {value}}
		if _, err := c.ServeMCP(t.Context(), req); refused != (mcp.CodeOf(err) == mcp.CodeHeaderMismatch) {
			t.Errorf("with the header %s: %v", value, err)
		}
	}
}
