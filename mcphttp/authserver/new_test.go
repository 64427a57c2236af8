// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"bytes"
	"html/template"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcphttp/authserver"
)

// Nothing but a valid configuration makes a server.
func TestNew(t *testing.T) {
	provider := authserver.GitHub("id", "secret")
	for name, c := range map[string]struct {
		resource string
		opts     *authserver.Options
	}{
		"no options": {"https://a.example/mcp", nil}, "no provider": {"https://a.example/mcp", &authserver.Options{}}, "http": {"http://a.example/mcp", &authserver.Options{Provider: provider}},
		"query": {"https://a.example/mcp?x", &authserver.Options{Provider: provider}}, "short key": {"https://a.example/mcp", &authserver.Options{Provider: provider, Keys: [][]byte{bytes.Repeat([]byte("k"), 31)}}},
		"a store without keys": {"https://a.example/mcp", &authserver.Options{Provider: provider, Values: store.NewMemory(nil)}},
		"scope":                {"https://a.example/mcp", &authserver.Options{Provider: provider, Scopes: []string{"a b"}}}, "no client": {"https://a.example/mcp", &authserver.Options{Provider: authserver.GitHub("", "")}},
		"user": {"https://u@a.example/mcp", &authserver.Options{Provider: provider}}, "fragment": {"https://a.example/mcp#x", &authserver.Options{Provider: provider}}, "no host": {"https:///mcp", &authserver.Options{Provider: provider}},
		"upper case": {"https://A.example/mcp", &authserver.Options{Provider: provider}}, "scheme": {"HTTPS://a.example/mcp", &authserver.Options{Provider: provider}}, "two slashes": {"https://a.example//mcp", &authserver.Options{Provider: provider}}, "dots": {"https://a.example/x/../mcp", &authserver.Options{Provider: provider}},
		"a page without its token": {"https://a.example/mcp", &authserver.Options{Provider: provider, Consent: template.Must(template.New("").Parse(`<form action="{{.Action}}"><button name="answer">`))}},
		"no URL":                   {"https://a.example/%zz", &authserver.Options{Provider: provider}}, "another scheme": {"ftp://localhost/mcp", &authserver.Options{Provider: provider}},
		"endpoint":        {"https://a.example/mcp", &authserver.Options{Provider: &authserver.Provider{ClientID: "id", AuthURL: "https://x.example", TokenURL: "https://x.example", UserInfoURL: "https://u@x.example"}}},
		"a subject claim": {"https://a.example/mcp", &authserver.Options{Provider: &authserver.Provider{ClientID: "id", Issuer: "https://x.example", Scopes: []string{"openid"}, SubjectClaim: "id"}}},
		"no user info":    {"https://a.example/mcp", &authserver.Options{Provider: &authserver.Provider{ClientID: "id", AuthURL: "https://x.example", TokenURL: "https://x.example"}}},
		"no openid":       {"https://a.example/mcp", &authserver.Options{Provider: &authserver.Provider{ClientID: "id", Issuer: "https://x.example", Scopes: []string{"profile"}}}},
		"a state":         {"https://a.example/mcp", &authserver.Options{Provider: &authserver.Provider{ClientID: "id", Issuer: "https://x.example", Scopes: []string{"openid"}, AuthParams: map[string]string{"state": "x"}}}},
		"a mode":          {"https://a.example/mcp", &authserver.Options{Provider: &authserver.Provider{ClientID: "id", Issuer: "https://x.example", Scopes: []string{"openid"}, AuthParams: map[string]string{"response_mode": "form_post"}}}},
		"issuer":          {"https://a.example/mcp", &authserver.Options{Provider: authserver.OIDC("http://idp.example", "id", "secret")}},
	} {
		if _, err := authserver.New(c.resource, c.opts); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A resource may be an origin, and its path may be escaped and end with a slash.
func TestResources(t *testing.T) {
	for _, resource := range []string{"https://a.example", "https://a.example/", "https://a.example/mcp/", "https://a.example/a%20b", "https://a.example/{x}", "https://a.example:8443/a/b", "http://[::1]:1/mcp"} {
		front, err := authserver.New(resource, &authserver.Options{Provider: authserver.GitHub("id", "secret")})
		if err != nil {
			t.Errorf("%s: %v", resource, err)
			continue
		}
		at, err := auth.MetadataURL(resource)
		if err != nil {
			t.Fatal(err)
		}
		rec := httptest.NewRecorder()
		if front.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, at, nil)); decode(rec.Body.Bytes())["resource"] != resource {
			t.Errorf("%s: status %d %s", resource, rec.Code, rec.Body)
		}
	}
}

// A Server that New has not made panics in words.
func TestZeroServer(t *testing.T) {
	for name, use := range map[string]func(*authserver.Server){
		"ServeHTTP": func(s *authserver.Server) { s.ServeHTTP(nil, nil) }, "Verifier": func(s *authserver.Server) { s.Verifier() }, "Metadata": func(s *authserver.Server) { s.Metadata() },
		"TokenSource": func(s *authserver.Server) { s.TokenSource(t.Context()) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, "must be made by New") {
					t.Errorf("%s: %q", name, text)
				}
			}()
			use(new(authserver.Server))
		}()
	}
}

// Without keys, each server has its own, which nobody else knows.
func TestOwnKeys(t *testing.T) {
	var fronts []*authserver.Server
	for _, keys := range [][][]byte{nil, nil, {make([]byte, 32)}} {
		front, err := authserver.New("https://mcp.example.com/mcp", &authserver.Options{Provider: authserver.GitHub("id", "secret"), Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		fronts = append(fronts, front)
	}
	rec := httptest.NewRecorder()
	fronts[0].ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/register", strings.NewReader(`{"redirect_uris":["`+appURI+`"]}`)))
	id, _ := decode(rec.Body.Bytes())["client_id"].(string)
	for i, want := range []int{http.StatusOK, http.StatusBadRequest, http.StatusBadRequest} {
		rec := httptest.NewRecorder()
		fronts[i].ServeHTTP(rec, httptest.NewRequest(http.MethodGet, (&world{url: "https://mcp.example.com"}).link(id), nil))
		if rec.Code != want {
			t.Errorf("server %d: status %d, want %d", i, rec.Code, want)
		}
	}
}
