// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package toolsearch_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcp/toolsearch"
	"github.com/go-psi/psi/middleware"
)

// A names is middleware that records the names that are called.
type names struct {
	mu  sync.Mutex
	all []string
}

func (n *names) around(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == mcp.MethodCallTool {
			n.mu.Lock()
			n.all = append(n.all, req.Name()+" "+mcp.RequestFromContext(ctx).Name()+" "+string(req.Arguments()))
			n.mu.Unlock()
		}
		return next.ServeMCP(ctx, req)
	})
}

// take returns the names since the last call.
func (n *names) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := strings.Join(n.all, ", ")
	n.all = nil
	return all
}

// A call through call_tool is the call of the tool: middleware sees its real name, its arguments
// are validated, it asks and reports progress, and headers do not get in its way.
func TestCallTool(t *testing.T) {
	type form struct {
		Sure bool `json:"sure"`
	}
	mux := office(nil)
	saw := new(names)
	mux.Use(saw.around)
	mux.Tool("remove", mcp.ToolFunc(func(ctx context.Context, in repository) (string, error) {
		mcp.Progress(ctx, 1, 2, "half")
		if f, err := mcp.Elicit[form](ctx, "sure", "Remove it?"); err != nil || !f.Sure {
			return "kept", err
		}
		return "removed " + in.Owner, nil
	}, nil))
	mux.Tool("routed", mcp.ToolFunc(func(_ context.Context, in map[string]string) (string, error) { return "in " + in["region"], nil },
		&mcp.Tool{InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"additionalProperties":{"type":"string"}}`)}))
	mux.Tool("broken", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", mcp.Errorf(7, "out of order") }, nil))
	client := mcptest.Client{Options: mcp.ClientOptions{Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return mcp.AcceptElicit(form{true})
	}}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		saw.take()
		if got := call(t, c, "create_issue", `{"title":"a"}`); got != "create_issuemap[title:a]" {
			t.Errorf("got %q", got)
		}
		if got := saw.take(); got != `create_issue create_issue {"title":"a"}` {
			t.Errorf("middleware saw %s", got)
		}
		if res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "create_issue"}); err != nil || textOf(res) != "create_issuemap[]" {
			t.Errorf("under its own name: %v, %v", res, err)
		}
		progress := 0
		ctx := mcp.WithProgress(t.Context(), func(*mcp.ProgressParams) { progress++ })
		res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "call_tool", Arguments: []byte(`{"name":"remove","arguments":{"owner":"ann"}}`)})
		if err != nil || textOf(res) != "removed ann" || progress == 0 {
			t.Errorf("got %v, %v, progress %d times", res, err, progress)
		}
		out, err := mcp.Call[repository](t.Context(), c, "call_tool", map[string]any{"name": "open_repository", "arguments": repository{Owner: "bob"}})
		if err != nil || out.Owner != "bob" {
			t.Errorf("got %v, %v", out, err)
		}
		for args, want := range map[string]string{
			`{"name":"open_repository","arguments":{"owner":1}}`: "/owner: expected string, got number 1",
			`{"name":"open_repository"}`:                         "/owner: expected string",
			`{"name":"open_repository","arguments":null}`:        "/owner: expected string",
			`{"name":"routed","arguments":{"region":"eu"}}`:      "in eu",
			`{"arguments":{}}`:                                   "/name: expected string",
			`{"name":"help","arguments":"x"}`:                    "/arguments: expected object",
			`{"name":"none"}`:                                    `there is no tool "none"; search_tools finds`,
			`{"name":"call_tool"}`:                               "call_tool is called by itself",
		} {
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "call_tool", Arguments: json.RawMessage(args)})
			if err != nil || !strings.Contains(textOf(res), want) {
				t.Errorf("%s: got %v, %v, want %s", args, res, err, want)
			}
		}
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "call_tool", Arguments: []byte(`{"name":"broken"}`)}); mcp.CodeOf(err) != 7 {
			t.Errorf("got %v", err)
		}
	})
}

// What the model must know to correct a call is no private error.
func TestPublicError(t *testing.T) {
	opts := quiet()
	opts.PublicError = func(context.Context, error) error { return errors.New("private") }
	mux := mcp.NewMux("m", "v1", opts)
	mux.Use(toolsearch.New(nil))
	mux.Tool("a", mcp.HandlerFunc(nothing))
	c := mcptest.Connect(t, mux)
	for name, want := range map[string]string{"": "/name: expected", "b": "there is no tool"} {
		if got := call(t, c, name, `{}`); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A header that the client sends must fit the arguments, because a proxy may route by it.
func TestHeaders(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(toolsearch.New(nil))
	mux.Tool("routed", mcp.ToolFunc(func(_ context.Context, in map[string]string) (string, error) { return "in " + in["region"], nil },
		&mcp.Tool{InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"additionalProperties":{"type":"string"}}`)}))
	for region, code := range map[string]int{"": 0, "eu": 0, "us": mcp.CodeHeaderMismatch} {
		req := mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "call_tool", Arguments: []byte(`{"name":"routed","arguments":{"region":"eu"}}`)})
		req.Header = map[string][]string{}
		if region != "" {
			req.Header["Mcp-Param-Region"] = []string{region}
		}
		if _, err := mux.ServeMCP(t.Context(), req); mcp.CodeOf(err) != code {
			t.Errorf("%q: got %v", region, err)
		}
	}
}

// The tools of a mounted server can be searched alone, and so can those of a connection, in
// their new shapes.
func TestMountedServer(t *testing.T) {
	inner := office(nil)
	server := mcp.NewMux("server", "v1", quiet())
	server.Tool("q", mcp.ToolFunc(func(_ context.Context, in repository) (string, error) { return "of " + in.Owner, nil }, nil))
	mux := mcp.NewMux("gateway", "v1", quiet())
	mux.Mount("office_", inner)
	mux.With(toolsearch.New(nil), middleware.Reshape(map[string]mcp.Shape{
		"q": {Name: "find_repository", Args: map[string]mcp.Arg{"owner": {Name: "account"}}},
	})).Mount("up_", mcptest.Connect(t, server))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if got := listed(t, c); got != "office_search_tools office_call_tool up_search_tools up_call_tool" {
			t.Errorf("listed %s", got)
		}
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "up_search_tools", Arguments: []byte(`{"query":"account"}`)})
		if err != nil || !strings.Contains(textOf(res), `"name":"find_repository"`) {
			t.Errorf("got %v, %v", res, err)
		}
		res, err = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "up_call_tool", Arguments: []byte(`{"name":"find_repository","arguments":{"account":"ann"}}`)})
		if err != nil || textOf(res) != "of ann" {
			t.Errorf("got %v, %v", res, err)
		}
	})
}

// A tool that runs in the background becomes a task of its caller.
func TestTasks(t *testing.T) {
	manager := tasks.New("m", nil)
	mux := mcp.NewMux("m", "v1", quiet())
	manager.Register(mux)
	defer func() { _ = manager.Shutdown(context.Background()) }()
	mux.Use(toolsearch.New(nil))
	mux.With(manager.Background(nil)).Tool("render", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "rendered", nil }, nil))
	client := mcptest.Client{Options: mcp.ClientOptions{Extensions: []*mcp.ClientExtension{tasks.Client()}}}
	c := client.Connect(t, mux)
	h, res, err := tasks.Start(t.Context(), c, &mcp.CallToolParams{Name: "call_tool", Arguments: []byte(`{"name":"render"}`)})
	if err != nil || h == nil {
		t.Fatalf("got %v, %v", res, err)
	}
	if res, err = h.Wait(t.Context()); err != nil || textOf(res) != "rendered" {
		t.Errorf("got %v, %v", res, err)
	}
}
