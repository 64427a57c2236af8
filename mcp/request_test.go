// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
	"github.com/go-psi/psi/middleware"
)

// tenants returns a server with public and hidden secret items.
func tenants() *mcp.Mux {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(middleware.Visible(func(_ context.Context, _ mcp.Kind, name string) bool {
		return !strings.Contains(name, "secret")
	}))
	// Like servers behind a gateway, these handlers use the params, not the name that the
	// mux has routed by.
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

// The method determines which member names the subject of a request. The other one is
// removed before a handler, or a server behind a gateway, can use it.
func TestFindingS2CH5W1MethodDecidesTheSubject(t *testing.T) {
	gateway := mcp.NewMux("gateway", "v1", quiet())
	gateway.Mount("up_", tenants())
	for _, era := range eras {
		for _, test := range []struct {
			server          mcp.Handler
			method, members string
			want            string // part of the response
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
			// Servers that ignore case would read the secret resource.
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

// A legacy client subscribes to the URI, even if the params also contain a name.
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

// Requests created by a client, or modified by middleware, have one subject, too.
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
	// Params of methods without a subject are unchanged.
	req = mcptest.NewRequest("example/custom", params)
	if got := string(req.Params()); !strings.Contains(got, "public") || !strings.Contains(got, "secret") {
		t.Errorf("got the params %s", got)
	}
}

// wireEra describes how a peer with hand-written messages speaks.
type wireEra struct {
	name string
	open []string // sent before requests
	meta string
}

var eras = []wireEra{
	{"modern", nil, `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`},
	{"legacy", []string{
		`{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"p","version":"v1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	}, `"_meta":{}`},
}

// request returns a request with the given members in its params.
func (e wireEra) request(id, method, members string) string {
	if members != "" {
		members += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s%s}}`, id, method, members, e.meta)
}

// scripted is a stream whose peer can stop sending and still receive.
type scripted struct {
	in, out chan []byte
	closed  chan struct{}
	once    sync.Once
}

func newScripted() *scripted {
	return &scripted{in: make(chan []byte, 4096), out: make(chan []byte, 4096), closed: make(chan struct{})}
}

func (s *scripted) Read(ctx context.Context) ([]byte, error) {
	select {
	case m, ok := <-s.in:
		if !ok {
			return nil, io.EOF
		}
		return m, nil
	case <-s.closed:
		return nil, io.ErrClosedPipe
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *scripted) Write(_ context.Context, message []byte) error {
	s.out <- slices.Clone(message)
	return nil
}

func (s *scripted) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// peer is the client end of a served stream, for tests of single messages.
type peer struct {
	t      *testing.T
	stream *scripted
	served chan error
}

// newPeer serves h to a peer and performs the handshake, if any.
func newPeer(t *testing.T, h mcp.Handler, era wireEra) *peer {
	t.Helper()
	return servePeer(t, h, era, nil)
}

func servePeer(t *testing.T, h mcp.Handler, era wireEra, opts *mcpstdio.StreamOptions) *peer {
	t.Helper()
	p := &peer{t, newScripted(), make(chan error, 1)}
	go func() { p.served <- mcpstdio.ServeStream(t.Context(), h, p.stream, opts) }()
	t.Cleanup(func() { p.stream.Close() })
	for i, m := range era.open {
		p.send(m)
		if i == 0 {
			p.read()
		}
	}
	return p
}

func (p *peer) send(message string) { p.stream.in <- []byte(message) }

// receive returns the next message.
func (p *peer) receive() string {
	p.t.Helper()
	select {
	case m := <-p.stream.out:
		return string(m)
	case <-p.t.Context().Done():
		p.t.Fatal("no message came")
		return ""
	}
}

// read returns the next message, which must be a response.
func (p *peer) read() *transport.Message {
	p.t.Helper()
	data := p.receive()
	m, err := transport.ParseMessage([]byte(data))
	if err != nil || !m.IsResponse() {
		p.t.Fatalf("got %s, %v; want a response", data, err)
	}
	return &m
}

// finish closes the peer's side, waits for the server, and returns the remaining messages.
func (p *peer) finish() (said []string) {
	p.t.Helper()
	close(p.stream.in)
	if err := <-p.served; err != nil {
		p.t.Errorf("serving ended with %v", err)
	}
	for {
		select {
		case m := <-p.stream.out:
			said = append(said, string(m))
		default:
			return said
		}
	}
}

// Kind says what Name is the name of.
func TestRequestKind(t *testing.T) {
	for method, want := range map[string]mcp.Kind{
		mcp.MethodCallTool: mcp.KindTool, mcp.MethodGetPrompt: mcp.KindPrompt,
		mcp.MethodReadResource: mcp.KindResource, mcp.MethodSubscribe: mcp.KindResource,
		mcp.MethodListTools: "", mcp.MethodListResources: "", mcp.MethodComplete: "", "vendor/x": "",
	} {
		if got := mcptest.NewRequest(method, nil).Kind(); got != want {
			t.Errorf("%s is about the kind %q, want %q", method, got, want)
		}
	}
}
