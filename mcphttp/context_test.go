// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
	"github.com/go-psi/psi/middleware"
)

// In both eras, every call of a handler has an HTTP request, including the subscription made
// by the stream of a session. So a handler can choose a mux by the HTTP request.
func TestRequestFromIsNeverNil(t *testing.T) {
	tenants := map[string]*mcp.Mux{}
	for _, name := range []string{"acme", "globex"} {
		tenants[name] = mcp.NewMux(name, "v1.0.0", &mcp.MuxOptions{Logger: quiet})
		tenants[name].Tool("a", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return name, nil }, nil))
	}
	choose := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		r := mcphttp.RequestFromContext(ctx)
		if r == nil {
			t.Errorf("%s came without an HTTP request", req.Method)
			return nil, mcp.NewMethodNotFoundError(req.Method)
		}
		return tenants[r.PathValue("tenant")].ServeMCP(ctx, req)
	})
	endpoint := mcphttp.NewHandler(choose, &mcphttp.Options{Logger: quiet})
	routes := http.NewServeMux()
	routes.Handle("/{tenant}/mcp", endpoint)
	server := httptest.NewServer(routes)
	defer server.Close()
	defer func() { _ = endpoint.Shutdown(context.Background()) }()

	for _, version := range []string{mcp.ModernVersions()[0], mcp.LegacyVersions()[0]} {
		c := mcptest.Dial(t, mcphttp.NewTransport(server.URL+"/globex/mcp", nil), &mcp.ClientOptions{Version: version})
		changes := make(chan mcp.Change, 10)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if _, err := c.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, func(change mcp.Change) { changes <- change }); err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		tenants["globex"].RemoveTool("b")
		tenants["globex"].Tool("b", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "b", nil }, nil))
		select {
		case <-changes:
		case <-ctx.Done():
			t.Errorf("%s: no word of the change", version)
		}
		cancel()
		c.Close()
	}
}

// The same applies to the transport of 2024-11-05.
func TestRequestFromIsNeverNilOverSSE(t *testing.T) {
	methods := make(chan string, 16)
	mux := mcp.NewMux("test", "v1.0.0", &mcp.MuxOptions{Logger: quiet})
	mux.Tool("a", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "a", nil }, nil))
	h := mcphttp.NewSSEHandler(mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if mcphttp.RequestFromContext(ctx) == nil {
			t.Errorf("%s came without an HTTP request", req.Method)
		}
		methods <- req.Method
		return mux.ServeMCP(ctx, req)
	}), &mcphttp.Options{Logger: quiet})
	server := httptest.NewServer(h)
	defer server.Close()
	defer func() { _ = h.Shutdown(context.Background()) }()

	res, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	var endpoint *url.URL
	for endpoint == nil && lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if endpoint, err = res.Request.URL.Parse(data); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"test","version":"v1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	} {
		posted, err := http.Post(endpoint.String(), "application/json", strings.NewReader(message))
		if err != nil {
			t.Fatal(err)
		}
		_ = posted.Body.Close()
	}
	for method := range methods {
		if method == mcp.MethodListen {
			return
		}
	}
}

// A call to a server that no longer responds ends with its context, whatever the method,
// transport and era, and so does the connection.
func TestFindingCM4W9CallsObeyTheirContext(t *testing.T) {
	transports := map[string]func(t *testing.T, h mcp.Handler) transport.Transport{
		"in process": func(_ *testing.T, h mcp.Handler) transport.Transport { return mcp.InProcess(h) },
		"stream": func(t *testing.T, h mcp.Handler) transport.Transport {
			return transport.FromStream(func(context.Context) (transport.Stream, error) {
				near, far := transport.Pipe()
				go func() {
					_ = mcpstdio.ServeStream(t.Context(), h, far, &mcpstdio.StreamOptions{DrainTimeout: -1, Logger: quiet})
				}()
				return near, nil
			})
		},
		"HTTP": func(t *testing.T, h mcp.Handler) transport.Transport {
			return mcphttp.NewTransport("http://localhost/mcp", serve(t, newHandler(t, h, nil)).options(nil))
		},
		"HTTP+SSE": func(t *testing.T, h mcp.Handler) transport.Transport {
			handler := newSSEHandler(t, h)
			return mcphttp.NewSSETransport("http://localhost/sse", serve(t, handler).options(nil))
		},
	}
	for name, transport := range transports {
		for _, version := range both {
			if name == "HTTP+SSE" && version == mcp.LatestVersion || name == "in process" && version != mcp.LatestVersion {
				continue
			}
			t.Run(name+" "+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var silent atomic.Bool
					mux := tools()
					mux.Resource("r:a", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil))
					mux.Use(func(next mcp.Handler) mcp.Handler {
						return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
							if silent.Load() {
								<-time.After(24 * time.Hour) // ignores even its context
							}
							return next.ServeMCP(ctx, req)
						})
					})
					conn, err := mcp.NewClient("c", "v1", &mcp.ClientOptions{Version: version, Logger: quiet}).Connect(t.Context(), transport(t, mux))
					if err != nil {
						t.Fatal(err)
					}
					silent.Store(true)
					listen := &mcp.ListenParams{Notifications: mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"r:a"}}}
					for method, params := range map[string]any{
						mcp.MethodDiscover: nil, mcp.MethodListTools: nil, mcp.MethodListen: listen, mcp.MethodCallTool: &mcp.CallToolParams{Name: "hello"},
					} {
						req, err := mcp.NewRequest(method, params)
						if err != nil {
							t.Fatal(err)
						}
						req.ID = mcp.IntID(1)
						why := errors.New("enough")
						ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, why)
						start := time.Now()
						_, err = core.Serve(ctx, conn, req, nil, quiet)
						cancel()
						known := method == mcp.MethodDiscover || method == mcp.MethodListen // not sent to legacy servers
						if took := time.Since(start); took > time.Minute || !errors.Is(err, why) && (version == mcp.LatestVersion || !known) {
							t.Errorf("%s: %v after %v", method, err, took)
						}
					}
					start := time.Now()
					_ = conn.Close()
					if took := time.Since(start); took > 2*time.Second {
						t.Errorf("Close took %v", took)
					}
					<-time.After(48 * time.Hour)
				})
			})
		}
	}
}

// scopes returns a server for one user, behind authentication that trusts X-Scope.
func scopes(t *testing.T) (*site, *mcp.Mux) {
	t.Helper()
	mux := tools()
	mux.Tool("whoami", mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		header := "no header"
		if values := req.Header["X-Scope"]; len(values) > 0 {
			header = values[0]
		}
		return mcp.TextResult(fmt.Sprintf("%v by %s", mcp.PrincipalFromContext(ctx).Scopes, header)), nil
	}))
	mux.Prompt("letter", uncalled)
	admin := mux.With(middleware.RequireScopes("admin"))
	admin.Tool("wipe", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "wiped", nil }, nil))
	admin.Resource("audit://{id}", mcp.ResourceFunc(func(context.Context, struct {
		ID string `json:"id"`
	}) (string, error) {
		return "audit", nil
	}, nil))
	router := mcphttp.NewRouter(mux, &mcphttp.RouterOptions{Options: &mcphttp.Options{Logger: quiet}})
	t.Cleanup(func() { shutDown(router) })
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &mcp.Principal{Issuer: "test", Subject: "ann", Scopes: []string{r.Header.Get("X-Scope")}}
		router.ServeHTTP(w, mcphttp.WithPrincipal(r, p))
	})), mux
}

// enterAs opens a session with a scope.
func (s *site) enterAs(version, scope string) header {
	s.t.Helper()
	h := header{"X-Scope": scope}
	res := s.at(http.MethodPost, "/mcp", initialize(version), h)
	if res.status != http.StatusOK {
		s.t.Fatalf("initialize: %d %s", res.status, res.body)
	}
	h = with(h, header{"Mcp-Session-Id": res.header.Get("Mcp-Session-Id"), "MCP-Protocol-Version": version})
	s.at(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, h)
	return h
}

// A batch is served with the scopes of its own token, not those of the token that opened the
// session.
func TestFindingS3Batch(t *testing.T) {
	s, _ := scopes(t)
	admin := s.enterAs("2025-03-26", "admin")
	reader := with(admin, header{"X-Scope": "read"})
	batch := "[" + call(1, "wipe") + "," + call(2, "whoami") + "]"
	if res := s.at(http.MethodPost, "/mcp", batch, reader); strings.Contains(res.body, "wiped") || !strings.Contains(res.body, "[read] by read") {
		t.Errorf("a weaker token: %d %s", res.status, res.body)
	}
	if res := s.at(http.MethodPost, "/mcp", batch, admin); !strings.Contains(res.body, "wiped") || !strings.Contains(res.body, "[admin] by admin") {
		t.Errorf("the token of the session: %d %s", res.status, res.body)
	}
}

// The same applies to a batch over HTTP+SSE.
func TestFindingS3BatchSSE(t *testing.T) {
	s, _ := scopes(t)
	r := s.request(t.Context(), http.MethodGet, "", header{"X-Scope": "admin"})
	r.URL.Path = "/sse"
	stream := read(t, s.do(r))
	first, _ := stream.next()
	endpoint, err := r.URL.Parse(first.Data)
	if err != nil {
		t.Fatal(err)
	}
	send := func(scope, body string) {
		r := s.request(t.Context(), http.MethodPost, body, header{"X-Scope": scope})
		r.URL = endpoint
		if got := whole(t, s.do(r)); got.status != http.StatusAccepted {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	send("admin", initialize("2025-03-26"))
	stream.message()
	send("admin", `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send("read", "["+call(1, "wipe")+","+call(2, "whoami")+"]")
	if got := stream.message(); strings.Contains(got, "wiped") || !strings.Contains(got, "[read] by read") {
		t.Errorf("got %s", got)
	}
}

// Subscribing requires the scopes of the subscribing request, and receiving updates those of
// the listening GET.
func TestFindingS3Subscriptions(t *testing.T) {
	s, mux := scopes(t)
	subscribe := `{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"audit://1"}}`
	for _, scope := range []string{"admin", "read"} {
		admin := s.enterAs("2025-11-25", "admin")
		weak := with(admin, header{"X-Scope": "read"})
		if res := s.at(http.MethodPost, "/mcp", subscribe, weak); !strings.Contains(res.body, "audit://1") || !strings.Contains(res.body, "error") {
			t.Errorf("subscribing with a weaker token: %d %s", res.status, res.body)
		}
		if res := s.at(http.MethodPost, "/mcp", subscribe, admin); res.status != http.StatusOK || strings.Contains(res.body, "error") {
			t.Errorf("subscribing with the token of the session: %d %s", res.status, res.body)
		}
		own := read(t, s.do(s.request(t.Context(), http.MethodGet, "", with(admin, header{"X-Scope": scope}))))
		own.next() // the priming event
		mux.ResourceUpdated("audit://1")
		if scope == "admin" {
			if got := own.message(); !strings.Contains(got, "audit://1") {
				t.Errorf("a GET with the token of the session was told %s", got)
			}
		}
		mux.Tool("tool-"+scope, uncalled)
		if got := own.message(); !strings.Contains(got, "tools/list_changed") {
			t.Errorf("a GET with the scope %s was told %s", scope, got)
		}
		mux.Prompt("prompt-"+scope, uncalled) // follows those of the previous change
		if got := own.message(); !strings.Contains(got, "prompts/list_changed") {
			t.Errorf("a GET with the scope %s was told %s", scope, got)
		}
	}
}
