// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
)

// pager serves tools/list with the pages of a function, and answers calls of all tools.
type pager struct {
	page func(cursor string) *mcp.ListToolsResult
	call func(req *mcp.Request) *mcp.CallToolResult
}

func (l *pager) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	switch req.Method {
	case mcp.MethodListTools:
		var p mcp.ListParams
		if err := req.Decode(&p); err != nil {
			return nil, err
		}
		cursor := ""
		if p.Cursor != nil {
			cursor = *p.Cursor
		}
		return l.page(cursor), nil
	case mcp.MethodCallTool:
		return l.call(req), nil
	}
	return withLists(mcp.NewMux("lister", "v1", quiet()), nil).ServeMCP(ctx, req)
}

// kept returns the memory in use, in MiB.
func kept() int {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int(s.HeapAlloc >> 20)
}

// largeTool returns a tool whose output schema has about n bytes.
func largeTool(name string, n int) *mcp.Tool {
	return &mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`),
		OutputSchema: json.RawMessage(`{"type":"object","description":"` + strings.Repeat("x", n) + `"}`)}
}

// A connection keeps at most 32 MiB of the tools that a server lists, whatever their size.
func TestFindingX7ToolsAreBoundedInBytes(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector keeps more")
	}
	for name, server := range map[string]*pager{
		"many schemas": {page: func(cursor string) *mcp.ListToolsResult {
			res := &mcp.ListToolsResult{Tools: []*mcp.Tool{largeTool("t"+cursor, 900<<10)}}
			if next := cursor + "."; len(next) < 100 {
				res.NextCursor = &next
			}
			return res
		}},
		"schemas that cannot be compiled": {page: func(cursor string) *mcp.ListToolsResult {
			res := &mcp.ListToolsResult{Tools: []*mcp.Tool{largeTool("t"+cursor, 5<<20)}}
			if next := cursor + "."; len(next) < 20 {
				res.NextCursor = &next
			}
			return res
		}},
		"names": {page: func(cursor string) *mcp.ListToolsResult {
			res := &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: strings.Repeat("n", 2<<20) + cursor, InputSchema: json.RawMessage(`{"type":"object"}`)}}}
			if next := cursor + "."; len(next) < 50 {
				res.NextCursor = &next
			}
			return res
		}},
		"schemas with annotations": {page: func(cursor string) *mcp.ListToolsResult {
			schema := `{"type":"object","description":"` + strings.Repeat("x", 2<<20) + `","properties":{"a":{"type":"string","x-mcp-header":"A"}}}`
			res := &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "t" + cursor, InputSchema: json.RawMessage(schema)}}}
			if next := cursor + "."; len(next) < 50 {
				res.NextCursor = &next
			}
			return res
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, server, nil)
			before, n := kept(), 0
			for _, err := range c.Tools(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if got := kept() - before; got > 40 {
				t.Errorf("%d tools seen and dropped; the connection keeps %d MiB", n, got)
			}
			runtime.KeepAlive(c)
		})
	}
}

// A connection forgets the tools that the server no longer lists, once it has read a whole
// list, and so does a gateway, whose callers read the pages.
func TestFindingX7ToolsOfOlderListsAreForgotten(t *testing.T) {
	large := true
	server := &pager{page: func(cursor string) *mcp.ListToolsResult {
		if !large {
			return &mcp.ListToolsResult{}
		}
		res := &mcp.ListToolsResult{Tools: []*mcp.Tool{largeTool("t"+cursor, 900<<10)}}
		if next := cursor + "."; len(next) < 30 {
			res.NextCursor = &next
		}
		return res
	}}
	behind := connect(t, server, nil)
	for name, c := range map[string]*mcp.Conn{"connection": behind, "gateway": connect(t, behind, nil)} {
		large = true
		list := func() {
			for _, err := range c.Tools(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		list()
		before := kept()
		large = false
		list()
		if freed := before - kept(); freed < 20 {
			t.Errorf("%s: %d MiB were freed when the server had no more tools", name, freed)
		}
	}
}

// A schema without annotations for headers is not kept, so it may have any size.
func TestLargeInputSchemaIsNotKept(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","description":"` + strings.Repeat("x", 9<<20) + `"}`)
	server := &pager{page: func(string) *mcp.ListToolsResult {
		return &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "t", InputSchema: schema}}}
	}}
	list, err := connect(t, server, nil).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Tools) != 1 {
		t.Error("the tool was dropped")
	}
}

// An output schema that is too large to be compiled makes the result unvalidated, as any
// schema that cannot be compiled does.
func TestFindingX7LargeOutputSchema(t *testing.T) {
	server := &pager{
		page: func(string) *mcp.ListToolsResult {
			return &mcp.ListToolsResult{Tools: []*mcp.Tool{largeTool("t", 2<<20)}}
		},
		call: func(*mcp.Request) *mcp.CallToolResult {
			return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("{}")}, StructuredContent: json.RawMessage(`{}`)}
		},
	}
	c := connect(t, server, nil)
	if _, err := c.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	_, err := c.CallTool(t.Context(), tool("t", ""))
	if unfit, ok := errors.AsType[*mcp.OutputError](err); !ok || unfit.Result == nil || !strings.Contains(err.Error(), "1048576 bytes") {
		t.Errorf("got %v", err)
	}
}

// A server cannot fill the log with the tools that are dropped from its lists.
func TestFindingX14DroppedToolsAreLoggedSparsely(t *testing.T) {
	tools := make([]*mcp.Tool, 2_000)
	for i := range tools {
		tools[i] = &mcp.Tool{Name: fmt.Sprint(strings.Repeat("n", 300), i), InputSchema: json.RawMessage(
			`{"type":"object","properties":{"` + strings.Repeat("p", 300) + `":{"type":"object","x-mcp-header":"X"}}}`)}
	}
	server := &pager{page: func(string) *mcp.ListToolsResult { return &mcp.ListToolsResult{Tools: tools} }}
	var log bytes.Buffer
	c := connect(t, server, &mcp.ClientOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 3 {
		if list, err := c.ListTools(t.Context(), nil); err != nil || len(list.Tools) != 0 {
			t.Fatalf("listed %+v, %v", list, err)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines < 16 || lines > 40 || log.Len() > 40_000 {
		t.Errorf("3 lists: %d lines with %d bytes; the first is %.600s", lines, log.Len(), log.String())
	}
}

// A mount logs, and remembers, each problem of a server's list in few bytes.
func TestFindingX14ProblemsOfAMountAreShort(t *testing.T) {
	n := 0
	gw, log := logged()
	gw.Mount("b_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		n++
		name := fmt.Sprint(strings.Repeat("\u202e", 1<<17), n)
		return &mcp.ListToolsResult{Tools: []*mcp.Tool{
			{Name: name, InputSchema: json.RawMessage(`7`)},
			{Name: fmt.Sprint("t", n), InputSchema: json.RawMessage(`{"type":"object","properties":{"` + name + `":7}}`)},
		}}, nil
	}))
	before := kept()
	for range 50 {
		if _, _, err := mcptest.Do(t, gw, mcptest.NewRequest(mcp.MethodListTools, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if got := log.Len(); got == 0 || got > 100*4096 {
		t.Errorf("100 problems of 384 KiB are logged in %d bytes", got)
	}
	if got := kept() - before; got > 20 {
		t.Errorf("100 problems of 384 KiB: %d MiB are kept", got)
	}
}

// An error of a server that is missing from a list is logged briefly, too.
func TestFindingX14ErrorsOfAMountAreShort(t *testing.T) {
	gw, log := logged()
	gw.Mount("b_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, mcp.Errorf(1, "%s", strings.Repeat("e", 1<<20))
	}))
	if _, _, err := mcptest.Do(t, gw, mcptest.NewRequest(mcp.MethodListTools, nil)); err != nil {
		t.Fatal(err)
	}
	if got := log.Len(); got == 0 || got > 4096 {
		t.Errorf("an error of 1 MiB is logged in %d bytes", got)
	}
}

// A client mirrors an integer in decimal, however the argument is written.
func TestFindingY11HeadersOfIntegersAreDecimal(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", mcp.WithDescription(says("ran"), &mcp.Tool{InputSchema: json.RawMessage(
		`{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"},"s":{"type":"string","x-mcp-header":"S"},"b":{"type":"boolean","x-mcp-header":"B"}}}`)}))
	got := http.Header{}
	server := mcphttp.NewHandler(mux, &mcphttp.Options{Logger: quiet().Logger})
	url := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for key, values := range r.Header {
			if strings.HasPrefix(key, "Mcp-Param-") {
				got[key] = values
			}
		}
		server.ServeHTTP(w, r)
	}))
	c := connectTo(t, mcphttp.NewTransport(url, nil), &mcp.ClientOptions{Version: mcp.LatestVersion})
	if _, err := c.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]map[string]string{
		`{"n":7}`: {"N": "7"}, `{"n":-7}`: {"N": "-7"}, `{"n":1e2}`: {"N": "100"}, `{"n":7.0}`: {"N": "7"}, `{"n":-0}`: {"N": "0"}, `{"n":7e0}`: {"N": "7"},
		`{"n":9007199254740991}`: {"N": "9007199254740991"}, `{"n":12e-1}`: {"N": "1.2"}, `{"n":null}`: {},
		`{"s":"1e2","b":true}`: {"S": "1e2", "B": "true"},
	} {
		clear(got)
		if _, err := c.CallTool(t.Context(), tool("t", arguments)); err != nil {
			t.Errorf("%s: %v", arguments, err)
		}
		sent := map[string]string{}
		for key := range got {
			sent[strings.TrimPrefix(key, "Mcp-Param-")] = got.Get(key)
		}
		if !maps.Equal(sent, want) {
			t.Errorf("%s: sent the headers %v, want %v", arguments, sent, want)
		}
	}
}

// If a result cannot be validated, or does not fit, the caller gets the output with the
// error, and decides.
func TestFindingR16OutputWithItsError(t *testing.T) {
	schema := `{"type":"object","properties":{"n":{"type":"integer","exclusiveMinimum":true}}}` // as in draft 4
	server := &pager{
		page: func(string) *mcp.ListToolsResult {
			return &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(schema)}}}
		},
		call: func(req *mcp.Request) *mcp.CallToolResult {
			return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("text")}, StructuredContent: req.Arguments()}
		},
	}
	type out struct {
		N int `json:"n"`
	}
	mcptest.Run(t, server, func(t *testing.T, c *mcp.Conn) {
		if _, err := c.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		got, err := mcp.Call[out](t.Context(), c, "t", out{7})
		if unfit, ok := errors.AsType[*mcp.OutputError](err); !ok || got.N != 7 || textOf(unfit.Result) != "text" {
			t.Errorf("got %+v, %v", got, err)
		}
		if _, invalid := errors.AsType[*jsonschema.ValidationError](err); invalid {
			t.Errorf("the output is said to be invalid: %v", err)
		}
	})
}
