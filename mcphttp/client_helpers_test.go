// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// link is a connection of a transport and the messages received on it.
type link struct {
	transport.Conn
	t   *testing.T
	got chan *transport.Message
}

// link connects to the server over Streamable HTTP.
func (s *site) link(opts *mcphttp.TransportOptions) *link {
	s.t.Helper()
	l, err := s.connect(mcphttp.NewTransport("http://localhost/mcp", s.options(opts)))
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

func (s *site) options(opts *mcphttp.TransportOptions) *mcphttp.TransportOptions {
	if opts == nil {
		opts = &mcphttp.TransportOptions{}
	}
	opts.Client, opts.Logger = cmp.Or(opts.Client, s.client), quiet
	return opts
}

func (s *site) connect(to transport.Transport) (*link, error) {
	l := &link{t: s.t, got: make(chan *transport.Message, 100)}
	wire, err := to.Connect(s.t.Context(), func(m *transport.Message) { l.got <- m })
	if err != nil {
		return nil, err
	}
	l.Conn = wire
	s.t.Cleanup(func() { _ = wire.Close() })
	return l, nil
}

// core is the internal API of package mcp.
var core = mcp.Internal(seam.Key{})

// call makes a call that must not fail.
func (l *link) call(m *transport.Outgoing) *transport.Message {
	l.t.Helper()
	r, err := l.Call(l.t.Context(), m)
	if err != nil {
		l.t.Fatalf("%s: %v", m.Method, err)
	}
	if r.ID != m.ID {
		l.t.Errorf("%s with the id %s was answered with the id %s", m.Method, m.ID, r.ID)
	}
	return r
}

func (l *link) send(m *transport.Outgoing) {
	l.t.Helper()
	if err := l.Send(l.t.Context(), m); err != nil {
		l.t.Fatalf("%s: %v", m.Method, err)
	}
}

// next returns the next received message.
func (l *link) next() *transport.Message {
	l.t.Helper()
	select {
	case r := <-l.got:
		return r
	case <-l.t.Context().Done():
		l.t.Fatal("nothing was received")
		return nil
	}
}

// handshake performs the handshake of a legacy version.
func (l *link) handshake(version string) {
	l.t.Helper()
	l.call(opening(0, version))
	l.send(&transport.Outgoing{Method: "notifications/initialized", Version: version, Body: []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)})
}

func opening(id int64, version string) *transport.Outgoing {
	return &transport.Outgoing{ID: mcp.IntID(id), Method: "initialize", Body: fmt.Appendf(nil,
		`{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{"elicitation":{}},"clientInfo":{"name":"test","version":"1"}}}`, id, version)}
}

// toolCall returns a tool call in the form of a version.
func toolCall(id int64, version, tool string) *transport.Outgoing {
	meta := `"_meta":{"progressToken":"p"}`
	if version == mcp.LatestVersion {
		meta = modernMeta
	}
	return &transport.Outgoing{
		ID: mcp.IntID(id), Method: "tools/call", Name: tool, Version: version,
		Body: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,%s}}`, id, tool, meta),
	}
}

// both contains one version of each era.
var both = []string{mcp.LatestVersion, "2025-11-25"}

// visits records the requests that a handler receives.
type visits struct {
	http.Handler
	mu  sync.Mutex
	all []*visit
}

type visit struct {
	method string
	header http.Header
	body   string
}

func (v *visits) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	v.mu.Lock()
	v.all = append(v.all, &visit{r.Method, r.Header.Clone(), string(body)})
	v.mu.Unlock()
	v.Handler.ServeHTTP(w, r)
}

// of returns the requests with an HTTP method whose body contains a text.
func (v *visits) of(method, text string) []*visit {
	v.mu.Lock()
	defer v.mu.Unlock()
	var found []*visit
	for _, one := range v.all {
		if one.method == method && strings.Contains(one.body, text) {
			found = append(found, one)
		}
	}
	return found
}

// script is a server that implements the handshake; functions handle everything else.
type script struct {
	session string // the session ID returned by initialize
	post    http.HandlerFunc
	get     http.HandlerFunc // nil: 405
	del     http.HandlerFunc // nil: 405
}

func (s script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	serve := map[string]http.HandlerFunc{http.MethodPost: s.post, http.MethodGet: s.get, http.MethodDelete: s.del}[r.Method]
	switch {
	case strings.Contains(string(body), `"method":"initialize"`):
		if s.session != "" {
			w.Header().Set("Mcp-Session-Id", s.session)
		}
		say(w, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`)
	case strings.Contains(string(body), `"method":"notifications/`):
		w.WriteHeader(http.StatusAccepted)
	case serve == nil:
		w.WriteHeader(http.StatusMethodNotAllowed)
	default:
		serve(w, r)
	}
}

func say(w http.ResponseWriter, message string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, message)
}

// stream writes a part of an event stream and flushes it.
func stream(w http.ResponseWriter, events string) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	_, _ = io.WriteString(w, events)
	_ = http.NewResponseController(w).Flush()
}
