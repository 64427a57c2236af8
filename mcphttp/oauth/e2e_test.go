// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// serveMCP replaces the world's server with a real one.
func (w *world) serveMCP() {
	mux := mcp.NewMux("clock", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil))
	handler := mcphttp.NewHandler(mux, nil)
	w.hosts[origin(serverURL)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if _, ok := w.login.scopesOf(token); !ok || r.URL.Path != "/mcp" {
			w.server.ServeHTTP(rw, r)
			return
		}
		handler.ServeHTTP(rw, r)
	})
}

// connect connects through a transport.
func (w *world) connect(rt *oauth.Transport) *mcp.Conn {
	w.t.Helper()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(w.t.Context(), mcphttp.NewTransport(serverURL, &mcphttp.TransportOptions{
		Client: &http.Client{Transport: rt},
	}))
	if err != nil {
		w.t.Fatal(err)
	}
	return conn
}

// A user may take longer to log in than a server may take to answer a probe.
func TestSlowUser(t *testing.T) {
	for name, before := range map[string]bool{"while connecting": false, "before": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.serveMCP()
				visit := w.visit
				w.receiver = oauth.NewRedirector("https://app.example/callback", func(ctx context.Context, to string) (url.Values, error) {
					<-time.After(time.Minute)
					return visit(ctx, to)
				})
				rt := w.transport(nil)
				if before {
					if err := rt.Authorize(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				conn := w.connect(rt)
				defer conn.Close()
				if conn.Version() != mcp.LatestVersion {
					t.Errorf("version %s, want %s", conn.Version(), mcp.LatestVersion)
				}
				if _, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "greet"}); err != nil {
					t.Error(err)
				}
				w.wantAuthorizations(1)
			})
		})
	}
}

// A rejection fails the request, and the server is not mistaken for an old one.
func TestConnectDenied(t *testing.T) {
	w := newWorld(t)
	w.serveMCP()
	w.login.redirect = func(params url.Values) { params.Set("error", "access_denied") }
	_, err := mcp.NewClient("host", "v1.0.0", nil).Connect(t.Context(), mcphttp.NewTransport(serverURL, &mcphttp.TransportOptions{
		Client: &http.Client{Transport: w.transport(nil)},
	}))
	var refusal *oauth.Error
	if !errors.Is(err, mcp.ErrUnauthorized) || !errors.As(err, &refusal) || refusal.Code != "access_denied" {
		t.Errorf("%v", err)
	}
	if n := len(w.login.authorizations()); n != 1 {
		t.Errorf("the user was asked %d times", n)
	}
}
