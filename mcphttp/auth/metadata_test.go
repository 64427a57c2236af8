// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
)

// T67: the well-known path precedes the path of the resource.
func TestMetadataURL(t *testing.T) {
	for resource, want := range map[string]string{
		"https://mcp.example.com/mcp":      "https://mcp.example.com/.well-known/oauth-protected-resource/mcp",
		"https://mcp.example.com/a/b/":     "https://mcp.example.com/.well-known/oauth-protected-resource/a/b",
		"https://mcp.example.com":          "https://mcp.example.com/.well-known/oauth-protected-resource",
		"https://mcp.example.com/":         "https://mcp.example.com/.well-known/oauth-protected-resource",
		"https://mcp.example.com:8443/mcp": "https://mcp.example.com:8443/.well-known/oauth-protected-resource/mcp",
		"https://mcp.example.com/mcp?t=1":  "https://mcp.example.com/.well-known/oauth-protected-resource/mcp?t=1",
		"http://localhost:8080/mcp":        "http://localhost:8080/.well-known/oauth-protected-resource/mcp",
		"http://[::1]:8080/mcp":            "http://[::1]:8080/.well-known/oauth-protected-resource/mcp",
	} {
		if got := must(auth.MetadataURL(resource)); got != want {
			t.Errorf("%s: got %s, want %s", resource, got, want)
		}
	}
}

// The document is public, next to a protected server.
func TestMetadataHandler(t *testing.T) {
	m := &auth.Metadata{Resource: resource, AuthorizationServers: []string{issuer}, ScopesSupported: []string{"files:read"}}
	protect := auth.Require(newJWT(auth.JWTOptions{}), &auth.Options{Metadata: &auth.Metadata{Resource: resource}, Logger: quiet})
	router := mcphttp.NewRouter(mcp.NewMux("test", "v1", nil), &mcphttp.RouterOptions{Middleware: []func(http.Handler) http.Handler{protect}})
	router.Handle(must(auth.MetadataPath(resource)), auth.MetadataHandler(m))
	get := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest(method, "https://mcp.example.com"+path, nil))
		return w
	}
	if w := get(http.MethodPost, "/mcp"); w.Code != http.StatusUnauthorized {
		t.Errorf("the server answers %d", w.Code)
	}
	const path = "/.well-known/oauth-protected-resource/mcp"
	w := get(http.MethodGet, path)
	const want = `{"resource":"https://mcp.example.com/mcp","authorization_servers":["https://login.example.com"],` +
		`"scopes_supported":["files:read"],"bearer_methods_supported":["header"]}`
	if w.Code != http.StatusOK || w.Body.String() != want || w.Header().Get("Content-Type") != "application/json" || !json.Valid(w.Body.Bytes()) {
		t.Errorf("got %d %v\n%s", w.Code, w.Header(), w.Body)
	}
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Content-Length": strconv.Itoa(w.Body.Len()), "Cache-Control": "public, max-age=3600",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"Access-Control-Allow-Methods": "GET, HEAD", "Access-Control-Allow-Headers": "*", "Access-Control-Max-Age": "86400",
	} {
		if got := get(http.MethodOptions, path).Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := get(http.MethodPost, path).Header().Get("Allow"); got != "GET, HEAD, OPTIONS" {
		t.Errorf("Allow is %q", got)
	}
	for method, status := range map[string]int{"GET": 200, "HEAD": 200, "OPTIONS": 204, "POST": 405} {
		if w := get(method, path); w.Code != status || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: got %d %v", method, w.Code, w.Header())
		}
	}
}
