// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package bounds_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcphttp/auth/authtest"
	"github.com/go-psi/psi/middleware"
)

// callerStores is what one caller without credentials, or with those of one user, can fill.
var callerStores = []store{
	{"capabilities of sessions", 80, 0, func(t *testing.T) {
		openSessions(t, `"capabilities":{"experimental":{"a":{"b":%q}}},"clientInfo":{"name":"c","version":"v1"}`)
	}},
	{"name of the client of sessions", 80, 0, func(t *testing.T) {
		openSessions(t, `"capabilities":{},"clientInfo":{"name":%q,"version":"v1"}`)
	}},
	{"icons of the client of sessions", 80, 0, func(t *testing.T) {
		openSessions(t, `"capabilities":{},"clientInfo":{"name":"c","version":"v1","icons":[{"src":%q}]}`)
	}},
	{"subscriptions of sessions", 40, 0, subscribeSessions},
	{"events for resuming", 10, 0, callWithEvents},
	{"requests of open subscriptions", 16, 0, func(t *testing.T) {
		for range times(20, 100) {
			listen(t, listenServer(t), `"notifications":{"toolsListChanged":true},"unknown":`+quote(text(8*mib)))
		}
	}},
	{"meta of open subscriptions", 16, 0, func(t *testing.T) {
		for range times(20, 100) {
			listen(t, listenServer(t), `"notifications":{"toolsListChanged":true}`, `"a/b":`+quote(text(8*mib)))
		}
	}},
	{"URIs of open subscriptions", 16, 5 * 16, func(t *testing.T) { listenToURIs(t, listenServer(t), "x:") }},
	{"URIs of open subscriptions at a mount", 24, 5 * 24, func(t *testing.T) {
		outer := newMux()
		outer.Mount("in_", listenMux())
		listenToURIs(t, serve(t, outer, nil), "mount:in_:x:")
	}},
	{"cached results", 80, 0, fillCache},
	{"tasks", 40, 0, fillTasks},
	{"keys of a rate limit", 24, 0, func(t *testing.T) {
		bucket := middleware.NewTokenBucket(60, time.Hour, nil)
		for range 200_000 {
			if _, err := bucket.Take(t.Context(), text(kib)); err != nil {
				t.Fatal(err)
			}
		}
		keep(t, bucket)
	}},
	{"rejected tokens", 4, 0, rejectTokens},
	{"logins that never end", 1, 80, beginLogins}, // in all 64 MiB, by the store
}

// keep keeps v alive until the memory has been measured.
func keep(t *testing.T, v any) { t.Cleanup(func() { _ = fmt.Sprintf("%p", v) }) }

func quote(s string) string { return `"` + s + `"` }

// serve returns an endpoint for h.
func serve(t *testing.T, h mcp.Handler, opts *mcphttp.Options) http.Handler {
	t.Helper()
	if opts == nil {
		opts = &mcphttp.Options{}
	}
	opts.Logger = quiet
	handler := mcphttp.NewHandler(h, opts)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // do not wait for open streams
		_ = handler.Shutdown(ctx)
	})
	return handler
}

// post sends a message from the address of the one caller and returns the response.
func post(t *testing.T, h http.Handler, header http.Header, message string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, newPost(t.Context(), header, message))
	return w
}

func newPost(ctx context.Context, header http.Header, message string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp", &body{strings.NewReader(message)})
	r.ContentLength = int64(len(message))
	r.RemoteAddr = "192.0.2.1:1234"
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	maps.Copy(r.Header, header)
	return r
}

// A body forgets what has been read, as a network connection does.
type body struct{ r *strings.Reader }

func (b *body) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil {
		b.r.Reset("")
	}
	return n, err
}

func initialize(params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` + params + `}}`
}

// openSessions sends handshakes with large texts: some of the size of a whole message, and
// then as many sessions as a caller may have, with the largest that is accepted.
func openSessions(t *testing.T, params string) {
	h := serve(t, newMux(), nil)
	for range times(16, 1000) {
		post(t, h, nil, initialize(fmt.Sprintf(params, text(4*mib))))
	}
	for size := 256 * kib; size >= kib; size /= 2 {
		if post(t, h, nil, initialize(fmt.Sprintf(params, text(size)))).Code == http.StatusOK {
			for range 1000 {
				post(t, h, nil, initialize(fmt.Sprintf(params, text(size))))
			}
			return
		}
	}
	t.Fatal("no handshake was accepted")
}

// openSession returns the header of requests in a new session.
func openSession(t *testing.T, h http.Handler) http.Header {
	t.Helper()
	w := post(t, h, nil, initialize(`"capabilities":{},"clientInfo":{"name":"c","version":"v1"}`))
	header := http.Header{"Mcp-Session-Id": {w.Header().Get("Mcp-Session-Id")}, "Mcp-Protocol-Version": {"2025-11-25"}}
	post(t, h, header, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return header
}

func subscribeSessions(t *testing.T) {
	h := serve(t, listenMux(), nil)
	for range times(30, 1000) {
		header := openSession(t, h)
		for range times(250, 1000) {
			uri := "x:" + text(8*kib-64)
			post(t, h, header, `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"`+uri+`"}}`)
		}
	}
}

// callWithEvents makes calls whose client leaves after the first event, and could resume the
// stream.
func callWithEvents(t *testing.T) {
	mux := newMux()
	mux.Tool("talk", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		for i := range 64 {
			mcp.Progress(ctx, float64(i+1), 0, text(100*kib))
		}
		return "", nil
	}, nil))
	h := serve(t, mux, nil)
	for range times(4, 100) {
		header := openSession(t, h)
		for i := range 4 {
			ctx, cancel := context.WithCancel(t.Context())
			call := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"talk","_meta":{"progressToken":%d}}}`, i+3, i)
			h.ServeHTTP(&sink{until: "progress", written: make(chan struct{}), leave: cancel}, newPost(ctx, header, call))
			cancel()
		}
	}
}

func listenMux() *mcp.Mux {
	mux := newMux()
	mux.Resource("x:{+a}", mcp.ResourceFunc(func(context.Context, struct {
		A string `json:"a"`
	}) (string, error) {
		return "", nil
	}, nil))
	return mux
}

func listenServer(t *testing.T) http.Handler { return serve(t, listenMux(), nil) }

// listen opens a subscription and returns when it has been acknowledged or refused.
func listen(t *testing.T, h http.Handler, params string, meta ...string) {
	t.Helper()
	meta = append(meta, `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":{}`)
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{` + params + `,"_meta":{` + strings.Join(meta, ",") + `}}}`
	ctx, cancel := context.WithCancel(t.Context())
	w := &sink{until: "acknowledged", written: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.ServeHTTP(w, newPost(ctx, http.Header{"Mcp-Protocol-Version": {mcp.LatestVersion}, "Mcp-Method": {"subscriptions/listen"}}, body))
	}()
	select {
	case <-w.written:
	case <-done:
	}
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// A sink is a response writer that drops what is written. It closes written once that
// contains a text. If the client then leaves, further writes fail.
type sink struct {
	until   string
	leave   func()
	written chan struct{}
	header  http.Header
	left    bool
	found   bool
}

func (s *sink) Header() http.Header {
	if s.header == nil {
		s.header = http.Header{}
	}
	return s.header
}

func (s *sink) WriteHeader(int) {}
func (s *sink) Flush()          {}

func (s *sink) Write(p []byte) (int, error) {
	if s.left {
		return 0, net.ErrClosed
	}
	if !s.found && bytes.Contains(p, []byte(s.until)) {
		s.found = true
		close(s.written)
		if s.leave != nil {
			s.left = true
			s.leave()
		}
	}
	return len(p), nil
}

// listenToURIs opens subscriptions to as many and as long URIs as are accepted.
func listenToURIs(t *testing.T, h http.Handler, prefix string) {
	for range times(20, 100) {
		for _, size := range []int{16 * kib, 8 * kib, 200} {
			uris := make([]string, 1000)
			for i := range uris {
				uris[i] = prefix + text(size-64)
			}
			raw, err := json.Marshal(uris)
			if err != nil {
				t.Fatal(err)
			}
			listen(t, h, `"notifications":{"resourceSubscriptions":`+string(raw)+`}`)
		}
	}
}

// fillCache reads large resources through a gateway with a cache.
func fillCache(t *testing.T) {
	remote := newMux()
	remote.Resource("big:{n}", mcp.ResourceFunc(func(context.Context, struct {
		N string `json:"n"`
	}) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{
			Contents:  []*mcp.ResourceContents{{URI: "big:", Text: text(3 * mib)}},
			Cacheable: mcp.CacheFor(time.Hour, mcp.CachePublic),
		}, nil
	}, nil))
	conn := mcptest.Connect(t, remote)
	conn.Use(middleware.NewCache(nil).Middleware)
	for i := range times(60, 1024) {
		if _, err := conn.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: fmt.Sprintf("big:%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
}

// fillTasks starts as many tasks with large arguments and results as one caller may have.
func fillTasks(t *testing.T) {
	manager := tasks.New("m", &tasks.Options{Logger: quiet})
	t.Cleanup(func() { _ = manager.Shutdown(context.Background()) })
	mux := newMux()
	manager.Register(mux)
	mux.With(manager.Background(nil)).Tool("work", mcp.ToolFunc(func(context.Context, struct {
		Text string `json:"text"`
	}) (string, error) {
		return text(mib), nil
	}, nil))
	caller := &mcptest.Client{
		Principal: &mcp.Principal{Issuer: "test", Subject: "mallory"},
		Options:   mcp.ClientOptions{Extensions: []*mcp.ClientExtension{tasks.Client()}, Logger: quiet},
	}
	conn := caller.Connect(t, mux)
	for range times(100, 1000) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, _ = conn.CallTool(ctx, &mcp.CallToolParams{Name: "work", Arguments: json.RawMessage(`{"text":` + quote(text(mib)) + `}`)})
		cancel()
	}
}

// rejectTokens sends tokens that nobody issued.
func rejectTokens(t *testing.T) {
	const resource = "https://mcp.example.com/mcp"
	issuer := authtest.NewIssuer(t, resource)
	tokens, err := auth.NewJWT(issuer.URL, resource, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := auth.Require(tokens, &auth.Options{Metadata: &auth.Metadata{Resource: resource}})(serve(t, newMux(), nil))
	for range times(2000, 20_000) {
		w := post(t, h, http.Header{"Authorization": {"Bearer " + text(16*kib)}}, `{}`)
		if w.Code != http.StatusUnauthorized {
			t.Fatalf("status %d, want 401", w.Code)
		}
	}
	keep(t, h)
}
