// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
)

// loginServer is an authorization server whose users agree to everything.
func loginServer(t *testing.T) (issuer string) {
	t.Helper()
	routes := http.NewServeMux()
	server := httptest.NewServer(routes)
	t.Cleanup(server.Close)
	for path, answer := range map[string]any{
		"/.well-known/oauth-authorization-server": map[string]any{
			"issuer": server.URL, "authorization_endpoint": server.URL + "/authorize", "token_endpoint": server.URL + "/token",
			"registration_endpoint": server.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
		},
		"/register": map[string]any{"client_id": "client"},
		"/token":    map[string]any{"access_token": "a-token-that-is-good", "token_type": "Bearer", "expires_in": 3600},
	} {
		routes.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer)
		})
	}
	routes.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		back := url.Values{"code": {"code"}, "state": {r.FormValue("state")}}
		http.Redirect(w, r, r.FormValue("redirect_uri")+"?"+back.Encode(), http.StatusSeeOther)
	})
	return server.URL
}

// protectedServer wants the token of a login.
func protectedServer(t *testing.T) (resource string) {
	t.Helper()
	keys := auth.APIKeys(map[string]*mcp.Principal{"a-token-that-is-good": {Issuer: "test", Subject: "ada"}}, nil)
	return mcptest.ServeFunc(t, func(url string) http.Handler {
		resource := url + "/mcp"
		router := mcphttp.NewRouter(newServer(), &mcphttp.RouterOptions{
			Middleware: []func(http.Handler) http.Handler{auth.Require(keys, &auth.Options{Resource: resource})},
		})
		router.Handle(auth.MetadataPath(resource), auth.MetadataHandler(&auth.Metadata{Resource: resource, AuthorizationServers: []string{loginServer(t)}}))
		return router
	}) + "/mcp"
}

// user reads what the program says, and opens the pages that it names.
type user struct {
	bytes.Buffer
	logins int
}

func (u *user) Write(p []byte) (int, error) {
	if _, page, ok := strings.Cut(string(p), "log in:\n  "); ok {
		u.logins++
		go func() {
			if res, err := http.Get(strings.TrimSpace(page)); err == nil {
				res.Body.Close()
			}
		}()
	}
	return u.Buffer.Write(p)
}

func TestLogin(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(name, home)
	}
	t.Setenv("PATH", "") // where there is no browser
	server := protectedServer(t)
	if err := run(t.Context(), []string{server, "call", "count"}, strings.NewReader(""), new(bytes.Buffer), new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "-login") {
		t.Errorf("without -login: %v", err)
	}
	for _, want := range []int{1, 0} { // the second time it is known from the first
		var out bytes.Buffer
		u := &user{}
		if err := run(t.Context(), []string{"-login", server, "call", "count"}, strings.NewReader(""), &out, u); err != nil {
			t.Fatal(err)
		}
		if u.logins != want || !strings.HasPrefix(out.String(), "done") {
			t.Errorf("%d logins, want %d; wrote %q and %q", u.logins, want, &out, u)
		}
		if want > 0 && !strings.Contains(u.String(), "No browser") {
			t.Errorf("wrote %q", u)
		}
	}
}
