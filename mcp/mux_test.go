// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/test/golden"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

func TestMuxRoutes(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("hello", says("hi"))
	mux.Prompt("hello", promptSays("say hi"))
	mux.Resource("note://hello", reads("hi there"))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if got := mustCall(t, c, "hello", ""); got != "hi" {
			t.Errorf("tool: %q", got)
		}
		prompt, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "hello"})
		if err != nil || prompt.Messages[0].Content.(*mcp.TextContent).Text != "say hi" {
			t.Errorf("prompt: %+v, %v", prompt, err)
		}
		resource, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "note://hello"})
		if err != nil || resource.Contents[0].Text != "hi there" {
			t.Errorf("resource: %+v, %v", resource, err)
		}
	})
}

// Middleware can tell whether a request names a registered item, even if the request fails.
func TestIsRouted(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	failing := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, errors.New("no") })
	mux.Tool("x", failing)
	mux.Prompt("x", failing)
	mux.Resource("test://x", failing)
	for _, kind := range []struct {
		method string
		params func(name string) any
	}{
		{mcp.MethodCallTool, func(name string) any { return &mcp.CallToolParams{Name: name} }},
		{mcp.MethodGetPrompt, func(name string) any { return &mcp.GetPromptParams{Name: name} }},
		{mcp.MethodReadResource, func(name string) any { return &mcp.ReadResourceParams{URI: "test://" + name} }},
	} {
		for name, want := range map[string]bool{"x": true, "y": false} {
			req := mcptest.NewRequest(kind.method, kind.params(name))
			if _, err := mux.ServeMCP(t.Context(), req); err == nil || req.IsRouted() != want {
				t.Errorf("%s of %s: %v, routed: %t", kind.method, name, err, req.IsRouted())
			}
		}
	}
}

func TestUnknown(t *testing.T) {
	full := mcp.NewMux("full", "v1", quiet())
	full.Tool("a", says(""))
	full.Prompt("a", promptSays(""))
	full.Resource("a:a", reads(""))
	other := quiet()
	other.Capabilities = &mcp.ServerCapabilities{Tools: &mcp.ListCapability{}}
	tools := mcp.NewMux("tools", "v1", other)
	other.Capabilities = &mcp.ServerCapabilities{Prompts: &mcp.ListCapability{}}
	prompts := mcp.NewMux("prompts", "v1", other)
	for _, test := range []struct {
		method    string
		params    any
		known     int // code of a mux that offers such items
		elsewhere *mcp.Mux
	}{
		{mcp.MethodCallTool, tool("b", ""), mcp.CodeInvalidParams, prompts},
		{mcp.MethodCallTool, map[string]any{}, mcp.CodeInvalidParams, prompts},
		{mcp.MethodGetPrompt, &mcp.GetPromptParams{Name: "b"}, mcp.CodeInvalidParams, tools},
		{mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "b:b"}, mcp.CodeInvalidParams, tools},
		{mcp.MethodReadResource, map[string]any{}, mcp.CodeInvalidParams, tools},
		{mcp.MethodComplete, &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "b"}}, mcp.CodeInvalidParams, tools},
		{"vendor/b", nil, mcp.CodeMethodNotFound, tools},
	} {
		_, _, err := mcptest.Do(t, full, mcptest.NewRequest(test.method, test.params))
		wantCode(t, err, test.known)
		_, _, err = mcptest.Do(t, test.elsewhere, mcptest.NewRequest(test.method, test.params))
		wantCode(t, err, mcp.CodeMethodNotFound)
	}
}

func TestUnknownOnTheWire(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("note://a", reads(""))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		_, err := serveRaw(t, c, "vendor/nothing", nil)
		wantCode(t, err, mcp.CodeMethodNotFound)
		_, err = c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "note://b"})
		wantCode(t, err, mcp.CodeInvalidParams)
		if e := new(mcp.Error); errors.As(err, &e) && string(e.Data) != `{"uri":"note://b"}` {
			t.Errorf("data is %s", e.Data)
		}
	})

	// In the legacy era, a missing resource has its own error code, which clients
	// translate.
	for era, missing := range map[*wireEra]int{&eras[0]: mcp.CodeInvalidParams, &eras[1]: revision.CodeResourceNotFound} {
		p := newPeer(t, mux, *era)
		p.send(era.request("1", mcp.MethodReadResource, `"uri":"note://b"`))
		if got := p.read().Error; mcp.CodeOf(got) != missing || string(got.Data) != `{"uri":"note://b"}` {
			t.Errorf("%s: got %v with the data %s", era.name, got, got.Data)
		}
		p.finish()
	}
}

type echoResult struct {
	mcp.ResultBase
	Heard string `json:"heard"`
}

func TestCustomMethods(t *testing.T) {
	heard := make(chan string, 1)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Handle("vendor/echo", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		var p struct {
			Say string `json:"say"`
		}
		if err := req.Decode(&p); err != nil {
			return nil, err
		}
		return &echoResult{Heard: p.Say}, nil
	}))
	mux.Handle("vendor/ask", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.InputRequired{InputRequests: map[string]mcp.InputRequest{"k": {Method: mcp.MethodListRoots}}}, nil
	}))
	mux.Handle("notifications/vendor", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		if !req.IsNotification() {
			t.Error("the notification has an id")
		}
		heard <- string(req.Params())
		return nil, errors.New("nobody hears of this")
	}))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		res, err := serveRaw(t, c, "vendor/echo", map[string]any{"say": "hi"})
		if err != nil || string(res.(*mcp.EmptyResult).Extra["heard"]) != `"hi"` {
			t.Errorf("got %+v, %v", res, err)
		}
		_, err = serveRaw(t, c, "vendor/echo", map[string]any{"say": 1})
		wantCode(t, err, mcp.CodeInvalidParams)
		_, err = serveRaw(t, c, "vendor/ask", nil)
		wantCode(t, err, mcp.CodeInternalError)
		if err := c.Notify(t.Context(), "notifications/vendor", map[string]any{"n": 1}); err != nil {
			t.Fatal(err)
		}
		if got := <-heard; !strings.Contains(got, `"n":1`) {
			t.Errorf("heard %s", got)
		}
		if err := c.Notify(t.Context(), "notifications/unheard", nil); err != nil {
			t.Error(err) // an unknown notification is dropped
		}
		call := func() { _, err = serveRaw(t, c, "vendor/echo", nil) }
		if call(); err != nil {
			t.Errorf("after that: %v", err)
		}
	})
}

func TestPrecedence(t *testing.T) {
	path := mcp.ResourceFunc(func(_ context.Context, in map[string]string) (string, error) {
		keys := slices.Sorted(func(yield func(string) bool) {
			for k := range in {
				if !yield(k) {
					return
				}
			}
		})
		return strings.Join(keys, "+"), nil
	}, nil)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("note://{+path}", path)
	mux.Resource("note://{user}/{id}", path)
	mux.Resource("note://me/{mine}", path)
	mux.Resource("note://me/first", reads("exact"))
	for uri, want := range map[string]string{
		"note://me/first":    "exact",
		"note://me/second":   "mine",
		"note://you/first":   "id+user",
		"note://you/a/b/c":   "path",
		"note://you":         "path",
		"note://me/second/x": "path",
	} {
		res, _, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri}))
		if err != nil {
			t.Errorf("%s: %v", uri, err)
			continue
		}
		if got := res.(*mcp.ReadResourceResult).Contents[0].Text; got != want {
			t.Errorf("%s went to %q, want %q", uri, got, want)
		}
	}
}

// Registration mistakes panic and name both places.
func TestRegistrationPanics(t *testing.T) {
	const here = "mux_test.go:"
	twice := func(text string) []string { return []string{here, text, here} }
	for name, test := range map[string]struct {
		fn   func(m *mcp.Mux)
		want []string
	}{
		"tool twice":      {func(m *mcp.Mux) { m.Tool("a", says("")); m.Tool("a", says("")) }, twice("already")},
		"prompt twice":    {func(m *mcp.Mux) { m.Prompt("a", promptSays("")); m.Prompt("a", promptSays("")) }, twice("already")},
		"resource twice":  {func(m *mcp.Mux) { m.Resource("a:a", reads("")); m.Resource("a:a", reads("")) }, twice("already")},
		"method twice":    {func(m *mcp.Mux) { m.Handle("a/a", says("")); m.Handle("a/a", says("")) }, twice("already")},
		"templates":       {func(m *mcp.Mux) { m.Resource("a:{x}", reads("")); m.Resource("a:{y}", reads("")) }, twice("conflicts")},
		"overlapping":     {func(m *mcp.Mux) { m.Resource("a:{x}/b", reads("")); m.Resource("a:c/{x}", reads("")) }, twice("conflicts")},
		"malformed":       {func(m *mcp.Mux) { m.Resource("a:{x", reads("")) }, []string{here}},
		"builtin":         {func(m *mcp.Mux) { m.Handle(mcp.MethodCallTool, says("")) }, []string{"served by the mux itself"}},
		"nil handler":     {func(m *mcp.Mux) { m.Tool("a", nil) }, []string{"nil"}},
		"no name":         {func(m *mcp.Mux) { m.Tool("", says("")) }, []string{"empty"}},
		"no prompt name":  {func(m *mcp.Mux) { m.Prompt("", says("")) }, []string{"empty"}},
		"no pattern":      {func(m *mcp.Mux) { m.Resource("", says("")) }, []string{"empty"}},
		"tool as prompt":  {func(m *mcp.Mux) { m.Prompt("a", says("")) }, []string{here, "*mcp.Tool"}},
		"prompt as tool":  {func(m *mcp.Mux) { m.Tool("a", promptSays("")) }, []string{here, "*mcp.Prompt"}},
		"schema not JSON": {func(m *mcp.Mux) { m.Tool("a", mcp.WithDescription(says(""), &mcp.Tool{InputSchema: []byte("{")})) }, []string{here, "InputSchema"}},
		"schema no object": {func(m *mcp.Mux) {
			m.Tool("a", mcp.WithDescription(says(""), &mcp.Tool{InputSchema: []byte(`{"type":"array"}`)}))
		}, []string{here, "InputSchema"}},
		"short state key": {func(*mcp.Mux) { mcp.NewMux("a", "v1", &mcp.MuxOptions{StateKeys: [][]byte{{1}}}) }, []string{"StateKeys"}},
		"schema a list":   {func(m *mcp.Mux) { m.Tool("a", mcp.WithDescription(says(""), &mcp.Tool{InputSchema: []byte(` []`)})) }, []string{here, "InputSchema must be an object"}},
		"output schema a text": {func(m *mcp.Mux) {
			m.Tool("a", mcp.WithDescription(says(""), &mcp.Tool{OutputSchema: []byte(`"x"`)}))
		}, []string{here, "OutputSchema must be an object"}},
		"no files": {func(*mcp.Mux) { mcp.FileServerFS(nil, nil) }, []string{here, "the file system is nil"}},
		"files of no roots": {func(m *mcp.Mux) {
			m.Resource("a:{+path}", mcp.FileServerFS(fstest.MapFS{}, &mcp.FileServerOptions{WithinRoots: true}))
		}, []string{here, "needs a template of file URIs"}},
		"variables no object": {func(*mcp.Mux) { mcp.ResourceFunc(func(context.Context, int) (string, error) { return "", nil }, nil) }, []string{here, "variables: int is neither a struct nor a map"}},
		"variables of structs": {func(*mcp.Mux) {
			mcp.PromptFunc(func(context.Context, struct{ A struct{} }) (string, error) { return "", nil }, nil)
		}, []string{here, `the field "A" must be a string, a number or a boolean`}},
		"error data": {func(*mcp.Mux) { mcp.Errorf(1, "x").WithData(func() {}) }, []string{"error data"}},
		"metadata":   {func(*mcp.Mux) { new(mcp.Meta).Set("k", func() {}) }, []string{`_meta value for "k"`}},
		"output any result": {func(*mcp.Mux) {
			mcp.ToolFunc(func(context.Context, struct{}) (mcp.Result, error) { return mcp.TextResult(""), nil }, nil)
		}, []string{here, "a tool cannot return mcp.Result; return a *CallToolResult"}},
		"output no pointer": {func(*mcp.Mux) {
			mcp.ToolFunc(func(context.Context, struct{}) (mcp.CallToolResult, error) { return mcp.CallToolResult{}, nil }, nil)
		}, []string{here, "a tool cannot return mcp.CallToolResult; return a *CallToolResult"}},
		"output of a prompt": {func(*mcp.Mux) {
			mcp.ToolFunc(func(context.Context, struct{}) (*mcp.GetPromptResult, error) { return nil, nil }, nil)
		}, []string{here, "a tool cannot return *mcp.GetPromptResult; return a *CallToolResult"}},
		"input not object": {func(*mcp.Mux) {
			mcp.ToolFunc(func(context.Context, int) (string, error) { return "", nil }, nil)
		}, []string{here, "int"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := mcp.NewMux("m", "v1", quiet())
			wantPanic(t, func() { test.fn(m) }, test.want...)
			if _, err := callTool(t, m, "other", ""); err == nil {
				t.Error("the mux does not serve any more")
			}
		})
	}
}

func TestRemove(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("a", says("a"))
	mux.Prompt("p", promptSays("p"))
	mux.Resource("a:{x}", reads("a"))
	mux.Handle("vendor/a", says("a"))
	mux.RemoveTool("a", "never")
	mux.RemovePrompt("p")
	mux.RemoveResource("a:{x}")
	mux.RemoveMethod("vendor/a")
	_, err := callTool(t, mux, "a", "")
	wantCode(t, err, mcp.CodeInvalidParams) // an emptied list still exists
	if err := mux.Walk(func(method, name string, _ mcp.Handler) error {
		t.Errorf("there is still %s %s", method, name)
		return nil
	}); err != nil {
		t.Error(err)
	}
	mux.Tool("a", says("new"))
	if res, err := callTool(t, mux, "a", ""); err != nil || textOf(res) != "new" {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestWalk(t *testing.T) {
	child := mcp.NewMux("child", "v1", quiet())
	child.Tool("t", says(""))
	child.Resource("a:{x}", reads(""))
	child.Handle("vendor/inner", says(""))
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("b", says(""))
	mux.Tool("a", says(""))
	mux.Prompt("p", promptSays(""))
	mux.Resource("a:a", reads(""))
	mux.Handle("vendor/x", says(""))
	mux.Mount("in_", child)
	mux.Mount("far_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, errors.New("far") }))
	var got []string
	note := func(method, name string, h mcp.Handler) error {
		if h == nil {
			t.Errorf("%s %s has no handler", method, name)
		}
		got = append(got, strings.TrimSpace(method+" "+name))
		return nil
	}
	if err := mux.Walk(note); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"tools/call a", "tools/call b", "prompts/get p", "resources/read a:a", "vendor/x",
		"tools/call in_t", "resources/read mount:in_:a:{x}", "vendor/inner",
	}
	if !slices.Equal(got, want) {
		t.Errorf("walked\n%q, want\n%q", got, want)
	}
	_ = mux.Walk(func(method, name string, h mcp.Handler) error {
		for _, other := range []string{mcp.MethodListResources, mcp.MethodSubscribe} {
			if method == mcp.MethodReadResource {
				_, err := h.ServeMCP(t.Context(), mcptest.NewRequest(other, nil))
				wantCode(t, err, mcp.CodeMethodNotFound) // it neither lists nor authorizes subscriptions
			}
		}
		return nil
	})
	stop := errors.New("stop")
	for n := range want {
		calls := 0
		err := mux.Walk(func(string, string, mcp.Handler) error {
			if calls++; calls > n {
				return stop
			}
			return nil
		})
		if !errors.Is(err, stop) || calls != n+1 {
			t.Errorf("got %v after %d calls, want the error of call %d", err, calls, n+1)
		}
	}
}

// An empty server, or one with empty mounts, declares everything that may come: its lists
// are empty, names are unknown, and subscribers learn of the first item of each kind.
func TestFindingU13EmptyMux(t *testing.T) {
	for name, prepare := range map[string]func(mux *mcp.Mux){
		"empty": func(*mcp.Mux) {},
		"mounts only": func(mux *mcp.Mux) {
			mux.Mount("gone_", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
				return nil, mcp.NewMethodNotFoundError(req.Method)
			}))
		},
		"empty mounts": func(mux *mcp.Mux) { mux.Mount("empty_", mcp.NewMux("empty", "v1", quiet())) },
	} {
		t.Run(name, func(t *testing.T) {
			var mux *mcp.Mux
			newMux := func(*testing.T) mcp.Handler {
				mux = mcp.NewMux("m", "v1", quiet())
				prepare(mux)
				return mux
			}
			mcptest.RunNew(t, newMux, func(t *testing.T, c *mcp.Conn) {
				caps := c.Server().Capabilities
				if caps.Tools == nil || caps.Prompts == nil || caps.Resources == nil || caps.Completions == nil {
					t.Errorf("declared %+v", caps)
				}
				testEmptyLists(t, c)
				testUnknownNames(t, c)
				everything := mcp.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true}
				_, changes := listen(t, c, everything)
				mux.Tool("first", says("1"))
				next(t, changes, mcp.NotificationToolsListChanged)
				mux.Prompt("first", promptSays(""))
				next(t, changes, mcp.NotificationPromptsListChanged)
				mux.Resource("r:first", reads(""))
				next(t, changes, mcp.NotificationResourcesListChanged)
				if got := mustCall(t, c, "first", ""); got != "1" {
					t.Errorf("got %q", got)
				}
			})
		})
	}
}

func testEmptyLists(t *testing.T, c *mcp.Conn) {
	t.Helper()
	for tool, err := range c.Tools(t.Context(), nil) {
		t.Errorf("tools: %v, %v", tool, err)
	}
	for prompt, err := range c.Prompts(t.Context(), nil) {
		t.Errorf("prompts: %v, %v", prompt, err)
	}
	for resource, err := range c.Resources(t.Context(), nil) {
		t.Errorf("resources: %v, %v", resource, err)
	}
	for template, err := range c.ResourceTemplates(t.Context(), nil) {
		t.Errorf("templates: %v, %v", template, err)
	}
}

func testUnknownNames(t *testing.T, c *mcp.Conn) {
	t.Helper()
	ctx := t.Context()
	_, err := c.CallTool(ctx, tool("later_x", ""))
	wantCode(t, err, mcp.CodeInvalidParams)
	_, err = c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "later_x"})
	wantCode(t, err, mcp.CodeInvalidParams)
	_, err = c.ReadResource(ctx, &mcp.ReadResourceParams{URI: "mount:later_:x:x"})
	if code := mcp.CodeOf(err); code != mcp.CodeInvalidParams && code != -32002 { // in older revisions
		t.Errorf("got %v", err)
	}
}

// Capabilities are never withdrawn. A mux that starts with items of one kind declares only
// that kind, so that hosts do not request lists that stay empty.
func TestFindingU13OffersGrow(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	if caps := offeredBy(t, mux); caps.Tools == nil || caps.Prompts == nil || caps.Resources == nil {
		t.Errorf("an empty mux offers %+v", caps)
	}
	mux.Tool("t", says(""))
	if caps := offeredBy(t, mux); caps.Prompts == nil || caps.Resources == nil {
		t.Errorf("after the first tool it offers %+v", caps)
	}
	tools := mcp.NewMux("tools", "v1", quiet())
	tools.Tool("t", says(""))
	if caps := offeredBy(t, tools); caps.Tools == nil || caps.Prompts != nil || caps.Resources != nil || caps.Completions != nil {
		t.Errorf("a mux with a tool offers %+v", caps)
	}
	outer := mcp.NewMux("outer", "v1", quiet())
	outer.Mount("tools_", tools)
	if caps := offeredBy(t, outer); caps.Tools == nil || caps.Prompts != nil || caps.Resources != nil {
		t.Errorf("with a mux of tools mounted it offers %+v", caps)
	}
	tools.Resource("r:{x}", reads(""))
	if caps := offeredBy(t, outer); caps.Resources == nil || caps.Completions == nil {
		t.Errorf("with a mux of tools and resources mounted it offers %+v", caps)
	}
	later := quiet()
	later.Capabilities = &mcp.ServerCapabilities{Tools: &mcp.ListCapability{}}
	if caps := offeredBy(t, mcp.NewMux("later", "v1", later)); caps.Tools == nil || caps.Tools.ListChanged || caps.Prompts != nil {
		t.Errorf("a mux that is to get tools offers %+v", caps)
	}
}

func offeredBy(t *testing.T, mux *mcp.Mux) *mcp.ServerCapabilities {
	t.Helper()
	res, _, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodDiscover, nil))
	if err != nil {
		t.Fatal(err)
	}
	return res.(*mcp.DiscoverResult).Capabilities
}

// A Request from a struct literal can be served, queried and copied.
func TestZeroRequest(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", says("hello"))
	for _, method := range []string{"tools/list", "server/discover", "tools/call", "completion/complete", "", "x"} {
		_, _ = mux.ServeMCP(t.Context(), &mcp.Request{Method: method})
	}
	req := &mcp.Request{Method: "tools/list"}
	res, err := mux.ServeMCP(t.Context(), req.Clone())
	if list, ok := res.(*mcp.ListToolsResult); err != nil || !ok {
		t.Errorf("got %v, %v", list, err)
	}
	req.FilterNotifications(func(string, json.RawMessage) bool { return true })
	if err := req.Notify(t.Context(), mcp.NotificationMessage, nil); !errors.Is(err, mcp.ErrNotDelivered) {
		t.Errorf("Notify returned %v", err)
	}
	if caps := req.ClientCapabilities(); caps == nil || req.Version() != "" || req.ClientInfo() != nil {
		t.Errorf("the peer is %v, %q, %v", caps, req.Version(), req.ClientInfo())
	}
}

// Options have defined meanings if they are nil, or if their numbers are 0, negative or
// positive.
func TestDefaultOptions(t *testing.T) {
	var text strings.Builder
	text.WriteString(golden.Options(new(mcp.DefaultMuxOptions(nil))))
	for _, n := range []int64{0, -1, 7} {
		text.WriteString(golden.Options(new(mcp.DefaultMuxOptions(golden.SetAll(new(mcp.MuxOptions), n)))))
	}
	text.WriteString(golden.Options(new(mcp.DefaultFileServerOptions(nil))))
	for _, n := range []int64{0, -1, 7} {
		text.WriteString(golden.Options(new(mcp.DefaultFileServerOptions(golden.SetAll(new(mcp.FileServerOptions), n)))))
	}
	text.WriteString(golden.Options(new(mcp.DefaultClientOptions(nil))))
	for _, n := range []int64{0, -1, 7} {
		text.WriteString(golden.Options(new(mcp.DefaultClientOptions(golden.SetAll(new(mcp.ClientOptions), n)))))
	}
	text.WriteString(golden.Options(new(mcp.DefaultReconnectOptions(nil))))
	for _, n := range []int64{0, -1, 7} {
		text.WriteString(golden.Options(new(mcp.DefaultReconnectOptions(golden.SetAll(new(mcp.UpstreamOptions), n)))))
	}
	golden.Check(t, "defaults", text.String())
}

// Clients get the icons and description of a server once, when they connect. Other results
// of the newest revision contain only its name, version and title.
func TestFindingI10IconsGoWithDiscoveryOnly(t *testing.T) {
	icon := mcp.Icon{Src: "data:image/png;base64," + strings.Repeat("A", 1000)}
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: quiet().Logger, Title: "M", Description: "long", WebsiteURL: "https://m.example", Icons: []mcp.Icon{icon}})
	mux.Tool("t", says("hello"))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if info := c.ServerInfo(); info == nil || len(info.Icons) != 1 || info.Title != "M" {
			t.Errorf("connecting tells %+v", info)
		}
		res, err := c.CallTool(t.Context(), tool("t", ""))
		if err != nil {
			t.Fatal(err)
		}
		var info mcp.Implementation
		if res.Meta.Get(mcp.MetaServerInfo, &info) != (c.Version() == mcp.LatestVersion) {
			t.Errorf("in %s the metadata is %s", c.Version(), res.Meta)
		}
		if info.Icons != nil || info.Description != "" || info.WebsiteURL != "" {
			t.Errorf("a call tells %+v", info)
		}
	})
}

// Percent-encoding neither bypasses a mount nor reaches into one.
func TestEncodingLeadsAroundNoMount(t *testing.T) {
	inner := mcp.NewMux("inner", "v1", quiet())
	inner.Resource("notes://{id}", reads("inner"))
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Mount("up_", inner)
	mux.Resource("{+any}", reads("outer"))
	c := mcptest.Connect(t, mux)
	for uri, want := range map[string]string{
		"mount:up_:notes://1": "inner", "mount%3Aup_:notes://1": "", "%6Dount:up_:notes://1": "", "notes://%31": "outer", "x%252Fy": "outer",
	} {
		res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if (err == nil) != (want != "") || err == nil && res.Contents[0].Text != want {
			t.Errorf("%s: got %+v, %v", uri, res, err)
		}
	}
}

// Percent-encoding does not pass one handler the values of another.
func TestEncodedSlash(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	var got string
	note := mcp.ResourceFunc(func(_ context.Context, in struct {
		Path string `json:"path"`
	}) (string, error) {
		got = in.Path
		return "note", nil
	}, nil)
	mux.Resource("notes://{+path}", note)
	mux.With(middleware.RequireScopes("hr")).Resource("notes://hr/{+path}", note)
	mux.Resource("ids://{path}", note)
	mux.With(middleware.RequireScopes("hr")).Resource("ids://hr/{path}", note)
	c := (&mcptest.Client{Principal: scoped()}).Connect(t, mux)
	for uri, want := range map[string]string{
		"notes://a%2Fb": "a/b", "notes://hr%2Fb": "", "notes://%68r/b": "", "notes://hr%2fb%252F": "", "notes://hr": "hr",
		"ids://a%2Fb": "a/b", "ids://hr%2Fb": "hr/b", // in a simple variable, a slash is not a separator
	} {
		got = ""
		_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: the handler got %q; %v", uri, got, err)
		}
	}
}

// A resource is served by its most specific registration, however its URI is encoded.
// Otherwise a less specific one with other permissions could decode the URI to the same
// path.
func TestEncodingLeadsAroundNoTemplate(t *testing.T) {
	files := mcp.FileServerFS(fstest.MapFS{
		"open.txt":      {Data: []byte("open")},
		"a b.txt":       {Data: []byte("open")},
		"hr/salary.txt": {Data: []byte("secret")},
		"hr/plan.txt":   {Data: []byte("secret")},
	}, nil)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("file:///{+path}", files)
	protected := mux.With(middleware.RequireScopes("hr"))
	protected.Resource("file:///hr/{+path}", mcp.FileServerFS(fstest.MapFS{"salary.txt": {Data: []byte("secret")}}, nil))
	protected.Resource("file:///hr/plan.txt", reads("secret"))
	c := (&mcptest.Client{Principal: scoped()}).Connect(t, mux)
	for uri, want := range map[string]string{
		"file:///open.txt":              "open",
		"file:///%6Fpen.txt":            "open",
		"file:///a%20b.txt":             "open",
		"file:///hr/salary.txt":         "",
		"file:///%68r/salary.txt":       "",
		"file:///hr%2Fsalary.txt":       "",
		"file:///%68%72%2f%73alary.txt": "",
		"file:///hr/plan%2Etxt":         "",
		"file:///%68r/plan.txt":         "",
	} {
		res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		switch {
		case want == "" && err == nil:
			t.Errorf("%s: got %q", uri, res.Contents[0].Text)
		case want != "" && (err != nil || !strings.Contains(res.Contents[0].Text, want)):
			t.Errorf("%s: got %+v, %v", uri, res, err)
		}
		if got := accepts(t, c, uri); got != (want != "") {
			t.Errorf("%s: a subscription is accepted: %t", uri, got)
		}
	}
}
