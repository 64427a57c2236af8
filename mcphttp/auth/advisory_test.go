// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
)

// Tests of public advisories are named after them. docs/evidence/advisories.md lists them.

// By default, the Python SDK accepted a token that the same authorization server had
// issued for another server. There is no such option here for tokens with an audience.
func TestAdvisoryGHSA_w4fh_qvv9_3v23(t *testing.T) {
	v := newJWT(auth.JWTOptions{})
	for _, aud := range []any{
		nil, "", "https://other.example.com/mcp", "https://mcp.example.com", "https://mcp.example.com/mcp2", "https://mcp.example.com/mcp/admin",
		"http://mcp.example.com/mcp", "https://mcp.example.com.evil.example/mcp", "account", []string{}, []string{"https://other.example.com/mcp"}, []any{nil}, true,
	} {
		if a := ask(v, nil, bearing(token(claims{"aud": aud}))); a.Code != http.StatusUnauthorized || a.caller != nil {
			t.Errorf("a token for %v: %d", aud, a.Code)
		}
	}
	for _, aud := range []any{resource, []string{"https://other.example.com/mcp", resource}} {
		if a := ask(v, nil, bearing(token(claims{"aud": aud}))); a.Code != http.StatusOK || a.caller.Subject != "alice" {
			t.Errorf("a token for %v: %d %s", aud, a.Code, a.challenge())
		}
	}
}

// All deployments of the registry had the same audience: a token sent to one could be
// replayed to another.
func TestAdvisoryCVE_2026_44428(t *testing.T) {
	other := must(auth.NewJWT(issuer, "https://staging.example.com/mcp", &auth.JWTOptions{Keys: published()}))
	here := newJWT(auth.JWTOptions{})
	forHere, forOther := token(nil), token(claims{"aud": "https://staging.example.com/mcp"})
	for _, c := range []struct {
		name  string
		at    *auth.JWT
		token string
		good  bool
	}{
		{"here", here, forHere, true}, {"here, for the other", here, forOther, false},
		{"there", other, forOther, true}, {"there, for here", other, forHere, false},
	} {
		if p, err := verify(t, c.at, c.token); (err == nil) != c.good {
			t.Errorf("%s: %v, %v", c.name, p, err)
		}
	}
}

// The MCP Toolbox accepted an introspection answer without "active".
func TestAdvisoryCVE_2026_11717(t *testing.T) {
	for _, active := range []any{nil, "true", 1, []bool{true}, map[string]any{"active": true}, false} {
		i := newInspector(map[string]claims{"t": usual(claims{"active": active})})
		if p, err := verify(t, i.verifier(auth.IntrospectionOptions{Issuer: issuer}), "t"); err == nil {
			t.Errorf("active is %v: %+v", active, p)
		}
	}
	i := newInspector(nil)
	for _, answer := range []string{`{}`, `{"Active":true,"sub":"alice","aud":"` + resource + `"}`, `{"active\u0000":true,"sub":"alice","aud":"` + resource + `"}`, `[]`, `null`, `true`} {
		i.put(introspectURL, answer)
		if p, err := verify(t, i.verifier(auth.IntrospectionOptions{}), "t"); err == nil {
			t.Errorf("%s: %+v", answer, p)
		}
	}
	i = newInspector(map[string]claims{"t": usual(claims{"active": true})})
	if p, err := verify(t, i.verifier(auth.IntrospectionOptions{Issuer: issuer}), "t"); err != nil || p.Subject != "alice" {
		t.Errorf("a good answer: %+v, %v", p, err)
	}
}

// The MCP Toolbox also skipped its issuer check if a response named no issuer, so it
// accepted tokens of any other provider known to the endpoint. Here a response without an
// issuer must still be for this server, and never authenticates a caller of another issuer.
// With RequireIssuer it is rejected.
func TestAdvisoryCVE_2026_11718(t *testing.T) {
	for name, c := range map[string]claims{
		"another issuer":           {"iss": "https://evil.example.com"},
		"an empty one":             {"iss": ""},
		"no text":                  {"iss": 7},
		"none, for nobody":         {"iss": nil, "aud": nil},
		"none, for another":        {"iss": nil, "aud": "https://other.example.com/mcp"},
		"none, for another client": {"iss": nil, "aud": nil, "client_id": resource},
	} {
		c["active"] = true
		i := newInspector(map[string]claims{"t": usual(c)})
		if p, err := verify(t, i.verifier(auth.IntrospectionOptions{Issuer: issuer}), "t"); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
	i := newInspector(map[string]claims{"t": usual(claims{"active": true, "iss": nil})})
	if p, err := verify(t, i.verifier(auth.IntrospectionOptions{Issuer: issuer}), "t"); err != nil || p.Issuer != issuer {
		t.Errorf("none: %+v, %v", p, err)
	}
	for name, c := range map[string]claims{"none": {"iss": nil}, "an empty one": {"iss": ""}, "no text": {"iss": 7}} {
		c["active"] = true
		i := newInspector(map[string]claims{"t": usual(c)})
		for _, own := range []string{issuer, ""} {
			if p, err := verify(t, i.verifier(auth.IntrospectionOptions{Issuer: own, RequireIssuer: true}), "t"); !isRefusal(err) {
				t.Errorf("%s, of %q and required: %+v, %v", name, own, p, err)
			}
		}
	}
	i = newInspector(map[string]claims{"t": usual(claims{"active": true})})
	for _, own := range []string{issuer, ""} {
		if p, err := verify(t, i.verifier(auth.IntrospectionOptions{Issuer: own, RequireIssuer: true}), "t"); err != nil || p.Issuer != issuer {
			t.Errorf("the right one: %+v, %v", p, err)
		}
	}
}

// The authentication of mcp-atlassian protected one path, but not the paths of the older
// transport, whose callers acted as the operator.
func TestAdvisoryGHSA_5j8j_256g_vvp5(t *testing.T) {
	ran := false
	mux := files()
	mux.Tool("ran", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { ran = true; return mcp.TextResult(""), nil }))
	router := mcphttp.NewRouter(mux, &mcphttp.RouterOptions{
		Options:    &mcphttp.Options{Logger: quiet},
		Middleware: []func(http.Handler) http.Handler{auth.Require(newJWT(auth.JWTOptions{}), &auth.Options{Metadata: &auth.Metadata{Resource: resource}, Logger: quiet})},
	})
	for _, path := range []string{"/mcp", "/mcp/", "//mcp", "/sse", "/sse?sessionId=x", "/sse/", "/MCP", "/messages", "/mcp%2f", "/./mcp", "/sse/../mcp", "/healthz/../mcp"} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodPut, "X"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // a stream does not end
			r := modern("ran").WithContext(ctx)
			r.Method = method
			r.URL = must(r.URL.Parse("https://mcp.example.com" + path))
			w := httptest.NewRecorder()
			router.ServeHTTP(w, r)
			cancel()
			if w.Code != http.StatusUnauthorized && w.Code != http.StatusNotFound && w.Code != http.StatusMethodNotAllowed || w.Header().Get("Mcp-Session-Id") != "" {
				t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
	}
	if ran {
		t.Error("the tool ran")
	}
}

// GitHub's server used the client of its first user for all other users. Here the caller is
// that of the current request, in the same session and in others.
func TestAdvisoryCVE_2026_48529(t *testing.T) {
	h := protected(newJWT(auth.JWTOptions{}))
	var wg sync.WaitGroup
	for i := range 40 {
		user := fmt.Sprintf("user-%d.", i)
		tok := token(claims{"sub": user})
		id := open(t, h, tok)
		wg.Go(func() {
			for range 5 {
				r := modern("whoami")
				r.Header.Set("Authorization", "Bearer "+tok)
				for era, r := range map[string]*http.Request{"modern": r, "legacy": legacy(id, tok, call("whoami"))} {
					if w := post(h, r); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), user) {
						t.Errorf("%s, %s: %d %s", era, user, w.Code, w.Body)
					}
				}
			}
		})
	}
	wg.Wait()
}
