// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/middleware"
)

// files returns a server with a tool for every authenticated caller and one that requires a
// scope.
func files() *mcp.Mux {
	mux := mcp.NewMux("files", "v1", &mcp.MuxOptions{Logger: quiet})
	whoami := mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		return mcp.PrincipalFromContext(ctx).Subject, nil
	}, nil)
	mux.Tool("whoami", whoami)
	mux.With(middleware.RequireScopes("files:write", "files:lock")).Tool("write", whoami)
	return mux
}

// protected serves files to callers with a token.
func protected(v auth.Verifier) http.Handler {
	opts := &auth.Options{Metadata: &auth.Metadata{Resource: resource}, Scopes: []string{"files:read"}, Logger: quiet}
	return auth.Require(v, opts)(handler(files()))
}

func post(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// legacy returns a message in a session, or without one if session is "".
func legacy(session, token, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, resource, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

func call(tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q}}`, tool)
}

// open starts a session and returns its ID.
func open(t *testing.T, h http.Handler, token string) string {
	t.Helper()
	w := post(h, legacy("", token, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+
		`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, mcp.LegacyVersions()[0])))
	id := w.Header().Get("Mcp-Session-Id")
	if id == "" {
		t.Fatalf("no session: %d %s", w.Code, w.Body)
	}
	post(h, legacy(id, token, `{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	return id
}

// T65: only the caller that started a session can use it, even if others know its ID.
func TestStolenSession(t *testing.T) {
	h := protected(newJWT(auth.JWTOptions{}))
	alice, bob := token(nil), token(claims{"sub": "bob"})
	id := open(t, h, alice)
	again := token(claims{"jti": "refreshed", "scope": "files:read"})
	for _, c := range []struct {
		name, token string
		status      int
	}{
		{"alice", alice, 200},
		{"alice with another token", again, 200},
		{"bob", bob, 404},
		{"alice of another issuer", token(claims{"iss": "https://evil.example.com"}), 401},
		{"nobody", "", 401},
	} {
		if w := post(h, legacy(id, c.token, call("whoami"))); w.Code != c.status || w.Code == 200 && !strings.Contains(w.Body.String(), "alice") {
			t.Errorf("%s: got %d %s", c.name, w.Code, w.Body)
		}
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			if c.status == 200 {
				continue
			}
			r := legacy(id, c.token, "")
			r.Method = method
			if w := post(h, r); w.Code != c.status {
				t.Errorf("%s: %s: got %d", c.name, method, w.Code)
			}
		}
	}
	// Other callers cannot distinguish it from an ID that does not exist.
	stolen, absent := post(h, legacy(id, bob, call("whoami"))), post(h, legacy("none", bob, call("whoami")))
	if stolen.Code != absent.Code || stolen.Body.String() != absent.Body.String() {
		t.Errorf("got %s and %s", stolen.Body, absent.Body)
	}
}

// A scope missing in a handler becomes a challenge to request all required scopes, in both
// eras.
func TestStepUp(t *testing.T) {
	h := protected(newJWT(auth.JWTOptions{}))
	const want = `Bearer error="insufficient_scope", scope="files:read files:write files:lock", resource_metadata="` + metadata + `"`
	for _, c := range []struct {
		scope  string
		status int
	}{
		{"files:read", 403}, {"files:read files:write", 403}, {"files:read files:write files:lock", 200},
	} {
		tok := token(claims{"scope": c.scope})
		id := open(t, h, tok)
		r := modern("write")
		r.Header.Set("Authorization", "Bearer "+tok)
		for era, r := range map[string]*http.Request{"modern": r, "legacy": legacy(id, tok, call("write"))} {
			w := post(h, r)
			challenge := w.Header().Get("WWW-Authenticate")
			if w.Code != c.status || (challenge == want) != (c.status == 403) {
				t.Errorf("%s, %s: got %d %s\n%s", era, c.scope, w.Code, challenge, w.Body)
			}
		}
	}
}

// Headers that contradict the body do not give access to a tool.
func TestForgedName(t *testing.T) {
	h := protected(newJWT(auth.JWTOptions{}))
	tok := token(nil)
	for _, name := range []string{"whoami", "", "=?base64?d2hvYW1p?="} {
		r := modern("write")
		r.Header.Set("Authorization", "Bearer "+tok)
		if r.Header.Set("Mcp-Name", name); name == "" {
			r.Header.Del("Mcp-Name")
		}
		if w := post(h, r); w.Code != http.StatusBadRequest || strings.Contains(w.Body.String(), "alice") {
			t.Errorf("%q: got %d %s", name, w.Code, w.Body)
		}
		old := legacy(open(t, h, tok), tok, call("write"))
		old.Header.Set("Mcp-Name", name)
		if w := post(h, old); w.Code != http.StatusForbidden {
			t.Errorf("%q: got %d %s", name, w.Code, w.Body)
		}
	}
	// Neither does a duplicate header.
	r := modern("write")
	r.Header.Set("Authorization", "Bearer "+tok)
	r.Header.Add("Mcp-Name", "whoami")
	if w := post(h, r); w.Code != http.StatusBadRequest {
		t.Errorf("two names: got %d", w.Code)
	}
}

// The transport of 2024-11-05 is protected in the same way.
func TestSSEIsProtected(t *testing.T) {
	router := mcphttp.NewRouter(files(), &mcphttp.RouterOptions{
		Options:    &mcphttp.Options{Logger: quiet},
		Middleware: []func(http.Handler) http.Handler{auth.Require(newJWT(auth.JWTOptions{}), &auth.Options{Metadata: &auth.Metadata{Resource: resource}, Logger: quiet})},
	})
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodHead, http.MethodOptions, http.MethodPut} {
		for _, path := range []string{"/mcp", "/sse"} {
			if w := post(router, httptest.NewRequest(method, path, nil)); w.Code != http.StatusUnauthorized {
				t.Errorf("%s %s: got %d", method, path, w.Code)
			}
		}
	}
}
