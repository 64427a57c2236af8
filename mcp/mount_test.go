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
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/test/golden"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// library returns a server with one of everything. Its tool returns links.
func library() *mcp.Mux {
	m := mcp.NewMux("library", "v1", quiet())
	m.Tool("find", mcp.ToolFunc(func(context.Context, none) ([]mcp.Content, error) {
		return []mcp.Content{
			&mcp.ResourceLink{Resource: mcp.Resource{URI: "book://1", Name: "one"}},
			&mcp.ResourceLink{Resource: mcp.Resource{URI: "https://example.com/1", Name: "web"}},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "book://1", Text: "Once"}},
		}, nil
	}, nil))
	m.Prompt("review", mcp.PromptFunc(func(_ context.Context, in struct {
		Style string `json:"style" jsonschema:"enum=short,enum=long"`
	}) (*mcp.PromptMessage, error) {
		return mcp.UserMessage(&mcp.ResourceLink{Resource: mcp.Resource{URI: "book://" + in.Style, Name: "it"}}), nil
	}, nil))
	m.Resource("book://1", reads("Once"))
	m.Resource("shelf://{name}", mcp.ResourceFunc(func(_ context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return "shelf " + in.Name, nil
	}, &mcp.Resource{Completers: map[string]mcp.Completer{"name": mcp.CompleteFrom("art", "arms", "music")}}))
	return m
}

// Mounted items are renamed, and the new names lead to them.
func TestMountRenames(t *testing.T) {
	inner := mcp.NewMux("inner", "v1", quiet())
	inner.Mount("lib_", library())
	outer := mcp.NewMux("outer", "v1", quiet())
	outer.Mount("a_", inner)
	mcptest.Run(t, outer, func(t *testing.T, c *mcp.Conn) {
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil || tool.Name != "a_lib_find" {
				t.Errorf("tool %+v, %v", tool, err)
			}
		}
		res, err := c.CallTool(t.Context(), tool("a_lib_find", ""))
		if err != nil {
			t.Fatal(err)
		}
		const book = "mount:a_:mount:lib_:book://1"
		link, web := res.Content[0].(*mcp.ResourceLink), res.Content[1].(*mcp.ResourceLink)
		embedded := res.Content[2].(*mcp.EmbeddedResource)
		if link.URI != book || embedded.Resource.URI != book || web.URI != "https://example.com/1" {
			t.Errorf("links to %q, %q and %q", link.URI, embedded.Resource.URI, web.URI)
		}
		read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: link.URI})
		if err != nil || read.Contents[0].Text != "Once" || read.Contents[0].URI != book {
			t.Errorf("read %+v, %v", read, err)
		}
		prompt, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "a_lib_review", Arguments: map[string]string{"style": "long"}})
		if err != nil || prompt.Messages[0].Content.(*mcp.ResourceLink).URI != "mount:a_:mount:lib_:book://long" {
			t.Errorf("prompt %+v, %v", prompt, err)
		}
	})
}

func TestMountedTemplates(t *testing.T) {
	outer := mcp.NewMux("outer", "v1", quiet())
	outer.Mount("lib_", library())
	mcptest.Run(t, outer, func(t *testing.T, c *mcp.Conn) {
		var templates []string
		for r, err := range c.ResourceTemplates(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			templates = append(templates, r.URITemplate)
		}
		if want := []string{"mount:lib_:shelf://{name}"}; !slices.Equal(templates, want) {
			t.Fatalf("templates %q", templates)
		}
		read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mount:lib_:shelf://art"})
		if err != nil || read.Contents[0].Text != "shelf art" {
			t.Errorf("read %+v, %v", read, err)
		}
		for what, p := range map[string]*mcp.CompleteParams{
			"arms art": {Ref: mcp.CompleteRef{Type: "ref/resource", URI: templates[0]}, Argument: mcp.CompleteArgument{Name: "name", Value: "ar"}},
			"long":     {Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "lib_review"}, Argument: mcp.CompleteArgument{Name: "style", Value: "l"}},
		} {
			res, err := c.Complete(t.Context(), p)
			if err != nil {
				t.Error(err)
				continue
			}
			if got := strings.Join(slices.Sorted(slices.Values(res.Completion.Values)), " "); got != what {
				t.Errorf("completed to %q, want %q", got, what)
			}
		}
		_, err = c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mount:lib_:book://2"})
		if e := new(mcp.Error); !errors.As(err, &e) || string(e.Data) != `{"uri":"mount:lib_:book://2"}` {
			t.Errorf("got %v, which must name the URI that was asked for", err)
		}
	})
}

// The pages of a list contain the mux's own items first, then those of its mounts.
func TestMountPages(t *testing.T) {
	small := quiet()
	small.PageSize = 2
	outer := mcp.NewMux("outer", "v1", small)
	var want []string
	for _, name := range []string{"a", "b", "c"} {
		outer.Tool(name, says(""))
		want = append(want, name)
	}
	for _, prefix := range []string{"x_", "y_", "z_"} {
		child := mcp.NewMux(prefix, "v1", small)
		for i := range 5 {
			child.Tool(fmt.Sprint(i), says(""))
			want = append(want, prefix+fmt.Sprint(i))
		}
		outer.Mount(prefix, child)
	}
	mcptest.Run(t, outer, func(t *testing.T, c *mcp.Conn) {
		var got []string
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, tool.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("listed %q, want %q", got, want)
		}
	})
}

// If a mount fails, its part is missing from the list, but the list succeeds.
func TestMountThatFails(t *testing.T) {
	outer := mcp.NewMux("outer", "v1", quiet())
	outer.Tool("own", says(""))
	outer.Mount("down_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, errors.New("no connection")
	}))
	outer.Mount("odd_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.EmptyResult{}, nil
	}))
	outer.Mount("null_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.ListToolsResult{Tools: []*mcp.Tool{nil}}, nil // T39
	}))
	mcptest.Run(t, outer, func(t *testing.T, c *mcp.Conn) {
		res, err := c.ListTools(t.Context(), nil)
		if err != nil || len(res.Tools) != 1 || res.Tools[0].Name != "own" {
			t.Errorf("listed %+v, %v", res, err)
		}
		_, err = c.CallTool(t.Context(), tool("down_x", ""))
		wantCode(t, err, mcp.CodeInternalError)
	})
}

func TestMountCapabilities(t *testing.T) {
	outer := mcp.NewMux("outer", "v1", quiet())
	outer.Mount("lib_", library())
	mcptest.Run(t, outer, func(t *testing.T, c *mcp.Conn) {
		d, err := c.Discover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		caps := d.Capabilities
		if caps.Tools == nil || caps.Prompts == nil || caps.Resources == nil || caps.Completions == nil {
			t.Errorf("declared %+v", caps)
		}
		var info mcp.Implementation
		if !d.Meta.Get(mcp.MetaServerInfo, &info) || info.Name != "outer" {
			t.Errorf("the server is %+v", info)
		}
	})
}

func TestMountPrecedence(t *testing.T) {
	outer := mcp.NewMux("outer", "v1", quiet())
	near, far := mcp.NewMux("near", "v1", quiet()), mcp.NewMux("far", "v1", quiet())
	far.Tool("x", says("far"))
	near.Tool("x", says("near"))
	outer.Mount("a_", far)
	outer.Mount("b_", near)
	outer.Tool("a_own", says("own"))
	for name, want := range map[string]string{"a_x": "far", "b_x": "near", "a_own": "own"} {
		if res, err := callTool(t, outer, name, ""); err != nil || textOf(res) != want {
			t.Errorf("%s: got %+v, %v", name, res, err)
		}
	}
	outer.Unmount("b_")
	outer.Unmount("never_")
	_, err := callTool(t, outer, "b_x", "")
	wantCode(t, err, mcp.CodeInvalidParams)
}

// Clients are told that all lists have changed when a server is mounted or unmounted.
func TestMountsAreAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		c := connect(t, mux, nil)
		_, changes := listen(t, c, mcp.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true})
		for _, change := range []func(){
			func() { mux.Mount("b_", hello()) }, func() { mux.Unmount("b_") },
		} {
			change()
			<-time.After(time.Second)
			lists := map[string]bool{}
			for len(changes) > 0 {
				lists[(<-changes).Method] = true
			}
			if len(lists) != 3 {
				t.Errorf("the client was told of %v", lists)
			}
		}
	})
}

// A prefix that is taken, or part of another one, is rejected with the places of both mounts.
func TestMountConflicts(t *testing.T) {
	const here = "mount_test.go:"
	top, middle, bottom := mcp.NewMux("t", "v1", quiet()), mcp.NewMux("m", "v1", quiet()), mcp.NewMux("b", "v1", quiet())
	top.Mount("m_", middle)
	middle.Mount("b_", bottom)
	wantPanic(t, func() { top.Mount("m_", bottom) }, here, "already")
	wantPanic(t, func() { top.Mount("m_b_", bottom) }, here, "names could belong to both")
	wantPanic(t, func() { bottom.Mount("t_", top) }, here, "contain itself")
	wantPanic(t, func() { bottom.Mount("b_", bottom.With()) }, here, "contain itself")
	wantPanic(t, func() { top.Mount("a/b", bottom) }, here, "prefix")
	wantPanic(t, func() { top.Mount("a_", nil) }, here, "nil")
}

// If a mux and a mux mounted in it have an item of the same name, the mux's own takes
// precedence, at every level and in whatever order they were registered. The conflict is
// logged, once.
func TestOwnItemsWin(t *testing.T) {
	own := func(m *mcp.Mux, name string) { m.Tool(name, says("own")); m.Prompt(name, promptSays("own")) }
	for name, build := range map[string]func(top, middle, bottom *mcp.Mux){
		"registered first": func(top, middle, bottom *mcp.Mux) {
			own(top, "m_b_x")
			middle.Mount("b_", bottom)
			top.Mount("m_", middle)
		},
		"mounted first": func(top, middle, bottom *mcp.Mux) {
			top.Mount("m_", middle)
			middle.Mount("b_", bottom)
			own(top, "m_b_x")
		},
		"one level below": func(top, middle, bottom *mcp.Mux) {
			top.Mount("m_", middle)
			middle.Mount("b_", bottom)
			own(middle, "b_x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			opts := &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}
			top, middle, bottom := mcp.NewMux("t", "v1", opts), mcp.NewMux("m", "v1", opts), mcp.NewMux("b", "v1", opts)
			bottom.Tool("y", says("other"))
			build(top, middle, bottom)
			bottom.Tool("x", says("other"))
			bottom.Prompt("x", promptSays("other"))
			mcptest.Run(t, top, func(t *testing.T, c *mcp.Conn) {
				names, _ := toolNames(t, c)
				if slices.Sort(names); !slices.Equal(names, []string{"m_b_x", "m_b_y"}) {
					t.Errorf("listed %q", names)
				}
				if got := mustCall(t, c, "m_b_x", ""); got != "own" {
					t.Errorf("the tool of the %s mux was called", got)
				}
				prompts, err := c.ListPrompts(t.Context(), nil)
				if err != nil || len(prompts.Prompts) != 1 {
					t.Errorf("listed %+v, %v", prompts, err)
				}
			})
			if n := strings.Count(log.String(), "already has"); n != 2 {
				t.Errorf("two conflicts were logged %d times:\n%s", n, &log)
			}
		})
	}
}

// Middleware of a mux wraps the middleware of its mounts.
func TestMountMiddleware(t *testing.T) {
	var j journal
	child := mcp.NewMux("child", "v1", quiet())
	child.Use(j.middleware("c"))
	child.Tool("x", says(""))
	outer := mcp.NewMux("outer", "v1", quiet())
	outer.Use(j.middleware("o"))
	outer.With(j.middleware("w")).Mount("c_", child)
	if _, err := callTool(t, outer, "c_x", ""); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(j.take(), " "); got != "o w c C W O" {
		t.Errorf("passed %q", got)
	}
}

// Changes in a mounted mux, including in its own mounts, reach subscribers of the outer
// mux.
func TestMountChangesGoUp(t *testing.T) {
	bottom := mcp.NewMux("bottom", "v1", quiet())
	bottom.Tool("x", says(""))
	bottom.Resource("note://a", reads("a"))
	middle, top := mcp.NewMux("middle", "v1", quiet()), mcp.NewMux("top", "v1", quiet())
	middle.Mount("b_", bottom)
	top.Mount("m_", middle)
	mcptest.Run(t, top, func(t *testing.T, c *mcp.Conn) {
		const uri = "mount:m_:mount:b_:note://a"
		filter := mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{uri}}
		s, changes := listen(t, c, filter)
		if !s.Accepted().ToolsListChanged || len(s.Accepted().ResourceSubscriptions) != 1 {
			t.Fatalf("accepted %+v", s.Accepted())
		}
		bottom.ResourceUpdated("note://a")
		if got := next(t, changes, mcp.NotificationResourceUpdated); got.URI != uri {
			t.Errorf("got %s", got.URI)
		}
		bottom.Tool("new", says(""))
		next(t, changes, mcp.NotificationToolsListChanged)
		bottom.RemoveTool("new")
	})
}

// A tool error passes through a mount unchanged, even one that names a resource.
func TestMountKeepsErrorsOfTools(t *testing.T) {
	inner := mcp.NewMux("inner", "v1", quiet())
	inner.Tool("look", mcp.ToolFunc(func(context.Context, none) (string, error) {
		return "", mcp.NewResourceNotFoundError("notes://lost")
	}, nil))
	outer := mcp.NewMux("outer", "v1", quiet())
	outer.Mount("in_", inner)
	if _, err := callTool(t, outer, "in_look", ""); err == nil || !strings.Contains(err.Error(), `"notes://lost"`) {
		t.Errorf("the error became %v", err)
	}
}

// A list with a missing part must not be cached, because the part may be back next time. A
// mount that has no such list, or rejects the caller, does not count as missing.
func TestHintsOfIncompleteList(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want int64
	}{
		"not available": {errors.New("connection refused"), 0},
		"not allowed":   {mcp.NewInsufficientScopeError("read"), time.Hour.Milliseconds()},
		"no list":       {mcp.NewMethodNotFoundError(mcp.MethodListTools), time.Hour.Milliseconds()},
	} {
		t.Run(name, func(t *testing.T) {
			opts := quiet()
			opts.ListCache = mcp.CacheFor(time.Hour, mcp.CachePublic)
			mux := mcp.NewMux("m", "v1", opts)
			mux.Tool("own", says("hello"))
			mux.Mount("d_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, test.err }))
			res, err := mcptest.Connect(t, mux).ListTools(t.Context(), nil)
			if err != nil || len(res.Tools) != 1 || res.TTLMs == nil || *res.TTLMs != test.want {
				t.Errorf("listed %+v, %v; want a TTL of %d", res, err, test.want)
			}
		})
	}
}

// plainLog returns a logger that writes to b, without times, stacks and source positions.
func plainLog(b *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "stack" || a.Key == "mounted" || a.Key == "registered" {
			return slog.Attr{}
		}
		return a
	}}))
}

// subscriptionID matches the subscription ID in notifications.
var subscriptionID = regexp.MustCompile(`"io.modelcontextprotocol/subscriptionId":\d+`)

// A mux handles every kind of failure of a mounted handler.
func TestMountFaults(t *testing.T) {
	answers := []struct {
		name   string
		answer func() (mcp.Result, error)
	}{
		{"an error", func() (mcp.Result, error) { return nil, errors.New("secret") }},
		{"a coded error", func() (mcp.Result, error) { return nil, mcp.Errorf(77, "no").WithData(1) }},
		{"not found", func() (mcp.Result, error) { return nil, mcp.NewMethodNotFoundError("x") }},
		{"nothing", func() (mcp.Result, error) { return nil, nil }},
		{"another result", func() (mcp.Result, error) { return &mcp.EmptyResult{}, nil }},
		{"a question without a question", func() (mcp.Result, error) { return &mcp.InputRequired{}, nil }},
		{"a question", func() (mcp.Result, error) {
			return &mcp.InputRequired{InputRequests: map[string]mcp.InputRequest{"r": {Method: mcp.MethodListRoots}}}, nil
		}},
		{"a panic", func() (mcp.Result, error) { panic("bug") }},
	}
	var text strings.Builder
	for _, s := range []sample{
		{mcp.MethodDiscover, ``}, {mcp.MethodListTools, ``}, {mcp.MethodListPrompts, ``}, {mcp.MethodListResources, ``}, {mcp.MethodListResourceTemplates, ``},
		{mcp.MethodCallTool, `"name":"in_a"`}, {mcp.MethodGetPrompt, `"name":"in_a"`}, {mcp.MethodReadResource, `"uri":"mount:in_:test://a"`},
		{mcp.MethodComplete, `"ref":{"type":"ref/prompt","name":"in_a"},"argument":{"name":"a","value":""}`},
		{mcp.MethodComplete, `"ref":{"type":"ref/resource","uri":"mount:in_:test://{a}"},"argument":{"name":"a","value":""}`},
		{mcp.MethodListen, `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["mount:in_:test://a"]}`}, {"vendor/x", ``},
	} {
		fmt.Fprintf(&text, "> %s %s\n", s.method, s.members)
		for _, a := range answers {
			var log bytes.Buffer
			mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: plainLog(&log)})
			mux.Tool("own", says("own"))
			mux.Mount("in_", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method == s.method {
					return a.answer()
				}
				return nil, mcp.NewMethodNotFoundError(req.Method)
			}))
			ctx, cancel := context.WithCancel(t.Context())
			var told []string
			req := mcptest.NewRequest(s.method, json.RawMessage(s.params(metaModern)))
			res, err := core.Serve(ctx, mux, req, notifier(func(method string, params json.RawMessage) {
				told = append(told, method+" "+subscriptionID.ReplaceAllString(string(params), ""))
				cancel()
			}), plainLog(&log))
			cancel()
			fmt.Fprintf(&text, "  %s: %s\n", a.name, strings.Join(append(told, resultOf(res, err)), "\n    "))
			if log.Len() > 0 {
				fmt.Fprintf(&text, "    logged: %s\n", strings.ReplaceAll(strings.TrimSpace(log.String()), "\n", "\n    logged: "))
			}
		}
	}
	golden.Check(t, "mounts", text.String())
}

// stranger returns a remote server with the given lists that answers every call with the
// requested name.
func stranger(lists map[string]string) mcp.Handler {
	return mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		switch req.Method {
		case mcp.MethodDiscover:
			caps := `{"tools":{},"prompts":{},"resources":{},"completions":{}}`
			res := &mcp.DiscoverResult{SupportedVersions: mcp.ModernVersions()}
			return res, json.Unmarshal([]byte(caps), &res.Capabilities)
		case mcp.MethodCallTool:
			return mcp.TextResult("the stranger's " + req.Name()), nil
		case mcp.MethodGetPrompt:
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{mcp.UserMessage(mcp.Text("the stranger's " + req.Name()))}}, nil
		case mcp.MethodReadResource:
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Name(), Text: "the stranger's " + req.Name()}}}, nil
		}
		if list, ok := lists[req.Method]; ok {
			res := &mcp.EmptyResult{}
			return res, json.Unmarshal([]byte(list), &res.Extra)
		}
		return nil, mcp.NewMethodNotFoundError(req.Method)
	})
}

// logged returns a mux and its log.
func logged() (*mcp.Mux, *bytes.Buffer) {
	log := new(bytes.Buffer)
	return mcp.NewMux("gateway", "v1", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(log, nil))}), log
}

// inFront runs fn with a client of each era in front of a gateway.
func inFront(t *testing.T, gw mcp.Handler, fn func(t *testing.T, c *mcp.Conn)) {
	t.Helper()
	for _, version := range bothEras {
		t.Run("in front "+version, func(t *testing.T) {
			fn(t, connect(t, gw, &mcp.ClientOptions{Version: version, Logger: quiet().Logger}))
		})
	}
}

// mountRemote mounts a connection to h.
func mountRemote(t *testing.T, mux *mcp.Mux, prefix string, h mcp.Handler) {
	t.Helper()
	mux.Mount(prefix, connect(t, h, &mcp.ClientOptions{Forward: true, Logger: quiet().Logger}))
}

// A remote server cannot describe a tool of the gateway or of another mount, because a call
// would not reach it.
func TestFindingS15MountsDescribeOnlyTheirOwn(t *testing.T) {
	gw, log := logged()
	gw.Tool("git_pay", says("own"))
	gw.Prompt("git_ask", promptSays("own"))
	gw.Resource("{+anything}", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Name(), Text: "own"}}}, nil
	}))
	mountRemote(t, gw, "git_", stranger(map[string]string{
		mcp.MethodListTools:     `{"tools":[{"name":"pay","description":"of a stranger","inputSchema":{"type":"object"}},{"name":"log","inputSchema":{"type":"object"}}]}`,
		mcp.MethodListPrompts:   `{"prompts":[{"name":"ask","description":"of a stranger"},{"name":"tell"}]}`,
		mcp.MethodListResources: `{"resources":[{"uri":"a://b","name":"b"},{"uri":"mount:hub_:a://b","name":"b"}]}`,
	}))
	inFront(t, gw, func(t *testing.T, c *mcp.Conn) {
		tools := map[string]string{}
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if _, twice := tools[tool.Name]; twice || tool.Description != "" && tool.Description == "of a stranger" {
				t.Errorf("listed %+v", tool)
			}
			if tools[tool.Name], err = mcp.Call[string](t.Context(), c, tool.Name, nil); err != nil {
				t.Error(err)
			}
		}
		if want := map[string]string{"git_pay": "own", "git_log": "the stranger's log"}; !maps.Equal(tools, want) {
			t.Errorf("the listed tools answer %q, want %q", tools, want)
		}
		prompts := map[string]string{}
		for prompt, err := range c.Prompts(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			res, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompt.Name})
			if err != nil {
				t.Fatal(err)
			}
			prompts[prompt.Name] += res.Messages[0].Content.(*mcp.TextContent).Text
		}
		if want := map[string]string{"git_ask": "own", "git_tell": "the stranger's tell"}; !maps.Equal(prompts, want) {
			t.Errorf("the listed prompts answer %q, want %q", prompts, want)
		}
		for uri, want := range map[string]string{
			"mount:git_:a://b":            "the stranger's a://b",
			"mount:git_:mount:hub_:a://b": "the stranger's mount:hub_:a://b",
			"elsewhere://b":               "own",
		} {
			if res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err != nil || res.Contents[0].Text != want || res.Contents[0].URI != uri {
				t.Errorf("%s: read %+v, %v", uri, res, err)
			}
		}
	})
	for _, name := range []string{"git_pay", "git_ask"} {
		if n := strings.Count(log.String(), name); n != 1 {
			t.Errorf("%s is left out with %d lines in the log, want one:\n%s", name, n, log)
		}
	}
}

// A prefix that begins with another one is rejected, because names would be ambiguous.
func TestFindingCM13PrefixesAreDisjoint(t *testing.T) {
	for _, prefixes := range [][2]string{{"a_", "a_b_"}, {"a_b_", "a_"}, {"a", "ab"}} {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Mount(prefixes[0], stranger(nil))
		wantPanic(t, func() { mux.Mount(prefixes[1], stranger(nil)) }, prefixes[0], prefixes[1], "mount_test.go:")
		mux.Unmount(prefixes[0])
		mux.Mount(prefixes[1], stranger(nil))
	}
}

// URIs with the prefix of a mount are reserved for that mount.
func TestFindingS15URIsOfAMountAreItsAlone(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Mount("a_", stranger(nil))
	for _, pattern := range []string{"mount:a_:x", "mount:a_:{+x}"} {
		wantPanic(t, func() { mux.Resource(pattern, reads("")) }, pattern, "mount:a_:", "mount_test.go:")
	}
	mux.Resource("mount:b_:x", reads(""))
	wantPanic(t, func() { mux.Mount("b_", stranger(nil)) }, "mount:b_:x")
}

// The error for an unknown name of a mount contains the name that the caller used, so
// hidden items look like absent ones.
func TestFindingCL3S18ErrorsNameTheOuterName(t *testing.T) {
	inner := mcp.NewMux("inner", "v1", quiet())
	inner.Tool("t", says(""))
	inner.Prompt("p", promptSays(""))
	inner.Resource("r://{x}", mcp.ResourceFunc(func(context.Context, struct {
		X string `json:"x"`
	}) (string, error) {
		return "", nil
	}, nil))
	for name, mounted := range map[string]mcp.Handler{"mux": inner, "remote": connect(t, inner, nil)} {
		outer := mcp.NewMux("outer", "v1", quiet())
		outer.Tool("own", says(""))
		outer.Prompt("own", promptSays(""))
		outer.Mount("c_", mounted)
		inFront(t, outer, func(t *testing.T, c *mcp.Conn) {
			want := func(err error, text string) {
				t.Helper()
				if err == nil || !strings.HasPrefix(err.Error(), text) {
					t.Errorf("%s: got %v, want %s", name, err, text)
				}
			}
			_, err := c.CallTool(t.Context(), tool("c_nope", ""))
			want(err, `unknown tool "c_nope"`)
			_, err = c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "c_nope"})
			want(err, `unknown prompt "c_nope"`)
			argument := mcp.CompleteArgument{Name: "x"}
			_, err = c.Complete(t.Context(), &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "c_nope"}, Argument: argument})
			want(err, `unknown prompt "c_nope"`)
			_, err = c.Complete(t.Context(), &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/resource", URI: "mount:c_:none://"}, Argument: argument})
			want(err, `unknown resource "mount:c_:none://"`)
		})
	}
}

// Invalid list items of a server are repaired if the fix is certain, and otherwise left
// out, because one bad item makes a whole list unreadable for many clients.
func TestFindingI4I10ListsOfMountsAreReadable(t *testing.T) {
	const object = `,"inputSchema":{"type":"object"}`
	gw, log := logged()
	mountRemote(t, gw, "b_", stranger(map[string]string{
		mcp.MethodListTools: `{"tools":[
			{"name":"good"` + object + `},
			{"name":"good","description":"again"` + object + `},
			{"name":""` + object + `},
			{"name":"hidden\u202e"` + object + `},
			{"name":"untyped","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"any":true,"x":{"type":"string"}}}},
			{"name":"schemaless"},
			{"name":"text","inputSchema":{"type":"string"}},
			{"name":"maybe","inputSchema":{"type":["object","null"]}},
			{"name":"list","inputSchema":[]},
			{"name":"properties","inputSchema":{"type":"object","properties":[]}},
			{"name":"property","inputSchema":{"type":"object","properties":{"x":"string"}}},
			{"name":"required","inputSchema":{"type":"object","required":"x"}},
			{"name":"header","inputSchema":{"type":"object","properties":{"x":{"type":"object","x-mcp-header":"X"}}}},
			{"name":"output","outputSchema":{"type":"object","properties":7}` + object + `},
			{"name":"task","execution":{"taskSupport":"required"}` + object + `},
			{"name":"either","execution":{"taskSupport":"optional"}` + object + `}]}`,
		mcp.MethodListPrompts:           `{"prompts":[{"name":"p"},{"name":"p"},{"name":""}]}`,
		mcp.MethodListResources:         `{"resources":[{"uri":"r:1","name":"1"},{"uri":"r:1","name":"2"},{"uri":"","name":"3"}]}`,
		mcp.MethodListResourceTemplates: `{"resourceTemplates":[{"uriTemplate":"r:{x}","name":"1"},{"uriTemplate":"r:{x}","name":"2"},{"uriTemplate":"","name":"3"}]}`,
	}))
	inFront(t, gw, func(t *testing.T, c *mcp.Conn) {
		res, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range res.Tools {
			names = append(names, tool.Name)
			var schema struct {
				Type       string                    `json:"type"`
				Properties map[string]map[string]any `json:"properties"`
			}
			if err := json.Unmarshal(tool.InputSchema, &schema); err != nil || schema.Type != "object" {
				t.Errorf("%s has the schema %s, %v", tool.Name, tool.InputSchema, err)
			}
			if tool.Name == "b_untyped" && (schema.Properties["x"]["type"] != "string" || schema.Properties["any"] == nil) {
				t.Errorf("the schema became %s", tool.InputSchema)
			}
			if tool.OutputSchema != nil {
				t.Errorf("%s has the output schema %s", tool.Name, tool.OutputSchema)
			}
		}
		if want := []string{"b_good", "b_untyped", "b_schemaless", "b_output", "b_either"}; !slices.Equal(names, want) {
			t.Errorf("listed %q, want %q", names, want)
		}
		prompts, err := c.ListPrompts(t.Context(), nil)
		if err != nil || len(prompts.Prompts) != 1 {
			t.Errorf("%d prompts, %v", len(prompts.Prompts), err)
		}
		resources, err := c.ListResources(t.Context(), nil)
		if err != nil || len(resources.Resources) != 1 || resources.Resources[0].Name != "1" {
			t.Errorf("resources %+v, %v", resources.Resources, err)
		}
		templates, err := c.ListResourceTemplates(t.Context(), nil)
		if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].Name != "1" {
			t.Errorf("templates %+v, %v", templates.ResourceTemplates, err)
		}
	})
	for _, name := range []string{"good", "untyped", "schemaless", "text", "maybe", "list", "properties", "property", "required", "output", "task"} {
		if !strings.Contains(log.String(), name) {
			t.Errorf("nothing is logged of %s:\n%s", name, log)
		}
	}
	if strings.Contains(log.String(), "\u202e") {
		t.Errorf("the log is %s", log)
	}
}

// Invalid list items are logged once each, up to a limit.
func TestFindingI4WarningsAreBounded(t *testing.T) {
	gw, log := logged()
	n := 0
	gw.Mount("b_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		n++
		return &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: fmt.Sprint("bad", n), InputSchema: []byte(`7`)}, {Name: "same", InputSchema: []byte(`7`)}}}, nil
	}))
	for range 1500 {
		if res, _, err := mcptest.Do(t, gw, mcptest.NewRequest(mcp.MethodListTools, nil)); err != nil || len(res.(*mcp.ListToolsResult).Tools) != 0 {
			t.Fatalf("listed %+v, %v", res, err)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines < 2 || lines > 1100 || strings.Count(log.String(), "b_same") != 1 {
		t.Errorf("%d lines were logged, %d of them of one tool", lines, strings.Count(log.String(), "b_same"))
	}
}

// For callers of a gateway, results come from the gateway, whatever era the server behind
// it speaks.
func TestFindingI10ResultsNameTheGateway(t *testing.T) {
	for _, back := range bothEras {
		inFront(t, gateway(t, library(), back), func(t *testing.T, c *mcp.Conn) {
			call, err := c.CallTool(t.Context(), tool("b_find", ""))
			if err != nil {
				t.Fatal(err)
			}
			prompt, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "b_review", Arguments: map[string]string{"style": "long"}})
			if err != nil {
				t.Fatal(err)
			}
			read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mount:b_:book://1"})
			if err != nil {
				t.Fatal(err)
			}
			completed, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "b_review"}, Argument: mcp.CompleteArgument{Name: "style"}})
			if err != nil {
				t.Fatal(err)
			}
			for _, meta := range []mcp.Meta{call.Meta, prompt.Meta, read.Meta, completed.Meta} {
				var info mcp.Implementation
				if meta.Get(mcp.MetaServerInfo, &info); c.Version() == mcp.LatestVersion && info.Name != "gateway" {
					t.Errorf("in front of %s: a result of %+v", back, info)
				}
			}
		})
	}
}

// The log names a part missing from a list by its mount prefix.
func TestFindingU19PartsOfLists(t *testing.T) {
	gw, log := logged()
	gw.Mount("web_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, mcp.Errorf(mcp.CodeInternalError, "out of order")
	}))
	if _, _, err := mcptest.Do(t, gw, mcptest.NewRequest(mcp.MethodListTools, nil)); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); !strings.Contains(got, " part=web_ ") {
		t.Errorf("the log has %q", got)
	}
}

// dozing is a server that does not answer until it is awake.
type dozing struct {
	server mcp.Handler
	awake  chan struct{} // closed when it wakes
}

func (d *dozing) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	select {
	case <-d.awake:
		return d.server.ServeMCP(ctx, req)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// toolNames returns the names of all tools, and how long listing them took.
func toolNames(t *testing.T, c *mcp.Conn) (names []string, took time.Duration) {
	t.Helper()
	start := time.Now()
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names, time.Since(start)
}

// While a mounted server does not answer, only its own part is missing: discovery, lists
// and subscriptions of the gateway work without it. When it answers again, its part is
// back in the next list.
func TestFindingCM4W9SilentMountCostsItself(t *testing.T) {
	for _, back := range bothEras {
		for _, front := range bothEras {
			t.Run(front+" in front of "+back, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { silentMount(t, front, back) })
			})
		}
	}
}

func silentMount(t *testing.T, front, back string) {
	gw := mcp.NewMux("gateway", "v1", quiet())
	gw.Tool("own", says("own"))
	opts := &mcp.ClientOptions{Version: back, Logger: quiet().Logger}
	gw.Mount("good_", connect(t, hello(), opts))
	awake := make(chan struct{})
	for _, prefix := range []string{"a_", "b_", "z_"} {
		d := &dozing{server: hello(), awake: make(chan struct{})}
		ready := d.awake
		close(ready)
		conn := connect(t, d, opts)
		d.awake = awake
		gw.Mount(prefix, conn)
	}
	start := time.Now()
	c := connect(t, gw, &mcp.ClientOptions{Version: front})
	if took := time.Since(start); took > 2*time.Second { // a second of which is for notifications/initialized
		t.Errorf("connecting took %v", took)
	}
	names, took := toolNames(t, c)
	if want := []string{"own", "good_hello"}; !slices.Equal(names, want) || took > 6*time.Second { // including the second, as above
		t.Errorf("listed %q after %v, want %q", names, took, want)
	}
	changes := make(chan string, 64)
	start = time.Now()
	s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(ch mcp.Change) { changes <- ch.Method })
	if err != nil || !s.Accepted().ToolsListChanged || time.Since(start) > 2*time.Second {
		t.Fatalf("subscribing: %+v, %v after %v", s, err, time.Since(start))
	}
	start = time.Now()
	gw.Tool("second", says(""))
	if <-changes; time.Since(start) > time.Second {
		t.Errorf("a change was heard of after %v", time.Since(start))
	}
	close(awake)
	synctest.Wait()
	if names, _ := toolNames(t, c); len(names) != 6 || !slices.Contains(names, "z_hello") {
		t.Errorf("after the servers came back: %q", names)
	}
	s.Close()
	<-s.Done()
}

// The mount timeout can be changed and disabled.
func TestFindingW9MountTimeout(t *testing.T) {
	for _, test := range []struct{ timeout, want time.Duration }{
		{0, 5 * time.Second}, {200 * time.Millisecond, 200 * time.Millisecond}, {-1, 10 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := quiet()
			o.MountTimeout = test.timeout
			gw := mcp.NewMux("gateway", "v1", o)
			gw.Tool("own", says("own"))
			d := &dozing{server: hello(), awake: make(chan struct{})}
			gw.Mount("a_", d)
			time.AfterFunc(10*time.Minute, func() { close(d.awake) })
			c := connect(t, gw, &mcp.ClientOptions{Version: mcp.LatestVersion})
			if names, took := toolNames(t, c); took > test.want || took < test.want-2*time.Second {
				t.Errorf("%v: listed %q after %v, want %v", test.timeout, names, took, test.want)
			}
			gw.Mount("b_", &dozing{server: hello(), awake: make(chan struct{})})
			start := time.Now()
			_, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {})
			if took := time.Since(start); err != nil || took != min(test.want, time.Second) {
				t.Errorf("%v: subscribed after %v, %v", test.timeout, took, err)
			}
			c.Close()
			gw.Unmount("a_")
			gw.Unmount("b_")
		})
	}
}

// Mounted handlers that ignore their context or panic are left out like failing ones, and
// logged.
func TestFindingW9MountThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gw, log := logged()
		gw.Tool("own", says("own"))
		release := make(chan struct{})
		gw.Mount("deaf_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			<-release
			return nil, nil
		}))
		gw.Mount("panics_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { panic("no") }))
		c := connect(t, gw, &mcp.ClientOptions{Version: mcp.LatestVersion})
		if names, took := toolNames(t, c); took > 5*time.Second || !slices.Equal(names, []string{"own"}) {
			t.Errorf("listed %q after %v", names, took)
		}
		for _, part := range []string{"deaf_", "panics_", "no answer to tools/list within 5s"} {
			if !strings.Contains(log.String(), part) {
				t.Errorf("the log does not have %q:\n%s", part, log)
			}
		}
		close(release)
		c.Close()
	})
}

// Pages of several mounts are requested concurrently, and none is lost or repeated.
func TestFindingW9PagesOfManyMounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := quiet()
		small.PageSize = 2
		gw := mcp.NewMux("gateway", "v1", small)
		gw.Tool("own", says(""))
		var want []string
		want = append(want, "own")
		for _, prefix := range []string{"a_", "b_", "c_", "d_"} {
			remote := mcp.NewMux(prefix, "v1", small)
			for _, name := range []string{"1", "2", "3"} {
				remote.Tool(name, says(""))
				want = append(want, prefix+name)
			}
			gw.Mount(prefix, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				<-time.After(time.Second)
				return remote.ServeMCP(ctx, req)
			}))
		}
		c := connect(t, gw, &mcp.ClientOptions{Version: mcp.LegacyVersions()[0]})
		if names, took := toolNames(t, c); !slices.Equal(names, want) || took > 10*time.Second {
			t.Errorf("listed %q after %v, want %q", names, took, want)
		}
		c.Close()
	})
}

// A server that hangs delays one list a minute by the whole timeout, and the others by one
// second. Once it answers, it has the whole time again.
func TestHungMountCostsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gw := mcp.NewMux("gateway", "v1", quiet())
		gw.Tool("own", says("own"))
		d := &dozing{server: hello(), awake: make(chan struct{})}
		gw.Mount("hung_", d)
		c := connect(t, gw, &mcp.ClientOptions{Version: mcp.LatestVersion})
		listAfter := func(pause, want time.Duration, tools ...string) {
			t.Helper()
			<-time.After(pause)
			if names, took := toolNames(t, c); took != want || !slices.Equal(names, tools) {
				t.Errorf("listed %q after %v, want %q after %v", names, took, tools, want)
			}
		}
		listAfter(0, 5*time.Second, "own")
		listAfter(0, time.Second, "own")
		listAfter(30*time.Second, time.Second, "own")
		listAfter(time.Minute, 5*time.Second, "own")
		listAfter(0, time.Second, "own")
		close(d.awake)
		listAfter(0, 0, "own", "hung_hello")
		synctest.Wait()
		d.awake = make(chan struct{})
		listAfter(0, 5*time.Second, "own")
		c.Close()
	})
}
