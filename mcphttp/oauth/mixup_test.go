// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"github.com/go-psi/psi/mcphttp/oauth"
)

// mixUp returns a world whose server names a hostile authorization server, which sends users
// to the pages of an honest one that does not name itself in redirects.
func mixUp(t *testing.T) (w *world, evil *issuer) {
	t.Helper()
	w = newWorld(t)
	w.login.noIss = true // the honest one
	evil = newIssuer("https://evil.example")
	evil.metadata["authorization_endpoint"] = loginURL + "/authorize"
	evil.metadata["authorization_response_iss_parameter_supported"] = false
	w.hosts["https://evil.example"] = evil
	w.server.metadata["authorization_servers"] = []string{"https://evil.example"}
	return w, evil
}

// A code from an honest authorization server is not sent to the hostile one that sent the
// user there.
func TestFindingS38MixUpWithoutIssuer(t *testing.T) {
	w, evil := mixUp(t)
	w.mustFail(w.transport(&oauth.Options{Grant: &oauth.AuthorizationCode{Redirector: w.receiver, RequireIssuer: true}}), oauth.ErrIssuer)
	w.wantAuthorizations(1)
	if n := w.asked("POST https://evil.example/token"); n != 0 || len(evil.granted("")) != 0 {
		t.Errorf("the hostile one got %d codes", n)
	}
	// If the honest one names itself, no option is needed.
	w, _ = mixUp(t)
	w.login.noIss = false
	w.mustFail(w.transport(nil), oauth.ErrIssuer)
	if n := w.asked("POST https://evil.example/token"); n != 0 {
		t.Errorf("the hostile one got %d codes", n)
	}
}

// Real authorization servers still work: with pages at the origin of the token endpoint but
// not of the issuer, with tokens of another host, and with an iss that was not announced.
// Servers that send no iss work unless it is required.
func TestFindingS38RealServers(t *testing.T) {
	for name, arrange := range map[string]func(w *world){
		"no iss, all on one origin": func(w *world) { w.login.noIss = true },
		"no iss, tokens of another host": func(w *world) {
			w.login.noIss = true
			w.login.metadata["token_endpoint"] = "https://tokens.example/token"
			w.hosts["https://tokens.example"] = w.login
		},
		"no iss, pages and tokens of another host": func(w *world) {
			w.login.noIss = true
			w.login.metadata["token_endpoint"] = "https://pages.example/token"
			w.login.metadata["authorization_endpoint"] = "https://pages.example/authorize"
			w.hosts["https://pages.example"] = w.login
		},
		"pages of another host, and an iss that was not promised": func(w *world) {
			w.login.metadata["authorization_endpoint"] = "https://pages.example/authorize"
			w.hosts["https://pages.example"] = w.login
		},
	} {
		for _, strict := range []bool{false, true} {
			w := newWorld(t)
			w.login.metadata["authorization_response_iss_parameter_supported"] = false
			arrange(w)
			rt := w.transport(&oauth.Options{Grant: &oauth.AuthorizationCode{Redirector: w.receiver, RequireIssuer: strict}})
			if strict && w.login.noIss {
				w.mustFail(rt, oauth.ErrIssuer)
				continue
			}
			got, err := post(t.Context(), rt, "", "hello")
			if err != nil || got != served {
				t.Errorf("%s, RequireIssuer %v: %q, %v", name, strict, got, err)
			}
		}
	}
	// By default, pages on another host also work without iss.
	w := newWorld(t)
	w.login.metadata["authorization_response_iss_parameter_supported"] = false
	w.login.metadata["authorization_endpoint"] = "https://pages.example/authorize"
	w.login.redirect = func(params url.Values) { params.Del("iss") }
	w.hosts["https://pages.example"] = w.login
	w.mustPost(w.transport(nil), "", served)
}

// The page of a hostile authorization server can send the user on to an honest one. That the
// client sent the user to the right origin does not show where the code comes from.
func TestMixUpByRedirectingPage(t *testing.T) {
	w, evil := mixUp(t)
	evil.metadata["authorization_endpoint"] = "https://evil.example/authorize"
	w.hosts["https://evil.example"] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/authorize" {
			http.Redirect(rw, r, loginURL+"/authorize?"+r.URL.RawQuery, http.StatusFound)
			return
		}
		evil.ServeHTTP(rw, r)
	})
	user := oauth.NewRedirector("https://app.example/callback", func(ctx context.Context, to string) (url.Values, error) {
		page, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
		if err != nil {
			return nil, err
		}
		res, err := w.RoundTrip(page)
		if err != nil {
			return nil, err
		}
		next, err := res.Location()
		if err != nil {
			return nil, err
		}
		return w.visit(ctx, next.String())
	})
	w.mustFail(w.transport(&oauth.Options{Grant: &oauth.AuthorizationCode{Redirector: user, RequireIssuer: true}}), oauth.ErrIssuer)
	w.wantAuthorizations(1)
	if n := w.asked("POST https://evil.example/token"); n != 0 {
		t.Errorf("the hostile one got %d codes", n)
	}
}
