// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package matrix_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/middleware"
)

// things are the names for which the server has a tool, a prompt and a resource: every
// caller may use "open", none may see "hidden", "scoped" requires the scope s, and "anns"
// belongs to ann.
var things = []string{"open", "hidden", "scoped", "anns"}

// served returns a server whose handlers return the caller.
func served() *mcp.Mux {
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: quiet})
	mux.Use(middleware.Visible(func(_ context.Context, _ mcp.Kind, name string) bool {
		return !strings.Contains(name, "hidden")
	}))
	register(mux, "open", nil)
	register(mux, "hidden", nil)
	register(mux.With(middleware.RequireScopes("s")), "scoped", nil)
	register(mux, "anns", func(ctx context.Context) error {
		if mcp.PrincipalFromContext(ctx).Subject != "ann" {
			return fmt.Errorf("this is not yours")
		}
		return nil
	})
	return mux
}

func caller(ctx context.Context) string {
	p := mcp.PrincipalFromContext(ctx)
	return fmt.Sprintf("called by %s %v", p.Subject, p.Scopes)
}

// register registers a tool, a prompt and resources whose handlers check the caller.
func register(mux *mcp.Mux, name string, check func(context.Context) error) {
	say := func(ctx context.Context) (string, error) {
		if check != nil {
			if err := check(ctx); err != nil {
				return "", err
			}
		}
		return caller(ctx), nil
	}
	mux.Tool(name, mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) { return say(ctx) }, nil))
	complete := map[string]mcp.Completer{"id": func(ctx context.Context, _ *mcp.CompleteParams) ([]string, error) {
		text, err := say(ctx)
		return []string{text}, err
	}}
	mux.Prompt(name, mcp.PromptFunc(func(ctx context.Context, _ struct {
		ID string `json:"id,omitempty"`
	}) (string, error) {
		return say(ctx)
	}, &mcp.Prompt{Completers: complete}))
	mux.Resource(name+"://{id}", shelf{name, say, complete})
}

// shelf is a template that lists one resource.
type shelf struct {
	name     string
	say      func(context.Context) (string, error)
	complete map[string]mcp.Completer
}

func (s shelf) Describe() mcp.Description {
	return &mcp.Resource{Name: s.name, Completers: s.complete, List: s.list}
}

func (s shelf) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	text, err := s.say(ctx)
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Name(), Text: text}}}, nil
}

func (s shelf) list(ctx context.Context, _ *mcp.ListParams) (*mcp.ListResourcesResult, error) {
	text, err := s.say(ctx)
	if err != nil {
		return nil, err
	}
	return &mcp.ListResourcesResult{Resources: []*mcp.Resource{{URI: s.name + "://1", Name: text}}}, nil
}

// An operation is one method applied to one thing.
type operation struct {
	method string
	params func(p path, name string) string
	// says reports whether the response shows that the caller was allowed.
	says func(p path, name, who, response string) bool
}

// tellsWho reports whether the response comes from a handler that knows its caller.
func tellsWho(_ path, _, who, response string) bool {
	words := strings.Fields(who)
	return strings.Contains(response, fmt.Sprintf("called by %s %v", words[0], words[1:]))
}

func operations() []operation {
	byName := func(p path, name string) string { return fmt.Sprintf(`{"name":%q}`, p.tool(name)) }
	byURI := func(p path, name string) string { return fmt.Sprintf(`{"uri":%q}`, p.uri(name+"://1")) }
	all := func(path, string) string { return `{}` }
	return []operation{
		{mcp.MethodCallTool, byName, tellsWho},
		{mcp.MethodGetPrompt, byName, tellsWho},
		{mcp.MethodReadResource, byURI, tellsWho},
		{mcp.MethodComplete, func(p path, name string) string {
			return fmt.Sprintf(`{"ref":{"type":"ref/prompt","name":%q},"argument":{"name":"id","value":""}}`, p.tool(name))
		}, tellsWho},
		{mcp.MethodComplete, func(p path, name string) string {
			return fmt.Sprintf(`{"ref":{"type":"ref/resource","uri":%q},"argument":{"name":"id","value":""}}`, p.uri(name+"://{id}"))
		}, tellsWho},
		{mcp.MethodListResources, all, func(p path, name, who, response string) bool {
			return strings.Contains(response, fmt.Sprintf("%q", p.uri(name+"://1"))) && tellsWho(p, name, who, response)
		}},
	}
}

// subscription returns the operation that subscribes to a resource.
func subscription(p path) operation {
	if p.legacy {
		return operation{mcp.MethodSubscribe, func(p path, name string) string {
			return fmt.Sprintf(`{"uri":%q}`, p.uri(name+"://1"))
		}, func(_ path, _, _, response string) bool { return !strings.Contains(response, `"error"`) }}
	}
	return operation{mcp.MethodListen, func(p path, name string) string {
		return fmt.Sprintf(`{"notifications":{"resourceSubscriptions":[%q]}}`, p.uri(name+"://1"))
	}, func(p path, name, _, response string) bool { return strings.Contains(response, p.uri(name+"://1")) }}
}

// allowed reports whether a caller may use a thing.
func allowed(name, who string) bool {
	switch name {
	case "open":
		return true
	case "scoped":
		return strings.Contains(who, " s")
	case "anns":
		return strings.HasPrefix(who, "ann")
	}
	return false
}

// Every method on every path uses the identity of its own request: the scopes of the
// request's token and the items visible to the caller, regardless of who opened the session
// or what lies in between.
func TestIdentityAndVisibility(t *testing.T) {
	for _, p := range paths() {
		t.Run(p.name, func(t *testing.T) {
			for _, who := range []string{"ann s", "ann", "bob s", "bob"} {
				send := p.open(t, served(), who)
				ops := operations()
				if p.prefix == "" { // unacknowledged behind a mount
					ops = append(ops, subscription(p))
				}
				for _, op := range ops {
					for _, name := range things {
						response := send(t, op.method, op.params(p, name))
						if got, want := op.says(p, name, who, response), allowed(name, who); got != want {
							t.Errorf("%s: %s about %s: allowed is %t, want %t: %s", who, op.method, name, got, want, response)
						}
					}
				}
				lists(t, p, who, send)
			}
		})
	}
}

// lists checks that only the hidden thing is missing from the lists, regardless of scopes.
func lists(t *testing.T, p path, who string, send way) {
	t.Helper()
	for method, listed := range map[string]func(string) string{
		mcp.MethodListTools:             p.tool,
		mcp.MethodListPrompts:           p.tool,
		mcp.MethodListResourceTemplates: func(name string) string { return p.uri(name + "://{id}") },
	} {
		response := send(t, method, `{}`)
		for _, name := range things {
			if got, want := strings.Contains(response, fmt.Sprintf("%q", listed(name))), name != "hidden"; got != want {
				t.Errorf("%s: %s has %s: %t, want %t: %s", who, method, name, got, want, response)
			}
		}
	}
}

// A hidden thing cannot be distinguished from an unknown one: the responses differ only in
// the name.
func TestHiddenIsAbsent(t *testing.T) {
	for _, p := range paths() {
		t.Run(p.name, func(t *testing.T) {
			send := p.open(t, served(), "ann s")
			ops := operations()
			if p.prefix == "" {
				ops = append(ops, subscription(p))
			}
			for _, op := range ops {
				hidden := send(t, op.method, op.params(p, "hidden"))
				absent := send(t, op.method, op.params(p, "absent"))
				if got, want := normal(hidden), normal(strings.ReplaceAll(absent, "absent", "hidden")); got != want {
					t.Errorf("%s: what is hidden answers\n%s\nand what is absent\n%s", op.method, got, want)
				}
			}
		})
	}
}

// normal removes the counting ID of a response or subscription.
func normal(response string) string {
	for _, before := range []string{`"id":`, `subscriptionId":`} {
		if head, tail, ok := strings.Cut(response, before); ok {
			response = head + strings.TrimLeft(tail, `0123456789"`)
		}
	}
	return response
}

// A session can only be used by its own subject, on every path to it.
func TestSessionsOfOthers(t *testing.T) {
	at := endpoint(t, served(), &mcphttp.Options{}) + "/mcp"
	headers := enter(t, at, "2025-03-26", "ann s")
	headers.Set("X-User", "bob s")
	for _, op := range append(operations(), subscription(path{legacy: true})) {
		for _, body := range []string{message(op.method, op.params(path{}, "open")), "[" + message(op.method, op.params(path{}, "open")) + "]"} {
			if got, _ := post(t, at, headers, body); strings.Contains(got, "called by") || !strings.Contains(got, "error") {
				t.Errorf("%s: got %s", op.method, got)
			}
		}
	}
}
