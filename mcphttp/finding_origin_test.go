// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/middleware"
)

// scopes is a server behind an authentication that believes X-Scope, for one user.
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

// A batch is its sender's, with the scopes of the token that came with it, not with
// those of the one that opened the session.
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

// So is a batch over HTTP+SSE.
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

// Subscribing needs the scopes of the request that subscribes, and being told those of
// the GET that listens.
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
		own.next() // the event that primes
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
		mux.Prompt("prompt-"+scope, uncalled) // what came with the change before it comes before this one
		if got := own.message(); !strings.Contains(got, "prompts/list_changed") {
			t.Errorf("a GET with the scope %s was told %s", scope, got)
		}
	}
}
