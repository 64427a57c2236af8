// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
)

// What proxies add, what caches could mix up and what a client sends in the wrong place changes
// neither where this server sends anyone, nor what it says of itself, nor whose request it is.
func TestForgedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newQuietWorld(t)
		id := w.register("app", appURI)
		b := w.browser()
		b.step(http.MethodGet, w.link(id), nil)
		base, _ := url.Parse(w.url)
		cookie := b.client.Jar.Cookies(base)[0]
		code, form := w.code(id), url.Values{"token": {b.form()}, "answer": {"allow"}}.Encode()
		redeem := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {appURI}, "client_id": {id}, "code_verifier": {verifier}}.Encode()
		send := func(method, target, body string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, target, strings.NewReader(body))
			r.RemoteAddr, r.Host = "192.0.2.9:1", "evil.example"
			r.AddCookie(cookie)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			for _, name := range []string{"Forwarded", "X-Forwarded-Host", "X-Forwarded-Prefix", "X-Forwarded-Server", "X-Original-Url", "X-Rewrite-Url", "X-Original-Host"} {
				r.Header.Set(name, "host=evil.example")
			}
			r.Header.Set("X-Forwarded-For", "198.51.100.1")
			r.Header.Set("X-Forwarded-Proto", "gopher")
			r.Header.Set("X-Http-Method-Override", "GET")
			rec := httptest.NewRecorder()
			w.replicas[0].ServeHTTP(rec, r)
			return rec
		}
		for _, c := range []struct {
			method, target, body string
			status               int
			says                 string // in the body or in Location
		}{
			{"GET", "/.well-known/oauth-authorization-server", "", http.StatusOK, `"issuer":"` + w.url + `"`},
			{"GET", "/.well-known/oauth-protected-resource/mcp", "", http.StatusOK, `"resource":"` + w.url + `/mcp"`},
			{"GET", strings.TrimPrefix(w.link(id), w.url), "", http.StatusOK, w.url + "/mcp"},
			{"GET", strings.TrimPrefix(w.link(id, "code_challenge", ""), w.url), "", http.StatusBadRequest, url.QueryEscape(w.url)},
			{"POST", "/consent", form, http.StatusSeeOther, "redirect_uri=" + url.QueryEscape(w.url+"/callback")},
			{"GET", "/callback?state=x&code=y", "", http.StatusBadRequest, "used already"},
			{"POST", "/consent?" + form, "", http.StatusForbidden, ""},
			{"POST", "/token?" + redeem, "", http.StatusUnauthorized, "invalid_client"},
			{"POST", "/token?client_id=x&grant_type=y&code=z", redeem, http.StatusOK, "access_token"},
			{"HEAD", "/token", "", http.StatusMethodNotAllowed, ""},
			{"POST", "//evil.example/../authorize", "", http.StatusTemporaryRedirect, "/authorize"},
			{"GET", "/authorize/", "", http.StatusNotFound, ""},
			{"GET", "/authorize%2f?client_id=x", "", http.StatusNotFound, ""},
		} {
			rec := send(c.method, c.target, c.body)
			text := rec.Header().Get("Location") + rec.Body.String()
			if rec.Code != c.status || !strings.Contains(text, c.says) || strings.Contains(text, "evil") || strings.Contains(text, "gopher") {
				t.Errorf("%s %.40s: status %d\n%s", c.method, c.target, rec.Code, text)
			}
		}
		if keys := send("GET", "/jwks", "").Body.String(); !strings.Contains(keys, `"x":`) || strings.Contains(keys, `"d":`) {
			t.Errorf("the keys are %s", keys)
		}
		for range 300 {
			send("POST", "/token", "")
		}
		if rec := send("POST", "/token", ""); rec.Code != http.StatusTooManyRequests {
			t.Errorf("with an address of its own choice: status %d", rec.Code)
		}
	})
}
