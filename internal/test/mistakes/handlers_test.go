// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mistakes_test

import (
	"context"
	"os"
	"strings"
	"testing/fstest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/debug"
	"github.com/go-psi/psi/mcpstdio"
	"github.com/go-psi/psi/middleware"
)

// names are mistakes in names.
var names = []mistake{
	{"a tool registered twice", register(func(m *mcp.Mux) {
		m.Tool("t", says[none](nil))
		m.Tool("t", says[none](nil))
	}), []string{`mcp: tool "t" registered at`, here, "is registered at", "already"}},
	{"an empty name of a tool", register(func(m *mcp.Mux) { m.Tool("", says[none](nil)) }), []string{"mcp: tool at", here, "the name is empty"}},
	{"an empty name of a prompt", register(func(m *mcp.Mux) { m.Prompt("", asks[none](nil)) }), []string{"mcp: prompt at", here, "the name is empty"}},
	{"an empty URI", register(func(m *mcp.Mux) { m.Resource("", reads[none](nil)) }), []string{"mcp: resource at", here, "the name is empty"}},
	{"an empty method", register(func(m *mcp.Mux) { m.Handle("", says[none](nil)) }), []string{"mcp: method at", here, "the name is empty"}},
	{"a method of the mux", register(func(m *mcp.Mux) { m.Handle("tools/call", says[none](nil)) }),
		[]string{`mcp: method "tools/call" at`, here, "use Tool, Prompt, Resource or a middleware"}},
	{"an empty name of a server", panics(func() { mcp.NewMux("", "v1", nil) }), []string{"mcp: NewMux at", here, "the name is empty"}},
	{"an empty name of a client", panics(func() { mcp.NewClient("", "v1", nil) }), []string{"mcp: NewClient at", here, "the name is empty"}},
	{"another name in the tool", register(func(m *mcp.Mux) { m.Tool("t", says[none](&mcp.Tool{Name: "u"})) }),
		[]string{`mcp: tool "t" at`, here, `Tool.Name is "u"; leave it empty, or register the tool as "u"`}},
	{"another name in the prompt", register(func(m *mcp.Mux) { m.Prompt("t", asks[none](&mcp.Prompt{Name: "u"})) }),
		[]string{`mcp: prompt "t" at`, here, `Prompt.Name is "u"; leave it empty`}},
	{"another URI in the resource", register(func(m *mcp.Mux) { m.Resource("r:t", reads[none](&mcp.Resource{URI: "r:u"})) }),
		[]string{`mcp: resource "r:t" at`, here, `Resource.URI is "r:u"; leave it empty`}},
	{"a prompt as a tool", register(func(m *mcp.Mux) { m.Tool("t", asks[none](nil)) }), []string{`mcp: tool "t" at`, here, "describes itself as a *mcp.Prompt"}},
	{"a tool as a prompt", register(func(m *mcp.Mux) { m.Prompt("p", says[none](nil)) }), []string{`mcp: prompt "p" at`, here, "describes itself as a *mcp.Tool"}},
	{"a tool as a resource", register(func(m *mcp.Mux) { m.Resource("r:r", says[none](nil)) }), []string{`mcp: resource "r:r" at`, here, "describes itself as a *mcp.Tool"}},
	{"mounted twice", register(func(m *mcp.Mux) {
		m.Mount("a_", newMux())
		m.Mount("a_", newMux())
	}), []string{`mcp: mount "a_" at`, here, "something is mounted there at"}},
	{"mounted in itself", register(func(m *mcp.Mux) { m.Mount("a_", m) }), []string{`mcp: mount "a_" at`, here, "the mux would contain itself"}},
	{"mounted without a prefix", register(func(m *mcp.Mux) { m.Mount("", newMux()) }), []string{`mcp: mount "" at`, here, "a prefix must have 1 to 64 letters"}},
}

// handlers are mistakes in handlers, functions and middleware, such as nil ones.
var handlers = []mistake{
	{"a nil handler", register(func(m *mcp.Mux) { m.Tool("t", nil) }), []string{`mcp: tool "t" at`, here, "the handler is nil"}},
	{"a nil HandlerFunc", register(func(m *mcp.Mux) { m.Tool("t", mcp.HandlerFunc(nil)) }), []string{`mcp: tool "t" at`, here, "the handler is nil"}},
	{"a nil handler that is described", panics(func() { mcp.WithDescription(nil, &mcp.Tool{}) }), []string{"mcp: WithDescription at", here, "the handler is nil"}},
	{"a nil mount", register(func(m *mcp.Mux) { m.Mount("a_", nil) }), []string{`mcp: mount "a_" at`, here, "the handler is nil"}},
	{"a nil function of a tool", panics(func() { mcp.ToolFunc[none, string](nil, nil) }), []string{"mcp: ToolFunc at", here, "the function is nil"}},
	{"a nil function of a prompt", panics(func() { mcp.PromptFunc[none, string](nil, nil) }), []string{"mcp: PromptFunc at", here, "the function is nil"}},
	{"a nil function of a subscription", panics(func() {
		up := mcp.NewClient("c", "v1", nil).Maintain(context.Background(), mcp.InProcess(newMux()), nil)
		defer up.Close()
		c, _ := up.Conn(context.Background())
		_, _ = c.Listen(context.Background(), mcp.SubscriptionFilter{}, nil)
	}), []string{"mcp: Conn.Listen at", here, "the function is nil"}},
	{"a negative burst", panics(func() { middleware.NewTokenBucket(1, time.Second, &middleware.TokenBucketOptions{Burst: -1}) }), []string{"middleware.NewTokenBucket: the burst is negative"}},
	{"a nil function of a resource", panics(func() { mcp.ResourceFunc[none, string](nil, nil) }), []string{"mcp: ResourceFunc at", here, "the function is nil"}},
	{"a nil middleware of Use", register(func(m *mcp.Mux) { m.Use(pass, nil) }), []string{"mcp: Mux.Use at", here, "middleware 2 of 2 is nil"}},
	{"a nil middleware of With", register(func(m *mcp.Mux) { m.With(nil) }), []string{"mcp: Mux.With at", here, "middleware 1 of 1 is nil"}},
	{"a nil middleware of Chain", panics(func() { mcp.Chain(says[none](nil), nil) }), []string{"mcp: Chain at", here, "middleware 1 of 1 is nil"}},
	{"a nil middleware of a client", panics(func() { mcp.NewClient("c", "v1", &mcp.ClientOptions{AnswerMiddleware: []mcp.Middleware{nil}}) }),
		[]string{"mcp: NewClient at", here, "middleware 1 of 1 is nil"}},
	{"a nil handler in process", panics(func() { mcp.InProcess(nil) }), []string{"mcp: InProcess at", here, "the handler is nil"}},
	{"a nil handler over HTTP", panics(func() { mcphttp.NewHandler(nil, nil) }), []string{"mcphttp: NewHandler: the handler is nil"}},
	{"a nil handler over HTTP+SSE", panics(func() { mcphttp.NewSSEHandler(nil, nil) }), []string{"mcphttp: NewSSEHandler: the handler is nil"}},
	{"a nil handler of a router", panics(func() { mcphttp.NewRouter(nil, nil) }), []string{"mcphttp: NewRouter: the handler is nil"}},
	{"a nil handler of a debug page", panics(func() { debug.Handler(nil) }), []string{"debug: NewHandler: the handler is nil"}},
	{"a nil endpoint of a debug page", panics(func() { debug.Handler(newMux(), nil) }), []string{"debug: NewHandler: endpoint 1 of 1 is nil"}},
	{"a nil handler over stdio", func() error {
		return mcpstdio.Serve(context.Background(), nil, &mcpstdio.Options{In: strings.NewReader(""), Out: new(strings.Builder)})
	}, []string{"mcpstdio: the handler to serve is nil"}},
	{"a nil transport", func() error {
		_, err := mcp.NewClient("c", "v1", nil).Connect(context.Background(), nil)
		return err
	}, []string{"mcp: Connect: the transport is nil; make one with mcphttp.NewTransport"}},
}

func pass(next mcp.Handler) mcp.Handler { return next }

type note struct {
	ID string `json:"id"`
}

type untagged struct{ ID int }

// resources are mistakes in resources, templates and completers.
var resources = []mistake{
	{"a URI without a scheme", register(func(m *mcp.Mux) { m.Resource("readme", reads[none](nil)) }),
		[]string{`mcp: resource "readme" at`, here, "a resource needs a URI with a scheme, such as notes://readme"}},
	{"a template without a scheme", register(func(m *mcp.Mux) { m.Resource("/notes/{id}", reads[note](nil)) }),
		[]string{`mcp: resource "/notes/{id}" at`, here, "such as notes://notes/{id}"}},
	{"a template that does not parse", register(func(m *mcp.Mux) { m.Resource("notes://{id", reads[note](nil)) }),
		[]string{`mcp: resource template "notes://{id" at`, here}},
	{"templates that overlap", register(func(m *mcp.Mux) {
		m.Resource("notes://{id}", reads[note](nil))
		m.Resource("notes://{key}", reads[none](nil))
	}), []string{`mcp: resource template "notes://{key}"`, here, "conflicts with", "neither is more specific"}},
	{"a variable without a field", register(func(m *mcp.Mux) { m.Resource("notes://{user}/{id}", reads[note](nil)) }),
		[]string{`mcp: resource "notes://{user}/{id}" at`, here, `the variable "user", but mistakes_test.note has no such field`, "add one that is tagged `json:\"user\"`"}},
	{"a variable and a field without a tag", register(func(m *mcp.Mux) { m.Resource("notes://{id}", reads[untagged](nil)) }),
		[]string{`the variable "id", but mistakes_test.untagged has no such field`, "tag the field ID with `json:\"id\"`"}},
	{"a field without a variable", register(func(m *mcp.Mux) { m.Resource("notes://all", reads[note](nil)) }),
		[]string{`mistakes_test.note has the field "id", but the template has no such variable`}},
	{"a completer of another argument", register(func(m *mcp.Mux) {
		m.Prompt("p", asks[struct {
			Style string `json:"style"`
		}](&mcp.Prompt{Completers: map[string]mcp.Completer{"styel": mcp.CompleteFrom("x")}}))
	}), []string{`mcp: prompt "p" at`, here, `there is a completer for "styel", but no such name in Prompt.Arguments, which has style; did you mean "style"?`}},
	{"a completer of another variable", register(func(m *mcp.Mux) {
		m.Resource("notes://{id}", reads[note](&mcp.Resource{Completers: map[string]mcp.Completer{"user": mcp.CompleteFrom("x")}}))
	}), []string{`there is a completer for "user", but no such name in the template, which has id`}},
	{"a completer of a URI", register(func(m *mcp.Mux) {
		m.Resource("notes://1", reads[none](&mcp.Resource{Completers: map[string]mcp.Completer{"id": mcp.CompleteFrom("x")}}))
	}), []string{`there is a completer for "id", but no such name in the template, which has none`}},
	{"a nil completer", register(func(m *mcp.Mux) {
		m.Resource("notes://{id}", reads[note](&mcp.Resource{Completers: map[string]mcp.Completer{"id": nil}}))
	}), []string{`the completer of "id" is nil`}},
	{"a list as an argument of a prompt", panics(func() { asks[struct{ L []string }](nil) }),
		[]string{"mcp: PromptFunc at", here, `the field "L" must be a string, a number or a boolean`}},
	{"a struct out of a prompt", panics(func() {
		mcp.PromptFunc(func(context.Context, none) (note, error) { return note{}, nil }, nil)
	}), []string{"mcp: PromptFunc at", here, "a prompt cannot return mistakes_test.note"}},
	{"files below a template without {+path}", register(func(m *mcp.Mux) { m.Resource("file:///{id}", mcp.FileServerFS(fstest.MapFS{}, nil)) }),
		[]string{`mcp: resource "file:///{id}" at`, here, "{+path}"}},
	{"a nil file system", panics(func() { mcp.FileServerFS(nil, nil) }), []string{"mcp: FileServerFS at", here, "the file system is nil"}},
	{"a nil root of files", panics(func() { mcp.FileServerRoot((*os.Root)(nil), nil) }), []string{"mcp: FileServerRoot at", here, "the root is nil"}},
}
