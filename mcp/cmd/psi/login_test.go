// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
)

// loginServer starts an authorization server whose users approve everything. It passes the
// requests of users to sent, unless that is nil.
func loginServer(t *testing.T, sent chan<- url.Values) (issuer string) {
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
		if sent != nil {
			sent <- r.URL.Query()
		}
		back := url.Values{"code": {"code"}, "state": {r.FormValue("state")}}
		http.Redirect(w, r, r.FormValue("redirect_uri")+"?"+back.Encode(), http.StatusSeeOther)
	})
	return server.URL
}

// protectedServer starts a server that requires the token of a login, and names an authorization
// server.
func protectedServer(t *testing.T, issuer string) (resource string) {
	t.Helper()
	keys := auth.APIKeys(map[string]*mcp.Principal{"a-token-that-is-good": {Issuer: "test", Subject: "ada"}}, nil)
	return mcptest.ServeFunc(t, func(url string) http.Handler {
		resource := url + "/mcp"
		metadata := &auth.Metadata{Resource: resource, AuthorizationServers: []string{issuer}}
		router := mcphttp.NewRouter(newServer(), &mcphttp.RouterOptions{
			Middleware: []func(http.Handler) http.Handler{auth.Require(keys, &auth.Options{Metadata: metadata})},
		})
		path, err := auth.MetadataPath(resource)
		if err != nil {
			t.Fatal(err)
		}
		router.Handle(path, auth.MetadataHandler(metadata))
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
	server := protectedServer(t, loginServer(t, nil))
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

// A logout forgets the token, and says if it was not revoked.
func TestLogout(t *testing.T) {
	isolate(t)
	t.Setenv("PATH", "") // so that no browser is found
	server := protectedServer(t, loginServer(t, nil))
	login := func(want int) {
		t.Helper()
		u := &user{}
		if code := run(t.Context(), []string{"call", "-login", server, "add", "a=2", "b=3"}, strings.NewReader(""), io.Discard, u); code != exitOK || u.logins != want {
			t.Fatalf("exit code %d, %d logins, want %d; wrote %q", code, u.logins, want, u)
		}
	}
	login(1)
	login(0)
	if got := psi(t, "", "logout", server); got.code != exitOK || !strings.Contains(got.errOut, "the token may work until it expires") || !strings.HasSuffix(got.errOut, "logged out\n") {
		t.Errorf("exit code %d, wrote %q", got.code, got.errOut)
	}
	login(1)
	for _, args := range [][]string{{"logout"}, {"logout", server, "more"}, {"logout", "--", "server"}} {
		if got := psi(t, "", args...); got.code != exitUsage {
			t.Errorf("%v: exit code %d, wrote %q", args, got.code, got.errOut)
		}
	}
}

// A configuration file says as which client, where and for what to log in. Flags replace what it
// says.
func TestFindingRM5LoginOfFile(t *testing.T) {
	t.Setenv("PATH", "") // so that no browser is found
	port := freePort(t)
	sent := make(chan url.Values, 1)
	issuer := loginServer(t, sent)
	server := protectedServer(t, "https://wrong.example.com")
	for _, test := range []struct {
		oauth         string
		flags         []string
		client, scope string
	}{
		{fmt.Sprintf(`{"clientId": "of-file", "callbackPort": %d, "scopes": ["one", "two"], "authServerMetadataUrl": "%s/.well-known/oauth-authorization-server"}`, port, issuer), nil, "of-file", "one two"},
		{
			`{"clientId": "of-file", "callbackPort": 1, "scopes": "one two"}`,
			[]string{"-client-id", "of-flag", "-callback-port", strconv.Itoa(port), "-scope", "three", "-scope", "four", "-auth-server-metadata", issuer + "/.well-known/oauth-authorization-server"},
			"of-flag", "three four",
		},
	} {
		path := isolate(t) + "/mcp.json"
		if err := os.WriteFile(path, fmt.Appendf(nil, `{"mcpServers": {"a": {"url": %q, "oauth": %s}}}`, server, test.oauth), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		u := &user{}
		args := append([]string{"call", "-login", "-config", path, "a", "add", "a=2", "b=3"}, test.flags...)
		if code := run(t.Context(), args, strings.NewReader(""), &out, u); code != exitOK || out.String() != "{\"sum\":5}\n" {
			t.Fatalf("%s: exit code %d, wrote %q and %q", test.client, code, &out, u)
		}
		got := <-sent
		if redirect := fmt.Sprintf("http://localhost:%d/callback", port); got.Get("client_id") != test.client || got.Get("scope") != test.scope || got.Get("redirect_uri") != redirect {
			t.Errorf("%s: the user was sent with %v", test.client, got)
		}
	}
}

// freePort returns a port at which nothing listens.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
