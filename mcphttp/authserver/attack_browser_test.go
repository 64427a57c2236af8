// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"html/template"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcphttp/authserver"
)

// A sibling domain sets a cookie of the attacker's in the victim's browser, beside or in
// place of the victim's own: it ends no login that began elsewhere.
func TestTossedCookies(t *testing.T) {
	w := newWorld(t)
	id := w.register("app", appURI)
	attacker := newBrowser(t)
	attack := w.toCallback(attacker, w.link(id)) // sent to the victim
	base, _ := url.Parse(w.url)
	cookie := attacker.client.Jar.Cookies(base)[0]
	tossed := &http.Cookie{Name: cookie.Name, Value: cookie.Value, Path: "/callback"} // the more exact path is sent first
	for name, links := range map[string]func(victim *browser) string{
		"the attacker's login": func(*browser) string { return attack.String() },
		"the victim's login":   func(victim *browser) string { return w.toCallback(victim, w.link(id)).String() },
	} {
		victim := newBrowser(t)
		victim.step(http.MethodGet, w.link(id), nil)
		link := links(victim)
		victim.client.Jar.SetCookies(base, []*http.Cookie{tossed})
		if to := victim.step(http.MethodGet, link, nil); to != nil || victim.status != http.StatusForbidden {
			t.Errorf("%s: sent to %v, status %d", name, to, victim.status)
		}
	}
	// What this server has not sealed for this purpose is no cookie of its.
	for name, value := range map[string]string{"a refresh token": "", "the user's": "psi-user", "text": "x"} {
		victim := newBrowser(t)
		victim.visit(w.link(id))
		switch {
		case name == "a refresh token":
			_, tokens := w.redeem(id, w.code(id))
			value, _ = tokens["refresh_token"].(string)
		case value == "psi-user":
			for _, c := range victim.client.Jar.Cookies(base) {
				if c.Name == "psi-user" {
					value = c.Value
				}
			}
		}
		victim = newBrowser(t)
		victim.client.Jar.SetCookies(base, []*http.Cookie{{Name: "psi-browser", Value: value, Path: "/"}})
		if to := victim.step(http.MethodGet, attack.String(), nil); to != nil {
			t.Errorf("%s as the cookie: sent to %v", name, to)
		}
		victim.step(http.MethodGet, w.link(id), nil)
		if to := victim.step(http.MethodPost, w.url+"/consent", url.Values{"token": {victim.form()}, "answer": {"allow"}}); to == nil {
			t.Errorf("%s as the cookie: it is not replaced, status %d", name, victim.status)
		}
	}
}

// Everything that a browser shows or follows cannot be framed, cached, sniffed or scripted,
// and no other site learns from where the user came.
func TestHeadersOfPages(t *testing.T) {
	w, b := newWorld(t), newBrowser(t)
	id := w.register("app", appURI)
	b.client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil || !strings.HasPrefix(r.URL.String(), w.url) {
			return res, err
		}
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
			"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'",
		} {
			if got := res.Header.Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("%s %s: %s is %q", r.Method, r.URL.Path, name, got)
			}
		}
		if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusSeeOther && got != "text/html; charset=utf-8" {
			t.Errorf("%s %s: the type is %q", r.Method, r.URL.Path, got)
		}
		return res, err
	})
	if b.visit(w.link(id)).Get("code") == "" {
		t.Error("no code")
	}
	for _, link := range []string{w.link("x"), w.link(id, "code_challenge", ""), w.url + "/callback"} {
		b.step(http.MethodGet, link, nil)
	}
	b.step(http.MethodPost, w.url+"/consent", url.Values{})
}

// The user who last agreed here is remembered in a cookie that scripts cannot read.
func TestUserCookie(t *testing.T) {
	w := newWorld(t)
	id := w.register("app", appURI)
	b := newBrowser(t)
	callback := w.toCallback(b, w.link(id))
	req, _ := http.NewRequest(http.MethodGet, callback.String(), nil)
	res, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	for _, c := range res.Cookies() {
		if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.MaxAge != 90*24*3600 || c.Path != "/" || c.Domain != "" || strings.Contains(c.Value, "ada") {
			t.Errorf("%v", c)
		}
	}
	if len(res.Cookies()) != 1 {
		t.Errorf("%v", res.Cookies())
	}
}

// A template of the owner's that fails shows nothing of what it has begun.
func TestFailingConsentPage(t *testing.T) {
	w := newWorld(t, func(o *authserver.Options) {
		o.Consent = template.Must(template.New("").Parse(`begun {{.Name}} {{.NoSuchField}}`))
	})
	b := newBrowser(t)
	b.step(http.MethodGet, w.link(w.register("app", appURI)), nil)
	if b.status != http.StatusInternalServerError || strings.Contains(b.page, "begun") || !strings.Contains(b.page, "cannot be shown") || !strings.Contains(w.logs.String(), "NoSuchField") {
		t.Errorf("status %d, page %q, log %q", b.status, b.page, w.logs)
	}
}

// The owner's page says what ours says.
func TestOwnConsentPage(t *testing.T) {
	w := newWorld(t, func(o *authserver.Options) {
		o.Consent = template.Must(template.New("").Parse(`{{.Name}}|{{.Host}}|{{.Place}}|{{.Local}}|{{.Resource}}|{{range .Scopes}}{{.}},{{end}}|{{.Action}}|<input name="token" value="{{.Token}}">`))
	})
	for redirect, place := range map[string]string{appURI: "app.example", "http://[::1]/cb": "a program on this computer", "com.example.app:/cb": "the program that opens com.example.app: links"} {
		b := newBrowser(t)
		b.step(http.MethodGet, w.link(w.register("App", redirect), "redirect_uri", redirect, "scope", "write unknown read write"), nil)
		local := map[bool]string{true: "false", false: "true"}[redirect == appURI]
		if want := "App||" + place + "|" + local + "|" + w.url + "/mcp|write,read,|/consent|"; !strings.HasPrefix(b.page, want) || b.form() == "" {
			t.Errorf("got  %s\nwant %s", b.page, want)
		}
	}
	id := "https://client.example:8443/app.json"
	w.document(func() map[string]any {
		return map[string]any{"client_id": id, "client_name": "App", "redirect_uris": []string{appURI}}
	})
	b := newBrowser(t)
	if b.step(http.MethodGet, w.link(id), nil); !strings.HasPrefix(b.page, "App|client.example:8443|") {
		t.Error(b.page)
	}
}

// A name cannot be mistaken for a text of the page.
func TestNameThatSpeaks(t *testing.T) {
	w, b := newWorld(t), newBrowser(t)
	b.step(http.MethodGet, w.link(w.register("App”. It was verified. <b>“", appURI)), nil)
	if !strings.Contains(b.page, "calls itself <bdi>App”. It was verified. &lt;b&gt;“</bdi>. Nobody has verified this.") {
		t.Error(b.page)
	}
}

// An answer is a form, posted once it was read, from a page of this origin.
func TestWrongAnswers(t *testing.T) {
	w, b := newWorld(t), newBrowser(t)
	id := w.register("app", appURI)
	b.step(http.MethodGet, w.link(id), nil)
	base, _ := url.Parse(w.url)
	good := url.Values{"token": {b.form()}, "answer": {"allow"}}.Encode()
	send := func(body string, change func(*http.Request)) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, w.url+"/consent", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		for _, c := range b.client.Jar.Cookies(base) {
			r.AddCookie(c)
		}
		if change != nil {
			change(r)
		}
		rec := httptest.NewRecorder()
		w.replicas[0].ServeHTTP(rec, r)
		return rec
	}
	for name, c := range map[string]struct {
		body   string
		change func(*http.Request)
		status int
	}{
		"another type":     {good, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, http.StatusForbidden},
		"another origin":   {good, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, http.StatusForbidden},
		"another site":     {good, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"a null origin":    {good, func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden},
		"no cookie":        {good, func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusForbidden},
		"two answers":      {good + "&answer=deny", nil, http.StatusForbidden},
		"too long":         {good + "&x=" + strings.Repeat("x", 32<<10), nil, http.StatusForbidden},
		"malformed":        {good + "&%zz", nil, http.StatusForbidden},
		"this page's":      {good, func(r *http.Request) { r.Header.Set("Origin", w.url); r.Header.Set("Sec-Fetch-Site", "same-origin") }, http.StatusSeeOther},
		"another answer":   {strings.Replace(good, "allow", "Allow", 1), nil, http.StatusSeeOther},
		"no answer at all": {strings.Replace(good, "allow", "", 1), nil, http.StatusSeeOther},
	} {
		rec := send(c.body, c.change)
		to, _ := rec.Result().Location()
		if rec.Code != c.status || c.status != http.StatusSeeOther && to != nil {
			t.Errorf("%s: status %d, sent to %v", name, rec.Code, to)
		}
		if denied := to != nil && to.Query().Get("error") == "access_denied"; denied != strings.Contains(name, "answer") && c.status == http.StatusSeeOther {
			t.Errorf("%s: sent to %v", name, to)
		}
	}
}
