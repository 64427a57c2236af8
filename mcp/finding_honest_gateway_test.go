// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/pause"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// A site is a server of a random tree of muxes and strangers: whatever it lists says
// which site it is of and under which name it knows it, and whatever it answers does too.
type site struct {
	id    int
	names []string
}

func (s *site) says(name string) string { return fmt.Sprintf("%d:%s", s.id, name) }

func (s *site) asMux() *mcp.Mux {
	mux := mcp.NewMux(fmt.Sprint("site", s.id), "v1", quiet())
	for _, name := range s.names {
		text := s.says(name)
		mux.Tool(name, mcp.ToolFunc(func(context.Context, none) (string, error) { return text, nil }, &mcp.Tool{Description: text}))
		mux.Prompt(name, mcp.PromptFunc(func(context.Context, none) (string, error) { return text, nil }, &mcp.Prompt{Description: text}))
		mux.Resource("r:"+name, mcp.ResourceFunc(func(context.Context, none) (string, error) { return text, nil }, &mcp.Resource{Description: text}))
	}
	return mux
}

// asStranger lists what it likes: twice, nameless, and under names of others.
func (s *site) asStranger() mcp.Handler {
	answer := func(name string) (string, bool) { return s.says(name), slices.Contains(s.names, name) }
	return mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		text, known := answer(strings.TrimPrefix(req.Name(), "r:"))
		switch req.Method {
		case mcp.MethodListTools:
			res := &mcp.ListToolsResult{}
			for _, name := range append(slices.Clone(s.names), s.names[0], "") {
				res.Tools = append(res.Tools, &mcp.Tool{Name: name, Description: s.says(name), InputSchema: []byte(`{}`)})
			}
			return res, nil
		case mcp.MethodListPrompts:
			res := &mcp.ListPromptsResult{}
			for _, name := range append(slices.Clone(s.names), s.names[0], "") {
				res.Prompts = append(res.Prompts, &mcp.Prompt{Name: name, Description: s.says(name)})
			}
			return res, nil
		case mcp.MethodListResources:
			res := &mcp.ListResourcesResult{}
			for _, name := range append(slices.Clone(s.names), s.names[0]) {
				res.Resources = append(res.Resources, &mcp.Resource{URI: "r:" + name, Name: name, Description: s.says(name)})
			}
			return res, nil
		case mcp.MethodCallTool:
			if known {
				return mcp.TextResult(text), nil
			}
			return nil, mcp.NewUnknownNameError("tool", req.Name())
		case mcp.MethodGetPrompt:
			if known {
				return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{mcp.UserMessage(mcp.Text(text))}}, nil
			}
			return nil, mcp.NewUnknownNameError("prompt", req.Name())
		case mcp.MethodReadResource:
			if known {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Name(), Text: text}}}, nil
			}
			return nil, mcp.NewResourceNotFoundError(req.Name())
		}
		return nil, mcp.NewMethodNotFoundError(req.Method)
	})
}

// randomTree mounts sites under prefixes that overlap often. What is refused with a panic
// is left out.
func randomTree(r *rand.Rand, depth int, id *int) mcp.Handler {
	names := []string{"x", "y", "a_x", "b_x", "b_a_x", "ab_x", "a_b_x", "_x", "a", "mount:a_:r:x"}
	prefixes := []string{"a_", "b_", "a_b_", "ab_", "a", "b", "_", "b_a_"}
	pick := func(from []string) (picked []string) {
		for _, i := range r.Perm(len(from))[:1+r.IntN(4)] {
			picked = append(picked, from[i])
		}
		return picked
	}
	*id++
	s := &site{*id, pick(names)}
	if depth == 0 || r.IntN(4) == 0 {
		return s.asStranger()
	}
	mux := s.asMux()
	for _, prefix := range pick(prefixes) {
		child := randomTree(r, depth-1, id)
		func() {
			defer func() { _ = recover() }()
			mux.Mount(prefix, child)
		}()
	}
	func() { // a name that comes later
		defer func() { _ = recover() }()
		late := &site{*id * 1000, nil}
		mux.Tool("a_x", mcp.ToolFunc(func(context.Context, none) (string, error) { return late.says("a_x"), nil }, &mcp.Tool{Description: late.says("a_x")}))
	}()
	return mux
}

// Whatever is mounted where: what is listed is listed once, can be called, and what
// answers is what described itself there. Nothing that the mounts do not list is reached
// by a listed name.
func TestFindingS15CM13WhatIsListedAnswers(t *testing.T) {
	for seed := range uint64(100) {
		id := 0
		top := randomTree(rand.New(rand.NewPCG(seed, 1)), 3, &id)
		if _, isMux := top.(*mcp.Mux); !isMux {
			continue
		}
		c := connect(t, top, &mcp.ClientOptions{Version: bothEras[seed%2], Logger: quiet().Logger})
		seen := map[string]bool{}
		check := func(kind, name, described, got string, err error) {
			t.Helper()
			if seen[kind+name] {
				t.Errorf("seed %d: the %s %q is listed twice", seed, kind, name)
			}
			seen[kind+name] = true
			inner := described[strings.Index(described, ":")+1:]
			if err != nil || got != described || !strings.HasSuffix(name, inner) {
				t.Errorf("seed %d: the %s %q, described by %q, answers %q, %v", seed, kind, name, described, got, err)
			}
		}
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			got, err := mcp.Call[string](t.Context(), c, tool.Name, nil)
			check("tool", tool.Name, tool.Description, got, err)
		}
		for prompt, err := range c.Prompts(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			res, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompt.Name})
			if err == nil {
				got = res.Messages[0].Content.(*mcp.TextContent).Text
			}
			check("prompt", prompt.Name, prompt.Description, got, err)
		}
		for resource, err := range c.Resources(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: resource.URI})
			if err == nil {
				got = res.Contents[0].Text
			}
			check("resource", resource.URI, resource.Description, got, err)
		}
		c.Close()
	}
}

// A gateway agrees to tell of those resources only that the server behind it tells of.
func TestFindingI10SubscriptionsThatTheServerRefuses(t *testing.T) {
	server := hello()
	server.Resource("test://known", reads(""))
	for _, back := range bothEras {
		inFront(t, gateway(t, server, back), func(t *testing.T, c *mcp.Conn) {
			s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{"mount:b_:test://known", "mount:b_:test://none", "mount:c_:test://known"}}, func(mcp.Change) {})
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Accepted.ResourceSubscriptions; !slices.Equal(got, []string{"mount:b_:test://known"}) {
				t.Errorf("in front of %s: accepted %q", back, got)
			}
			s.Close()
		})
	}
}

// A server behind a gateway that ends subscriptions again and again, and tells of nothing,
// makes the gateway say no more than it agreed to.
func TestGatewayTellsOfNothingThatTheServerRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var listened atomic.Int32
		gw := mcp.NewMux("gateway", "v1", quiet())
		gw.Mount("b_", mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != mcp.MethodListen {
				return &mcp.DiscoverResult{Capabilities: &mcp.ServerCapabilities{Resources: &mcp.ResourcesCapability{Subscribe: true}}}, nil
			}
			listened.Add(1)
			return &mcp.ListenResult{}, req.Notify(ctx, mcp.NotificationAcknowledged, &mcp.AcknowledgedParams{})
		}))
		c := connect(t, gw, nil)
		filter := mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"mount:b_:test://doc"}}
		s, err := c.Listen(t.Context(), filter, func(ch mcp.Change) {
			if ch.URI != "" {
				t.Errorf("heard of %s", ch.URI)
			}
		})
		if err != nil || len(s.Accepted.ResourceSubscriptions) != 0 {
			t.Fatalf("accepted %+v, %v", s, err)
		}
		if err := pause.For(t.Context(), 10*time.Second); err != nil || listened.Load() < 3 {
			t.Errorf("it listened %d times, %v", listened.Load(), err)
		}
		s.Close()
	})
}

// The reference of a completion that is passed on names one thing, however the server
// behind the gateway reads it.
func TestFindingS2CompletionsThroughAGateway(t *testing.T) {
	var got string
	gw := mcp.NewMux("gateway", "v1", quiet())
	gw.Mount("b_", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		got = string(req.Params())
		return &mcp.CompleteResult{Completion: mcp.Completion{Values: []string{}}}, nil
	}))
	for params, want := range map[string]string{
		`{"ref":{"type":"ref/prompt","name":"b_p","uri":"secret://","Name":"q","NAME":"q","Type":"ref/resource"},"Ref":{"type":"ref/prompt","name":"q"},"argument":{"name":"a","Name":"q","value":"","VALUE":"q"},"context":{"Arguments":{"q":"q"}}}`: `{"ref":{"name":"p","type":"ref/prompt"},"argument":{"name":"a","value":""},"context":{}}`,
		`{"ref":{"type":"ref/resource","uri":"mount:b_:r:{x}","name":"q","Uri":"q"},"argument":{"name":"a","value":""}}`:                                                                                                                              `{"ref":{"type":"ref/resource","uri":"r:{x}"},"argument":{"name":"a","value":""}}`,
	} {
		if _, _, err := mcptest.Do(t, gw, mcptest.NewRequest(mcp.MethodComplete, json.RawMessage(params))); err != nil {
			t.Error(err)
		}
		var a, b any
		if json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
			t.Fatalf("got %s", got)
		}
		if m, ok := a.(map[string]any); ok {
			delete(m, "_meta")
		}
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("the server got %s, want %s", got, want)
		}
	}
}

// A gateway does not promise for its callers what ends at itself: tasks, unless it has a mount
// that seals their IDs.
func TestFindingI10CapabilitiesThatDoNotTravel(t *testing.T) {
	seen := make(chan *mcp.ClientCapabilities, 8)
	server := failsTools(mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		seen <- req.ClientCapabilities()
		return mcp.TextResult("done"), nil
	}))
	mux := gateway(t, server, mcp.LatestVersion)
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			declared := req.ClientCapabilities() // which copies of the request share from now on
			res, err := next.ServeMCP(ctx, req)
			if req.Method == mcp.MethodCallTool && !declared.HasExtension("io.modelcontextprotocol/tasks") {
				t.Error("what was left out for the server is gone from the request of the client")
			}
			return res, err
		})
	})
	c := connect(t, mux, &mcp.ClientOptions{Version: mcp.LatestVersion, Elicit: answering, Capabilities: &mcp.ClientCapabilities{
		Extensions: mcp.Extensions{"io.modelcontextprotocol/tasks": []byte("{}"), "io.modelcontextprotocol/ui": []byte("{}")},
	}})
	if _, err := c.CallTool(t.Context(), tool("b_hello", "")); err != nil {
		t.Fatal(err)
	}
	caps := <-seen
	if caps.Elicitation == nil || !caps.HasExtension("io.modelcontextprotocol/tasks") || !caps.HasExtension("io.modelcontextprotocol/ui") {
		t.Errorf("the server was told %+v", caps)
	}
	proxy := connect(t, server, &mcp.ClientOptions{Version: mcp.LatestVersion, Forward: true})
	_, _, err := mcptest.Do(t, proxy, mcptest.NewRequest(mcp.MethodCallTool, map[string]any{
		"name": "hello", "_meta": map[string]any{mcp.MetaClientCapabilities: map[string]any{
			"elicitation": map[string]any{}, "extensions": map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}},
		}},
	}))
	if caps := <-seen; err != nil || caps.Elicitation == nil || caps.HasExtension("io.modelcontextprotocol/tasks") {
		t.Errorf("without a mount, the server was told %+v, %v", caps, err)
	}
}
