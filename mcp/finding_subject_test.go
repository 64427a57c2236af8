// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// tenants serves a public and a secret one of everything, and hides the secret ones.
func tenants() *mcp.Mux {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(middleware.Visible(func(_ context.Context, _ middleware.Kind, name string) bool {
		return !strings.Contains(name, "secret")
	}))
	// These handlers go by the params, not by what the mux routed by, as servers
	// behind a gateway do.
	mux.Resource("notes://public", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		var p mcp.ReadResourceParams
		if err := req.Decode(&p); err != nil {
			return nil, err
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: p.URI, Text: string(req.Params())}}}, nil
	}))
	mux.Resource("notes://secret", reads("secret"))
	mux.Tool("public", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return mcp.TextResult(req.Name() + string(req.Params())), nil
	}))
	mux.Tool("secret", says("secret"))
	mux.Prompt("public", promptSays("public"))
	return mux
}

// The method decides which member names what a request is about. The other one is
// gone before a handler, or a server behind a gateway, can go by it.
func TestFindingS2CH5W1(t *testing.T) {
	gateway := mcp.NewMux("gateway", "v1", quiet())
	gateway.Mount("up_", tenants())
	for _, era := range eras {
		for _, test := range []struct {
			server          mcp.Handler
			method, members string
			want            string // a part of the answer
		}{
			{tenants(), "resources/read", `"uri":"notes://public","name":"notes://secret"`, `"uri":"notes://public"`},
			{tenants(), "resources/read", `"name":"notes://public","uri":"notes://secret"`, `resource \"notes://secret\" not found`},
			{tenants(), "resources/read", `"name":7,"uri":"notes://public"`, `"uri":"notes://public"`},
			{tenants(), "resources/read", `"name":"notes://public"`, `params.uri is missing`},
			{tenants(), "resources/read", `"uri":7`, `params.uri must be a string`},
			{tenants(), "tools/call", `"name":"public","uri":"secret"`, `public`},
			{tenants(), "tools/call", `"uri":"public"`, `params.name is missing`},
			{tenants(), "tools/call", `"name":{}`, `params.name must be a string`},
			{tenants(), "prompts/get", `"uri":"public"`, `params.name is missing`},
			{gateway, "resources/read", `"name":"mount:up_:notes://public","uri":"mount:up_:notes://secret"`, `not found`},
			{gateway, "resources/read", `"uri":"mount:up_:notes://public","name":"mount:up_:notes://secret"`, `notes://public`},
			// Servers that ignore case would read the secret one.
			{tenants(), "resources/read", `"uri":"notes://public","URI":"notes://secret"`, `params.URI: names of members are case-sensitive; expected \"uri\"`},
			{tenants(), "tools/call", `"name":"public","argument\u017f":{}`, `names of members are case-sensitive; expected \"arguments\"`},
		} {
			p := newPeer(t, test.server, era)
			p.send(era.request("1", test.method, test.members))
			got := p.receive()
			if !strings.Contains(got, test.want) || strings.Contains(got, `"text":"secret"`) || strings.Contains(got, `"name":"notes://secret"`) || strings.Contains(got, `"uri":"secret"`) {
				t.Errorf("%s: %s with %s: got %s, want %s", era.name, test.method, test.members, got, test.want)
			}
		}
	}
}

// A legacy client subscribes to a URI, whatever name stands beside it.
func TestFindingW1Subscribe(t *testing.T) {
	p := newPeer(t, tenants(), eras[1])
	p.send(eras[1].request("1", "resources/subscribe", `"name":"notes://public"`))
	if got := p.read(); got.Error == nil || got.Error.Code != mcp.CodeInvalidParams {
		t.Errorf("got %s, %v", got.Result, got.Error)
	}
	p.send(eras[1].request("2", "resources/subscribe", `"name":"notes://public","uri":"notes://secret"`))
	if got := p.read(); got.Error == nil || !strings.Contains(got.Error.Message, "notes://secret") {
		t.Errorf("got %s, %v", got.Result, got.Error)
	}
}

// What a client makes has one subject, too, and so has what middleware makes of it.
func TestFindingS2RequestsThatAreMade(t *testing.T) {
	params := map[string]string{"uri": "notes://public", "name": "notes://secret"}
	req := mcptest.NewRequest(mcp.MethodReadResource, params)
	if got := string(req.Params()); req.Name() != "notes://public" || strings.Contains(got, "secret") {
		t.Errorf("got the name %q and the params %s", req.Name(), got)
	}
	req, err := mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "notes://a"}).WithParams(params)
	if err != nil || req.Name() != "notes://public" || strings.Contains(string(req.Params()), "secret") {
		t.Errorf("got %v, %v", req, err)
	}
	// Methods that are not about one thing keep what they have.
	req = mcptest.NewRequest("example/custom", params)
	if got := string(req.Params()); !strings.Contains(got, "public") || !strings.Contains(got, "secret") {
		t.Errorf("got the params %s", got)
	}
}
