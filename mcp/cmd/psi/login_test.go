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

// loginServer starts an authorization server whose users approve everything.
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

// protectedServer starts a server that requires the token of a login.
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

// user reads what the program writes and opens the login pages in it.
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

// A script is told to log in. A user is taken to the login page, once.
func TestLogin(t *testing.T) {
	isolate(t)
	t.Setenv("PATH", "") // so that no browser is found
	server := protectedServer(t)
	if got := psi(t, "", "call", server, "add", "a=2", "b=3"); got.code != exitUnauthorized || !strings.Contains(got.errOut, "run psi in a terminal, or with -login; or send a key or token with -header") {
		t.Errorf("without -login: exit code %d, wrote %q", got.code, got.errOut)
	}
	for _, want := range []int{1, 0} { // the second time, the token is stored and -login is not needed
		var out bytes.Buffer
		u := &user{}
		args := []string{"call", server, "add", "a=2", "b=3"}
		if want > 0 {
			args = append(args, "-login")
		}
		code := run(t.Context(), args, strings.NewReader(""), &out, u)
		if code != exitOK || u.logins != want || out.String() != "{\"sum\":5}\n" {
			t.Errorf("exit code %d, %d logins, want %d; wrote %q and %q", code, u.logins, want, &out, u)
		}
		if want > 0 && !strings.Contains(u.String(), "No browser") {
			t.Errorf("wrote %q", u)
		}
	}
}
