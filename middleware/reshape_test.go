// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// saying returns a server with tools that return their names and the argument q.
func saying(names ...string) *mcp.Mux {
	mux := mcp.NewMux("m", "v1", quiet())
	for _, name := range names {
		mux.Tool(name, mcp.ToolFunc(func(_ context.Context, in map[string]string) (string, error) {
			return name + " " + in["q"], nil
		}, nil))
	}
	return mux
}

func listed(t *testing.T, c *mcp.Conn) string {
	t.Helper()
	var names []string
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// Calling a listed name reaches the tool that is listed under it. Former names, and names
// that are used twice, reach nothing else.
func TestReshapedNames(t *testing.T) {
	for name, test := range map[string]struct {
		reshape mcp.Middleware
		listed  string
		calls   map[string]string // "" means that there is no such tool
	}{
		"by a map": {
			middleware.Reshape(map[string]mcp.Shape{"search": {Name: "find"}, "x": {Name: "y"}}), "find get put",
			map[string]string{"find": "search a", "get": "get a", "search": "", "x": "", "y": "", "none": ""},
		},
		"a swap": {
			middleware.Reshape(map[string]mcp.Shape{"get": {Name: "put"}, "put": {Name: "get"}}), "get put search",
			map[string]string{"get": "put a", "put": "get a"},
		},
		"onto another": {
			middleware.Reshape(map[string]mcp.Shape{"search": {Name: "get"}}), "get put",
			map[string]string{"get": "search a", "search": ""},
		},
		"by functions": {
			middleware.ReshapeFunc(func(name string) mcp.Shape { return mcp.Shape{Name: strings.ToUpper(name)} }, strings.ToLower), "GET PUT SEARCH",
			map[string]string{"GET": "get a", "get": "", "gEt": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			renamed := mcp.NewMux("renamed", "v1", quiet())
			renamed.With(test.reshape).Mount("in_", saying("get", "put", "search"))
			mcptest.Run(t, renamed, func(t *testing.T, c *mcp.Conn) {
				want := "in_" + strings.ReplaceAll(test.listed, " ", " in_")
				if got := listed(t, c); got != want {
					t.Errorf("listed %q, want %q", got, want)
				}
				for name, want := range test.calls {
					res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "in_" + name, Arguments: []byte(`{"q":"a"}`)})
					switch {
					case want == "":
						if wantCode(t, err, mcp.CodeInvalidParams); !strings.Contains(fmt.Sprint(err), `"in_`+name+`"`) {
							t.Errorf("%s: got %v", name, err)
						}
					case err != nil || textOf(t, res) != want:
						t.Errorf("%s: got %v, %v, want %s", name, res, err, want)
					}
				}
			})
		})
	}
}

// Questions continue under the new name, and members unknown to this package are passed on.
func TestReshapeKeepsTheRequest(t *testing.T) {
	type form struct {
		Name string `json:"name"`
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(middleware.Reshape(map[string]mcp.Shape{"greet": {Name: "hello"}}))
	mux.Tool("greet", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		f, err := mcp.Elicit[form](ctx, "name", "Who are you?")
		var vendor string
		mcp.RequestFromContext(ctx).Meta().Get("example.com/x", &vendor)
		return vendor + " " + f.Name, err
	}, nil))
	client := &mcptest.Client{Options: mcp.ClientOptions{Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return mcptest.Accept(form{"Ada"}), nil
	}}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		p := &mcp.CallToolParams{Name: "hello"}
		p.Meta.Set("example.com/x", "dear")
		if res, err := c.CallTool(t.Context(), p); err != nil || textOf(t, res) != "dear Ada" {
			t.Errorf("got %v, %v", res, err)
		}
	})
}

func TestReshapePanics(t *testing.T) {
	mustPanic(t, "Reshape", func() { middleware.Reshape(map[string]mcp.Shape{"a": {Name: "c"}, "b": {Name: "c"}}) })
	mustPanic(t, "Reshape", func() { middleware.Reshape(map[string]mcp.Shape{"": {Name: "a"}}) })
	same := func(_ context.Context, r *mcp.CallToolResult) (*mcp.CallToolResult, error) { return r, nil }
	mustPanic(t, "Reshape", func() {
		middleware.Reshape(map[string]mcp.Shape{"a": {Result: same, OutputSchema: []byte(`{"type":"none"}`)}})
	})
	mustPanic(t, "Reshape", func() {
		middleware.Reshape(map[string]mcp.Shape{"a": {Args: map[string]mcp.Arg{"p": {Name: "r"}, "q": {Name: "r"}}}})
	})
	mustPanic(t, "Reshape", func() {
		mcp.NewMux("m", "v1", quiet()).With(middleware.Reshape(nil)).Tool("a", says("a")) // which lists would not see
	})
	mustPanic(t, "ReshapeFunc", func() { middleware.ReshapeFunc(nil, strings.ToLower) })
}

// tenants returns a server with a search that a proxy can route by tenant and region.
func tenants() *mcp.Mux {
	mux := mcp.NewMux("tenants", "v1", quiet())
	mux.Tool("search", tenantSearch())
	return mux
}

func tenantSearch() mcp.Handler {
	type in struct {
		Tenant string `json:"tenant"`
		Region string `json:"region"`
		Q      string `json:"q"`
		Limit  int    `json:"limit"`
	}
	return mcp.ToolFunc(func(_ context.Context, in in) (string, error) {
		if in.Q == "fail" {
			return "", errors.New("the index is down")
		}
		return fmt.Sprintf("%s %s %s %d", in.Tenant, in.Region, in.Q, in.Limit), nil
	}, &mcp.Tool{Description: "Search.", InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false,` +
		`"required":["tenant","region","q","limit"],"properties":{` +
		`"tenant":{"type":"string","x-mcp-header":"Tenant"},"region":{"type":"string","x-mcp-header":"Region"},` +
		`"q":{"type":"string"},"limit":{"type":"integer","maximum":50,"x-mcp-header":"Limit"}}}`)})
}

var tenantShape = map[string]mcp.Shape{"search": {
	Name: "find", Description: "Find documents.",
	Args: map[string]mcp.Arg{
		"q":      {Name: "query", Description: "Words to find"},
		"region": {Name: "area"},
		"limit":  {Default: 10},
		"tenant": {Preset: func(ctx context.Context) (any, error) {
			if p := mcp.PrincipalFromContext(ctx); p != nil {
				return p.Subject, nil
			}
			return nil, errors.New("log in first")
		}},
	},
	Result: func(_ context.Context, r *mcp.CallToolResult) (*mcp.CallToolResult, error) {
		return mcp.TextResult("found: " + r.Content[0].(*mcp.TextContent).Text), nil
	},
}}

// A model sees and calls a tool in its new shape, wherever the tool is: registered here, on a
// mounted mux, or at another server of either era. Arguments that are mirrored in headers stay
// checked, also by a server behind a gateway.
func TestReshapedTool(t *testing.T) {
	upstream := func(t *testing.T, path mcptest.Path, version string) mcp.Handler {
		c := mcptest.Dial(t, path.Serve(t, tenants()), &mcp.ClientOptions{Version: version, Logger: quiet().Logger})
		mux := mcp.NewMux("gateway", "v1", quiet())
		mux.With(middleware.Reshape(tenantShape)).Mount("up_", c)
		mux.Use(middleware.Reshape(map[string]mcp.Shape{"up_find": {Name: "find"}}))
		return mux
	}
	servers := map[string]func(t *testing.T) mcp.Handler{
		"upstream": func(t *testing.T) mcp.Handler { return upstream(t, mcptest.Paths()[0], mcp.LatestVersion) },
		"one tool": func(*testing.T) mcp.Handler {
			mux := mcp.NewMux("m", "v1", quiet())
			mux.Tool("find", mcp.Reshape(tenantSearch(), tenantShape["search"]))
			return mux
		},
		"own": func(*testing.T) mcp.Handler {
			mux := tenants()
			mux.Use(middleware.Reshape(tenantShape))
			return mux
		},
		"mounted": func(*testing.T) mcp.Handler {
			mux := mcp.NewMux("gateway", "v1", quiet())
			mux.Mount("t_", tenants())
			mux.Use(middleware.Reshape(map[string]mcp.Shape{"t_search": tenantShape["search"]}))
			return mux
		},
	}
	client := &mcptest.Client{Principal: &mcp.Principal{Subject: "acme"}}
	for name, server := range servers {
		t.Run(name, func(t *testing.T) {
			client.Run(t, server(t), checkTenantTool)
		})
	}
	for _, path := range mcptest.Paths() {
		if path.Name == "http-json" {
			for _, version := range path.Versions() {
				checkTenantTool(t, client.Connect(t, upstream(t, path, version)))
			}
		}
	}
}

func checkTenantTool(t *testing.T, c *mcp.Conn) {
	t.Helper()
	list, err := c.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 1 {
		t.Fatalf("got %v, %v", list, err)
	}
	want := `{"type":"object","additionalProperties":false,"required":["area","query"],"properties":{` +
		`"area":{"type":"string","x-mcp-header":"Region"},"query":{"type":"string","description":"Words to find"},` +
		`"limit":{"default":10,"type":"integer","maximum":50,"x-mcp-header":"Limit"}}}`
	tool := list.Tools[0]
	if got := string(tool.InputSchema); tool.Name != "find" || tool.Description != "Find documents." || !sameJSON(t, got, want) {
		t.Errorf("got %s: %s\n%s\nwant\n%s", tool.Name, tool.Description, got, want)
	}
	for args, want := range map[string]string{
		`{"query":"go","area":"eu"}`:              "found: acme eu go 10",
		`{"query":"go","area":"eu","limit":5}`:    "found: acme eu go 5",
		`{"query":"go","area":"eu","limit":null}`: "found: acme eu go 10",
		`{"query":"fail","area":"eu"}`:            "the index is down",
		`{"area":"eu"}`:                           "invalid arguments:\n/query: expected string, got nothing",
		`{"query":1,"area":"eu","limit":99}`:      "invalid arguments:\n/limit: expected number of at most 50, got number 99\n/query: expected string, got number 1",
		`{"query":"go","area":"eu","size":1}`:     "invalid arguments:\n/size: expected a known property, got unknown property \"size\"; allowed: \"area\", \"limit\", \"query\"",
		`{"q":"go","area":"eu"}`:                  `invalid arguments: there is no argument "q"; did you mean "query"?`,
		`{"query":"go","area":"eu","tenant":"x"}`: `invalid arguments: there is no argument "tenant"`,
	} {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "find", Arguments: []byte(args)})
		if err != nil || !strings.HasPrefix(textOf(t, res), want) || strings.Contains(textOf(t, res), "/q:") {
			t.Errorf("%s: got %q, %v, want %q", args, textOf(t, res), err, want)
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

// A value that middleware sets needs no header, but a client that sends one must send the
// same value, because a proxy may have routed by it.
func TestReshapedHeaders(t *testing.T) {
	mux := tenants()
	mux.Use(middleware.Reshape(tenantShape))
	for _, test := range []struct {
		header map[string][]string
		code   int
	}{
		{map[string][]string{"Mcp-Param-Region": {"eu"}}, 0},
		{map[string][]string{"Mcp-Param-Region": {"eu"}, "Mcp-Param-Tenant": {"acme"}}, 0},
		{map[string][]string{"Mcp-Param-Region": {"eu"}, "Mcp-Param-Tenant": {"other"}}, mcp.CodeHeaderMismatch},
		{map[string][]string{"Mcp-Param-Region": {"us"}}, mcp.CodeHeaderMismatch},
		{map[string][]string{}, mcp.CodeHeaderMismatch},
	} {
		req := mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "find", Arguments: []byte(`{"query":"go","area":"eu"}`)})
		req.Header, req.Principal = test.header, &mcp.Principal{Subject: "acme"}
		res, err := mux.ServeMCP(t.Context(), req)
		if wantCode(t, err, test.code); err == nil && textOf(t, res) != "found: acme eu go 10" {
			t.Errorf("%v: got %v, %v", test.header, res, err)
		}
	}
}

// A preset that fails fails the call, and a preset without a value hides an argument.
func TestPresets(t *testing.T) {
	mux := tenants()
	mux.Use(middleware.Reshape(tenantShape))
	mux.Tool("maybe", mcp.Reshape(mcp.ToolFunc(func(_ context.Context, in map[string]any) (string, error) { return fmt.Sprint(in), nil }, nil),
		mcp.Shape{}))
	mux.Use(middleware.Reshape(map[string]mcp.Shape{"maybe": {Args: map[string]mcp.Arg{
		"x": {Preset: func(context.Context) (any, error) { return nil, nil }},
		"y": {Preset: func(context.Context) (any, error) { return map[string]int{"z": 1}, nil }},
	}}}))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "find", Arguments: []byte(`{"query":"go","area":"eu"}`)})
		if err != nil || !res.IsError || textOf(t, res) != "log in first" {
			t.Errorf("got %v, %v", res, err)
		}
		res, err = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "maybe", Arguments: []byte(`{"a":1}`)})
		if err != nil || textOf(t, res) != "map[a:1 y:map[z:1]]" {
			t.Errorf("got %v, %v", res, err)
		}
	})
}

// A preset fails a call as a tool does: a protocol error stays one, and private errors stay
// private. It can ask the user if it belongs to one tool, but not in middleware. A value that is
// no JSON is a mistake of the server.
func TestPresetsThatFail(t *testing.T) {
	type form struct {
		Tenant string `json:"tenant"`
	}
	presets := map[string]func(context.Context) (any, error){
		"asks": func(ctx context.Context) (any, error) {
			f, err := mcp.Elicit[form](ctx, "tenant", "For which tenant?")
			return f.Tenant, err
		},
		"fails": func(context.Context) (any, error) { return nil, errors.New("no tenant") },
		"private": func(context.Context) (any, error) {
			return nil, &mcp.PrivateError{Public: "try later", Err: errors.New("db1 is down")}
		},
		"protocol": func(context.Context) (any, error) { return nil, mcp.Errorf(mcp.CodeInvalidParams, "no such tenant") },
		"no JSON":  func(context.Context) (any, error) { return make(chan int), nil },
	}
	tool := func() mcp.Handler {
		return mcp.ToolFunc(func(_ context.Context, in form) (string, error) { return "of " + in.Tenant, nil }, nil)
	}
	mux, shapes := mcp.NewMux("m", "v1", quiet()), map[string]mcp.Shape{}
	for name, preset := range presets {
		shape := mcp.Shape{Args: map[string]mcp.Arg{"tenant": {Preset: preset}}}
		mux.Tool("one "+name, mcp.Reshape(tool(), shape))
		mux.Tool("server "+name, tool())
		shapes["server "+name] = shape
	}
	mux.Use(middleware.Reshape(shapes))
	client := mcptest.Client{Options: mcp.ClientOptions{Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return mcptest.Accept(form{"acme"}), nil
	}}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for tool, want := range map[string]string{
			"one asks": "of acme", "server asks": "questions can be asked only in the handlers",
			"one fails": "no tenant", "server fails": "no tenant", "one private": "try later", "server private": "try later",
			"one protocol": "no such tenant", "server protocol": "no such tenant",
			"one no JSON": "the value of an argument could not be encoded", "server no JSON": "the value of an argument could not be encoded",
		} {
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
			got := fmt.Sprint(err)
			if err == nil {
				got = textOf(t, res)
			}
			if wantErr := strings.HasSuffix(tool, "protocol") || strings.HasSuffix(tool, "JSON"); !strings.HasPrefix(got, want) || (err != nil) != wantErr {
				t.Errorf("%s: got %s, want %s", tool, got, want)
			}
		}
	})
}

// Explanations need the list of the server, which is read once a minute, for each caller.
func TestReshapeReadsListsRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		mux := tenants()
		mux.Use(middleware.Reshape(tenantShape), func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method == mcp.MethodListTools {
					lists++
				}
				return next.ServeMCP(ctx, req)
			})
		})
		fail := func(caller, args string, want int) {
			t.Helper()
			res, err := mux.ServeMCP(t.Context(), as(&mcp.Principal{Subject: caller},
				mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "find", Arguments: []byte(args)})))
			if err != nil || !res.(*mcp.CallToolResult).IsError || lists != want {
				t.Errorf("got %v, %v after %d lists, want %d", res, err, lists, want)
			}
		}
		fail("ann", `{"query":"fail","area":"eu"}`, 0) // the arguments were not the reason
		fail("ann", `{}`, 1)
		fail("ann", `{"query":1}`, 1)
		fail("bob", `{}`, 2)
		<-time.After(time.Minute)
		fail("bob", `{}`, 3)
	})
}

// A tool that its shape does not fit is missing from lists. This is logged once, and so is a
// shape for a tool that is not listed.
func TestShapeThatDoesNotFit(t *testing.T) {
	var logged strings.Builder
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	mux.Mount("m_", saying("a", "b"))
	mux.Tool("search", mcp.ToolFunc(func(context.Context, struct {
		Q string `json:"q"`
	}) (string, error) {
		return "", nil
	}, nil))
	mux.Use(middleware.Reshape(map[string]mcp.Shape{
		"search": {Args: map[string]mcp.Arg{"query": {Name: "words"}}}, "m_a": {Description: "A."}, "m_bb": {Name: "c"},
	}))
	for range 2 {
		if got := listed(t, mcptest.Connect(t, mux)); got != "m_a m_b" {
			t.Errorf("listed %q", got)
		}
	}
	text := logged.String()
	for _, want := range []string{`tool=search reason="the tool has no argument \"query\"`, `not listed; did you mean \"m_b\"?" tool=m_bb`} {
		if strings.Count(text, want) != 1 {
			t.Errorf("logged %s, want once %s", text, want)
		}
	}
	if n := strings.Count(text, "level=WARN"); n != 2 {
		t.Errorf("logged %d lines: %s", n, text)
	}
}

// A function may return a shape that contradicts itself. Its tool can neither be listed nor
// called; others can.
func TestContradictoryShape(t *testing.T) {
	mux := saying("a", "b")
	mux.Use(middleware.ReshapeFunc(func(name string) mcp.Shape {
		if name == "b" {
			return mcp.Shape{}
		}
		return mcp.Shape{Args: map[string]mcp.Arg{"x": {Name: "z"}, "y": {Name: "z"}}}
	}, strings.ToLower))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if got := listed(t, c); got != "b" {
			t.Errorf("listed %q", got)
		}
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "a"})
		wantCode(t, err, mcp.CodeInternalError)
		if res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "b"}); err != nil || textOf(t, res) != "b " {
			t.Errorf("got %v, %v", res, err)
		}
	})
}

// A server may list anything. What a shape does not fit is left out; the rest stays.
func TestReshapedOddServers(t *testing.T) {
	odd := func(name, schema string) *mcp.Tool {
		return &mcp.Tool{Name: name, InputSchema: json.RawMessage(schema)}
	}
	server := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == mcp.MethodCallTool {
			r := mcp.TextResult(string(req.Arguments()))
			r.IsError = true
			return r, nil
		}
		return &mcp.ListToolsResult{Tools: []*mcp.Tool{
			nil, {Name: "a"}, odd("a", "{"), odd("a", "[]"), odd("a", "true"), odd("a", `{"properties":[]}`), odd("a", `{"properties":{"x":1}}`),
			odd("a", `{"type":"object","properties":{"x":true,"y":{}},"required":"x","allOf":[true,7],"dependentRequired":{"x":3}}`),
			odd("other", `{"properties":7}`), odd("", "{}"),
		}}, nil
	})
	h := middleware.Reshape(map[string]mcp.Shape{"a": {Args: map[string]mcp.Arg{"x": {Default: 1, Name: "z"}}}})(server)
	res, err := h.ServeMCP(t.Context(), mcptest.NewRequest(mcp.MethodListTools, nil))
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"name":"a","inputSchema":{"properties":{"z":{"default":1}}}},` +
		`{"name":"a","inputSchema":{"type":"object","properties":{"z":{"default":1},"y":{}},"required":"x","allOf":[true,7],"dependentRequired":{"z":3}}},` +
		`{"name":"other","inputSchema":{"properties":7}},{"name":"","inputSchema":{}}]`
	got, err := json.Marshal(res.(*mcp.ListToolsResult).Tools)
	if err != nil || !sameJSON(t, string(got), want) {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	for args, want := range map[string]string{`{"z":[2]}`: `{"x":[2]}`, `{"y":1}`: `{"y":1,"x":1}`} {
		res, err := h.ServeMCP(t.Context(), mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "a", Arguments: []byte(args)}))
		if called, ok := res.(*mcp.CallToolResult); err != nil || !ok || textOf(t, called) != want {
			t.Errorf("%s: got %v, %v, want %s", args, res, err, want)
		}
	}
}

// The tools of a mounted server get names that a model can tell apart, and unwanted tools
// are removed.
func ExampleReshape() {
	tool := func(text string) mcp.Handler {
		return mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return text, nil }, nil)
	}
	issues := mcp.NewMux("issues", "v1.0.0", nil)
	issues.Tool("search", tool("found 3"))
	issues.Tool("delete_all", tool("gone"))

	mux := mcp.NewMux("gateway", "v1.0.0", nil)
	mux.With(
		middleware.Reshape(map[string]mcp.Shape{"search": {Name: "find_issues"}}),
		middleware.Deny(mcp.KindTool, "delete_*"),
	).Mount("github_", issues)

	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	for tool, err := range conn.Tools(ctx, nil) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(tool.Name)
	}
	fmt.Println(mcp.Call[string](ctx, conn, "github_find_issues", nil))
	// Output:
	// github_find_issues
	// found 3 <nil>
}

// Names with dots are replaced by names that every model provider accepts.
func ExampleReshapeFunc() {
	underscores := func(name string) mcp.Shape { return mcp.Shape{Name: strings.ReplaceAll(name, ".", "__")} }
	dots := func(name string) string { return strings.ReplaceAll(name, "__", ".") }

	mux := mcp.NewMux("server", "v1.0.0", nil)
	mux.Use(middleware.ReshapeFunc(underscores, dots))
	mux.Tool("issues.search", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "found 3", nil }, nil))

	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(mcp.Call[string](ctx, conn, "issues__search", nil))
	// Output: found 3 <nil>
}
