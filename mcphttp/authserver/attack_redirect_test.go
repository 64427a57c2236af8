// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/authserver"
)

// More spellings of redirect URIs: what a URL parser and a browser may read differently
// cannot be registered, and what merely looks unusual can.
func TestSpellingOfRedirects(t *testing.T) {
	w := newWorld(t)
	for uri, ok := range map[string]bool{
		"https://app.example/~ada": true, "https://app.example:8443/cb": true, "https://app.example/cb?x=1&y=%20": true, "https://xn--bcher-kva.example/cb": true, "vscode://ext/cb": true,
		"http://127.0.0.1?x=1": true, "http://localhost:1/a?b=c": true,
		"https://app.example/c b": false, "https://app.example/\tcb": false, "https://app.example/\x7f": false, "https://app.example/\x00": false, " https://app.example/cb": false,
		"https://app.example%2f@evil.example/": false, "https://app.example%00.evil.example/": false, "https://app。example/": false, "https://app.example\u2025/": false, "https://ＡＰＰ.example/": false,
		"https:/\\evil.example/": false, "https:\\\\evil.example": false, "https:/evil.example": false, "https:////evil.example": false, "https://@evil.example/": false, "https://:443/": false,
		"https://app.example/#": false, "https://app.example/%": false, "https://app.example/cb<x>": false, "https://app.example/{x}": false, "https://app.example/`x`": false, "https://app.example/x|y": false, "https://app.example/^": false,
		"https://127.0.0.1/cb": false, "https://[::1%25en0]/cb": false, "https://1.2.3": false, "https://0x7f000001/": false,
		"http://127.0.0.1:0/cb": false, "http://127.0.0.1:080/cb": false, "http://127.0.0.1:/cb": false, "http://127.0.0.1:1.evil.example/": false, "http://127.0.0.1;evil.example/": false, "http://[::1].evil.example/": false,
		"http://[::ffff:127.0.0.1]/cb": false, "http://LOCALHOST/cb": false, "http://localhost./cb": false, "HTTP://localhost/cb": false,
		"Com.Example:/cb": false, "com.example:cb": false, "com.example://u@h/cb": false, "vscode-evil://x/cb": false, "blob:https://app.example/x": false, "about:blank": false, "ftp://app.example/": false, "ws://app.example/": false,
		// A client that reads the first of two parameters must find ours: with the issuer of an attacker, it would send its code there.
		"https://app.example/cb?iss=https://evil.example": false, "http://127.0.0.1/cb?x=1&code=y": false, "com.example:/cb?state=x": false, "https://app.example/cb?error=x": false, "https://app.example/cb?%69ss=x": false, "https://app.example/cb?x;iss=y": false, "https://app.example/cb?iss": false, "https://app.example/cb?ISS=x": false,
		"https://app.example/cb?issue=1&my_state=2": true,
		"view-source:https://app.example/":          false, "intent://app.example/#Intent;end": false, "filesystem:https://app.example/": false,
	} {
		status, answer := w.post("/register", map[string]any{"redirect_uris": []string{uri}})
		if (status == http.StatusCreated) != ok {
			t.Errorf("%q: %d %v", uri, status, answer)
		}
	}
}

// Parameters are added to the query that a redirect URI has.
func TestRedirectWithQuery(t *testing.T) {
	w, b := newWorld(t), newBrowser(t)
	uri := "http://127.0.0.1/cb?tenant=a%26b"
	back := b.visit(w.link(w.register("app", uri), "redirect_uri", uri))
	if back.Get("tenant") != "a&b" || back.Get("code") == "" || back.Get("state") != "its-state" || back.Get("iss") != w.url {
		t.Errorf("%v", back)
	}
}

// A client that names no redirect URI gets the one that it has registered, if there is one.
func TestNoRedirectURI(t *testing.T) {
	w := newWorld(t)
	for n, ok := range map[int]bool{1: true, 2: false} {
		b := newBrowser(t)
		id := w.register("app", []string{appURI, appURI + "/2"}[:n]...)
		if b.step(http.MethodGet, w.link(id, "redirect_uri", ""), nil); (b.form() != "") != ok {
			t.Errorf("%d redirect URIs: status %d", n, b.status)
		}
	}
}

// On each path that ends in an error, the browser goes to the client's redirect URI or
// nowhere, and the client gets no code and no word of the provider's.
func TestErrorPaths(t *testing.T) {
	w := newWorld(t, func(o *authserver.Options) {
		o.Identify = func(_ context.Context, claims map[string]any) (*mcp.Principal, error) {
			switch subject, _ := claims["sub"].(string); subject {
			case "eve":
				return nil, errors.New("secret reason")
			case "unreachable":
				return nil, fmt.Errorf("secret directory: %w", &net.DNSError{Err: "no such host"})
			case "nobody":
				return nil, nil
			case "nameless":
				return &mcp.Principal{}, nil
			case "wordy":
				return &mcp.Principal{Subject: subject, Claims: map[string]any{"x": strings.Repeat("x", 4<<10)}}, nil
			case "endless":
				return &mcp.Principal{Subject: strings.Repeat("x", 1<<10+1)}, nil
			case "strange":
				return &mcp.Principal{Subject: subject, Claims: map[string]any{"x": func() {}}}, nil
			default:
				return &mcp.Principal{Subject: subject}, nil
			}
		}
	})
	id := w.register("app", appURI)
	for _, user := range []string{"eve", "nobody", "nameless", "wordy", "strange", "endless"} {
		w.idp.login(user)
		back := newBrowser(t).visit(w.link(id))
		if back.Get("error") != "access_denied" || back.Get("error_description") != "the user may not log in" || back.Has("code") {
			t.Errorf("%s: %v", user, back)
		}
	}
	w.idp.login("unreachable") // whose client can try again later
	if back := newBrowser(t).visit(w.link(id)); back.Get("error") != "temporarily_unavailable" || strings.Contains(back.Encode(), "secret") || back.Has("code") {
		t.Errorf("%v", back)
	}
	w.idp.login("ada")
	for name, change := range map[string]func(url.Values){
		"the provider's error": func(q url.Values) {
			q.Del("code")
			q.Set("error", "secret")
			q.Set("error_description", "secret reason")
		},
		"neither code nor error": func(q url.Values) { q.Del("code") },
		"another code":           func(q url.Values) { q.Set("code", "x") },
	} {
		b := newBrowser(t)
		callback := w.toCallback(b, w.link(id))
		q := callback.Query()
		change(q)
		callback.RawQuery = q.Encode()
		to := b.step(http.MethodGet, callback.String(), nil)
		if to == nil || !strings.HasPrefix(to.String(), appURI+"?") || to.Query().Get("error") != "access_denied" || to.Query().Has("code") || strings.Contains(to.String(), "secret") {
			t.Errorf("%s: %v", name, to)
		}
	}
	for name, change := range map[string]func(url.Values){
		"no state": func(q url.Values) { q.Del("state") }, "two states": func(q url.Values) { q.Add("state", "x") }, "two codes": func(q url.Values) { q.Add("code", "x") },
		"another issuer": func(q url.Values) { q.Set("iss", "https://evil.example") }, "an empty issuer": func(q url.Values) { q.Set("iss", "") },
	} {
		b := newBrowser(t)
		callback := w.toCallback(b, w.link(id))
		q := callback.Query()
		change(q)
		callback.RawQuery = q.Encode()
		if to := b.step(http.MethodGet, callback.String(), nil); to != nil || b.status != http.StatusBadRequest || b.back() != nil {
			t.Errorf("%s: %v, status %d", name, to, b.status)
		}
	}
}

// toCallback goes on until the provider sends the browser back, and returns where.
func (w *world) toCallback(b *browser, link string) *url.URL {
	w.t.Helper()
	b.step(http.MethodGet, link, nil)
	to := b.step(http.MethodPost, w.url+"/consent", url.Values{"token": {b.form()}, "answer": {"allow"}})
	if to == nil {
		w.t.Fatalf("not sent to the provider: %d %s", b.status, b.page)
	}
	return b.step(http.MethodGet, to.String(), nil)
}

// What is wrong about a link before the client is known is a page without a way on.
func TestBrokenLinks(t *testing.T) {
	w := newWorld(t)
	id := w.register("app", appURI)
	for name, link := range map[string]string{
		"no client": w.link(id, "client_id", ""), "two clients": w.link(id) + "&client_id=x", "two redirect URIs": w.link(id) + "&redirect_uri=" + url.QueryEscape(appURI), "too long": w.link(id, "state", strings.Repeat("x", 9<<10)),
		"no query": w.link(id) + "&%zz", "semicolons": w.link(id) + ";x=y",
	} {
		b := newBrowser(t)
		if to := b.step(http.MethodGet, link, nil); to != nil || b.status != http.StatusBadRequest || b.back() != nil || b.form() != "" {
			t.Errorf("%s: %v, status %d", name, to, b.status)
		}
	}
	b := newBrowser(t)
	if b.step(http.MethodGet, w.link(id, "state", strings.Repeat("x", 2<<10)), nil); b.form() == "" {
		t.Errorf("a state of 2 KiB: status %d", b.status)
	}
	b.step(http.MethodGet, w.link(id, "state", strings.Repeat("x", 2<<10+1)), nil)
	if to := b.back(); to == nil || to.Query().Get("error") != "invalid_request" || to.Query().Has("state") {
		t.Errorf("a longer state: %v", to)
	}
	b.step(http.MethodGet, w.link(id, "state", "\xff"), nil)
	if to := b.back(); to == nil || to.Query().Get("error") != "invalid_request" || to.Query().Has("state") {
		t.Errorf("a state that is not UTF-8: status %d, %v", b.status, to)
	}
}

// A challenge and the thumbprint of a key are hashes, and nothing else.
func TestWrongHashes(t *testing.T) {
	w := newWorld(t)
	id := w.register("app", "http://127.0.0.1/cb")
	for _, name := range []string{"code_challenge", "dpop_jkt"} {
		for value, ok := range map[string]bool{challenge(): true, challenge()[:42]: false, challenge() + "A": false, challenge() + "=": false, strings.Repeat("!", 43): false, challenge()[:42] + "_": false, "\n" + challenge(): false} {
			b := newBrowser(t)
			to := b.step(http.MethodGet, w.link(id, "redirect_uri", "http://127.0.0.1/cb", name, value), nil)
			if (b.form() != "") != ok || !ok && to.Query().Get("error") != "invalid_request" {
				t.Errorf("%s %q: %v, status %d", name, value, to, b.status)
			}
		}
	}
}
