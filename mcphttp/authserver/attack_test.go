// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp/auth/authtest"
	"github.com/go-psi/psi/mcphttp/authserver"
)

// An attacker consents in the own browser, and sends the link to the provider to a victim:
// the login ends nowhere else than where it began (CVE-2026-27124 of another server).
func TestCallbackInAnotherBrowser(t *testing.T) {
	w := newWorld(t)
	attacker, victim := newBrowser(t), newBrowser(t)
	id := w.register("app", appURI)
	attacker.step(http.MethodGet, w.link(id), nil)
	toProvider := attacker.step(http.MethodPost, w.url+"/consent", url.Values{"token": {attacker.form()}, "answer": {"allow"}})
	for name, b := range map[string]*browser{"without cookies": victim, "with its own login": func() *browser { b := newBrowser(t); b.step(http.MethodGet, w.link(id), nil); return b }()} {
		if back := b.visit(toProvider.String()); back != nil || b.status/100 != 4 {
			t.Errorf("%s: sent to the client with %v, status %d", name, back, b.status)
		}
	}
	// The victim has used the link up, so it does not help the attacker either.
	if back := attacker.visit(toProvider.String()); back != nil {
		t.Errorf("the attacker is sent to the client with %v", back)
	}
}

// A victim who opens an attacker's link sees who asks, and is sent nowhere before agreeing.
func TestCapturedLink(t *testing.T) {
	w, victim := newWorld(t), newBrowser(t)
	id := w.register("Trusted App", "https://app.example/cb")
	if next := victim.step(http.MethodGet, w.link(id), nil); next != nil || !strings.Contains(victim.page, "app.example") || !strings.Contains(victim.page, "Nobody has verified this") {
		t.Errorf("redirect to %v, page %s", next, victim.page)
	}
	victim.answer = "deny"
	if back := victim.visit(w.link(id)); back.Get("error") != "access_denied" || back.Get("code") != "" {
		t.Errorf("%v", back)
	}
}

// An answer counts only from the page that asked, in the browser that was asked.
func TestForgedConsent(t *testing.T) {
	w, attacker, victim := newWorld(t), newBrowser(t), newBrowser(t)
	id := w.register("app", appURI)
	attacker.step(http.MethodGet, w.link(id), nil)
	victim.step(http.MethodGet, w.link(id), nil)
	for name, token := range map[string]string{"another browser's": attacker.form(), "none": "", "changed": victim.form() + "A"} {
		if next := victim.step(http.MethodPost, w.url+"/consent", url.Values{"token": {token}, "answer": {"allow"}}); next != nil || victim.status != http.StatusForbidden {
			t.Errorf("%s: %v, status %d", name, next, victim.status)
		}
	}
	victim.step(http.MethodGet, w.link(id), nil)
	req, _ := http.NewRequest(http.MethodPost, w.url+"/consent", strings.NewReader(url.Values{"token": {victim.form()}, "answer": {"allow"}}.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-site") // a page of a sibling domain
	res, err := victim.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("from a sibling domain: status %d", res.StatusCode)
	}
}

// Until the redirect URI is known to be the client's, every error is a page.
func TestNoOpenRedirect(t *testing.T) {
	w := newWorld(t)
	id := w.register("app", appURI)
	for _, redirect := range []string{
		"https://evil.example/cb", "https://app.example/cb/", "https://app.example/cb?x=1", "https://app.example/cb#x", "https://app.example:444/cb",
		"https://user@app.example/cb", "https://app.example@evil.example/cb", `https://evil.example\@app.example/cb`, "https://app.example./cb", "HTTPS://app.example/cb",
		"https://APP.example/cb", "https://app.example/%63b", "https://app.example/x/../cb", "https://аpp.example/cb", "http://app.example/cb", "//app.example/cb",
		"javascript:alert(1)", "data:text/html,x", "https://app.example/cb\r\nSet-Cookie: x=y", "",
	} {
		if redirect == "" {
			continue
		}
		for name, link := range map[string]string{
			"plain": w.link(id, "redirect_uri", redirect), "without PKCE": w.link(id, "redirect_uri", redirect, "code_challenge", ""),
			"unknown client": w.link("x", "redirect_uri", redirect), "wrong resource": w.link(id, "redirect_uri", redirect, "resource", "https://x.example"),
		} {
			b := newBrowser(t)
			if next := b.step(http.MethodGet, link, nil); next != nil || b.status/100 != 4 || strings.Contains(b.page, "evil") {
				t.Errorf("%s, %q: redirect to %v, status %d", name, redirect, next, b.status)
			}
		}
	}
	b := newBrowser(t)
	if next := b.step(http.MethodGet, w.link(id)+"&redirect_uri=https://evil.example", nil); next != nil || b.status/100 != 4 {
		t.Errorf("two redirect URIs: %v", next)
	}
}

// Redirect URIs that could lead elsewhere cannot be registered.
func TestRegisteredRedirects(t *testing.T) {
	w := newWorld(t)
	for uri, ok := range map[string]bool{
		"https://app.example/cb": true, "http://127.0.0.1/cb": true, "http://localhost:33418": true, "http://[::1]:1/cb": true, "com.example.app:/cb": true, "cursor://anysphere.cursor-mcp/cb": true,
		"http://app.example/cb": false, "http://127.0.0.1.evil.example/cb": false, "http://localhost.evil.example/": false, "http://127.0.0.1@evil.example/": false, "http://2130706433/": false,
		"https://u:p@app.example/": false, "https://app.example/#f": false, "https://app.example/#": false, "https://app.example\\@evil.example": false, "https://app.example./": false,
		"https://аpp.example/": false, "https://0x7f.1/": false, "https:app.example": false, "https:///cb": false, "javascript:alert(1)": false, "javascript://x.y/%0aalert(1)": false, "data:text/html,x": false,
		"file:///etc/passwd": false, "vbscript:x": false, "custom:/cb": false, "": false, "/cb": false, "https://" + strings.Repeat("a", 2000) + ".example/": false, "http://localhost:99999999/": false,
	} {
		status, answer := w.post("/register", map[string]any{"redirect_uris": []string{uri}})
		if (status == http.StatusCreated) != ok {
			t.Errorf("%q: %d %v", uri, status, answer)
		}
	}
}

// Only the port of a program on the user's machine may differ.
func TestLoopbackPort(t *testing.T) {
	w := newWorld(t)
	id := w.register("app", "http://127.0.0.1:1000/cb")
	for redirect, ok := range map[string]bool{
		"http://127.0.0.1:1000/cb": true, "http://127.0.0.1:2000/cb": true, "http://127.0.0.1/cb": true,
		"http://localhost:1000/cb": false, "http://127.0.0.2:1000/cb": false, "http://127.0.0.1:1000/cb2": false, "http://127.0.0.1:1000@evil.example/cb": false, "https://127.0.0.1:1000/cb": false,
	} {
		b := newBrowser(t)
		b.step(http.MethodGet, w.link(id, "redirect_uri", redirect), nil)
		if (b.form() != "") != ok {
			t.Errorf("%q: status %d", redirect, b.status)
		}
	}
}

// Whatever else is wrong is told to the client, with its state and our issuer. But no request
// sends a user from here to another origin before the user has agreed to anything: everyone
// can register a client there.
func TestErrorsAtTheClient(t *testing.T) {
	w := newWorld(t)
	const editor = "cursor://anysphere.cursor-deeplink/mcp/install?name=x"
	id := w.register("app", appURI, "http://127.0.0.1/cb", editor)
	for name, c := range map[string]struct{ link, code string }{
		"no PKCE":          {w.link(id, "code_challenge", ""), "invalid_request"},
		"plain PKCE":       {w.link(id, "code_challenge_method", "plain", "code_challenge", verifier), "invalid_request"},
		"no method":        {w.link(id, "code_challenge_method", ""), "invalid_request"},
		"another resource": {w.link(id, "resource", "https://other.example/mcp"), "invalid_target"},
		"two resources":    {w.link(id) + "&resource=https://other.example/mcp", "invalid_target"},
		"implicit":         {w.link(id, "response_type", "token"), "unsupported_response_type"},
		"a fragment":       {w.link(id, "response_mode", "fragment"), "invalid_request"},
		"two states":       {w.link(id) + "&state=x", "invalid_request"},
		"a request object": {w.link(id, "request", "x"), "request_not_supported"},
		"silent":           {w.link(id, "prompt", "none"), "interaction_required"},
	} {
		b := newBrowser(t)
		if next := b.step(http.MethodGet, c.link, nil); next != nil || b.status != http.StatusBadRequest || !strings.Contains(b.page, "<strong>app.example</strong>") {
			t.Errorf("%s: redirect to %v, status %d, page %s", name, next, b.status, b.page)
		}
		// The user may have told the browser to open such links from this origin without asking.
		if next := b.step(http.MethodGet, strings.Replace(c.link, url.QueryEscape(appURI), url.QueryEscape(editor), 1), nil); next != nil || b.back() == nil || b.back().Scheme != "cursor" || !strings.Contains(b.page, "the program that opens cursor: links") {
			t.Errorf("%s: redirect to %v, a link to %v", name, next, b.back())
		}
		b.step(http.MethodGet, c.link, nil)
		for _, to := range []*url.URL{b.back(), b.step(http.MethodGet, strings.Replace(c.link, url.QueryEscape(appURI), url.QueryEscape("http://127.0.0.1:7/cb"), 1), nil)} {
			if to == nil {
				t.Fatalf("%s: no way back", name)
			}
			back := to.Query()
			if back.Get("error") != c.code || back.Get("iss") != w.url || back.Get("state") != "its-state" || back.Get("error_description") == "" || back.Get("code") != "" {
				t.Errorf("%s: %v, want %s", name, back, c.code)
			}
		}
	}
}

// A code is for one client, one redirect URI, one verifier and one use.
func TestStolenCode(t *testing.T) {
	w := newWorld(t)
	id, other := w.register("app", appURI), w.register("other", appURI)
	for name, changes := range map[string][]string{
		"another client": {"client_id", other}, "another redirect URI": {"redirect_uri", "https://app.example/other"}, "another verifier": {"code_verifier", verifier + "x"},
		"no verifier": {"code_verifier", ""}, "the challenge": {"code_verifier", challenge()}, "another resource": {"resource", "https://other.example"}, "a changed code": {"code", "x"}, "no client": {"client_id", ""},
	} {
		code := w.code(id)
		if status, answer := w.redeem(id, code, changes...); status/100 != 4 || answer["access_token"] != nil {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
}

// A code that comes twice was stolen: what it was exchanged for ends, too.
func TestReplayedCode(t *testing.T) {
	w := newWorld(t)
	id := w.register("app", appURI)
	code := w.code(id)
	_, tokens := w.redeem(id, code)
	if status, answer := w.redeem(id, code); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
		t.Errorf("again: %d %v", status, answer)
	}
	if status, _ := w.refresh(id, tokens); status != http.StatusBadRequest {
		t.Errorf("refresh after the replay: status %d", status)
	}
}

// At the same time, at two replicas, one of many gets the tokens.
func TestConcurrentReplay(t *testing.T) {
	w := newWorld(t)
	id := w.register("app", appURI)
	code := w.code(id)
	var wg sync.WaitGroup
	var n atomic.Int64
	for range 8 {
		wg.Go(func() {
			if status, _ := w.redeem(id, code); status == http.StatusOK {
				n.Add(1)
			}
		})
	}
	wg.Wait()
	if n.Load() > 1 {
		t.Errorf("a code was exchanged %d times", n.Load())
	}
}

// A refresh token that comes twice was stolen, by the first or by the second: both lose.
func TestReplayedRefreshToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newQuietWorld(t)
		id := w.register("app", appURI)
		_, first := w.redeem(id, w.code(id))
		status, second := w.refresh(id, first)
		if status != http.StatusOK || w.status(second["access_token"]) == http.StatusUnauthorized {
			t.Fatalf("status %d", status)
		}
		<-time.After(30 * time.Second)
		if status, _ := w.refresh(id, first); status != http.StatusBadRequest {
			t.Errorf("replayed: status %d", status)
		}
		if status, _ := w.refresh(id, second); status != http.StatusBadRequest {
			t.Errorf("after the replay: status %d", status)
		}
	})
}

// An answer that was lost can be asked for again for a moment, and calls that refresh together
// all go on. But there is one successor: a thief and a victim who both have it do not go on
// side by side.
func TestLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newQuietWorld(t)
		id := w.register("app", appURI)
		_, first := w.redeem(id, w.code(id))
		var successors [8]map[string]any
		var wg sync.WaitGroup
		for i := range successors {
			wg.Go(func() {
				status, tokens := w.refresh(id, first)
				if successors[i] = tokens; status != http.StatusOK {
					t.Errorf("status %d %v", status, tokens)
				}
			})
		}
		wg.Wait()
		<-time.After(30*time.Second - 1)
		status, late := w.refresh(id, first)
		if status != http.StatusOK {
			t.Fatalf("status %d %v", status, late)
		}
		status, next := w.refresh(id, successors[0])
		if status != http.StatusOK {
			t.Fatalf("status %d %v", status, next)
		}
		<-time.After(30 * time.Second)
		if status, _ := w.refresh(id, late); status != http.StatusBadRequest {
			t.Errorf("the other one's successor: status %d", status)
		}
		if status, _ := w.refresh(id, next); status != http.StatusBadRequest {
			t.Errorf("what came after: status %d", status)
		}
	})
}

// Calls of a client that notice one after the other that their token has expired refresh one
// after the other, and the last of them may send a token that is older than the last: for a
// moment after its exchange, it leads to the last one, too. Not for another client.
func TestOlderRefreshToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newQuietWorld(t)
		id := w.register("app", appURI)
		_, first := w.redeem(id, w.code(id))
		next := func(tokens map[string]any) map[string]any {
			t.Helper()
			status, answer := w.refresh(id, tokens)
			if status != http.StatusOK {
				t.Fatalf("status %d %v", status, answer)
			}
			return answer
		}
		second := next(first)
		<-time.After(20 * time.Second)
		third := next(second)
		late := next(first) // the third once more
		if status, _ := w.refresh(w.register("other", appURI), first); status != http.StatusBadRequest {
			t.Errorf("another client: status %d", status)
		}
		<-time.After(10 * time.Second)
		fourth := next(late)
		_ = next(third) // the fourth once more
		if status, _ := w.refresh(id, first); status != http.StatusBadRequest {
			t.Errorf("the first, 30 seconds after its exchange: status %d", status)
		}
		if status, _ := w.refresh(id, fourth); status != http.StatusBadRequest {
			t.Errorf("after the replay: status %d", status)
		}
	})
}

// However fast a client refreshes, only its last eight tokens are known. One of them can come as
// often as it likes, and leads to the same one.
func TestFastRefreshes(t *testing.T) {
	for n, want := range map[int]int{8: http.StatusOK, 9: http.StatusBadRequest} {
		w := newWorld(t)
		id := w.register("app", appURI)
		_, first := w.redeem(id, w.code(id))
		last := first
		for range 2 * n {
			_, last = w.refresh(id, first)
		}
		for range n - 1 {
			_, last = w.refresh(id, last)
		}
		if status, _ := w.refresh(id, first); status != want {
			t.Errorf("the first of %d: status %d, want %d", n, status, want)
		}
	}
}

// Another client's refresh token, or one for more than was granted, is refused.
func TestWrongRefresh(t *testing.T) {
	w := newWorld(t)
	id := w.register("app", appURI)
	_, tokens := w.redeem(id, w.code(id))
	if status, _ := w.refresh(w.register("other", appURI), tokens); status != http.StatusBadRequest {
		t.Errorf("another client: status %d", status)
	}
	if status, answer := w.post("/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens["refresh_token"].(string)}, "client_id": {id}, "scope": {"write"}}); answer["error"] != "invalid_scope" {
		t.Errorf("more scopes: %d %v", status, answer)
	}
	for _, text := range []string{tokens["access_token"].(string), "x", ""} {
		if status, _ := w.post("/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {text}, "client_id": {id}}); status != http.StatusBadRequest {
			t.Errorf("%.10q: status %d", text, status)
		}
	}
}

// Tokens are for one resource: servers may share keys.
func TestAnotherAudience(t *testing.T) {
	a, b := newWorld(t), newWorld(t)
	id := a.register("app", appURI)
	_, tokens := a.redeem(id, a.code(id))
	if status := b.status(tokens["access_token"]); status != http.StatusUnauthorized {
		t.Errorf("access token: status %d", status)
	}
	if status, _ := b.refresh(id, tokens); status/100 != 4 {
		t.Errorf("refresh token: status %d", status)
	}
	if status := a.status(tokens["refresh_token"]); status != http.StatusUnauthorized {
		t.Errorf("refresh token as access token: status %d", status)
	}
}

// An ID token of another login, or for another client, logs nobody in.
func TestInjectedIdentity(t *testing.T) {
	for name, change := range map[string]func(authtest.Claims){
		"nonce": func(c authtest.Claims) { c["nonce"] = "x" }, "no nonce": func(c authtest.Claims) { c["nonce"] = nil }, "audience": func(c authtest.Claims) { c["aud"] = "other" },
		"azp": func(c authtest.Claims) { c["azp"] = "other" }, "issuer": func(c authtest.Claims) { c["iss"] = "https://other.example" }, "expired": func(c authtest.Claims) { c["exp"] = 1 }, "no subject": func(c authtest.Claims) { c["sub"] = nil },
	} {
		w := newWorld(t)
		w.idp.change = change
		back := newBrowser(t).visit(w.link(w.register("app", appURI)))
		if back.Get("error") != "access_denied" || back.Get("code") != "" {
			t.Errorf("%s: %v", name, back)
		}
	}
}

// Another issuer's answer, an unknown state and a state used before are pages.
func TestMixUp(t *testing.T) {
	w, b := newWorld(t), newBrowser(t)
	b.step(http.MethodGet, w.link(w.register("app", appURI)), nil)
	back := b.step(http.MethodPost, w.url+"/consent", url.Values{"token": {b.form()}, "answer": {"allow"}})
	callback := b.step(http.MethodGet, back.String(), nil)
	for _, link := range []string{w.url + "/callback?code=x&state=y", callback.String() + "&iss=https://evil.example", callback.String()} {
		if next := b.step(http.MethodGet, link, nil); next != nil || b.status/100 != 4 {
			t.Errorf("%s: redirect to %v, status %d", link, next, b.status)
		}
	}
}

// A metadata document that changes after consent gains nothing.
func TestChangedDocument(t *testing.T) {
	w, b := newWorld(t), newBrowser(t)
	id, redirect := "https://client.example/app.json", appURI
	w.document(func() map[string]any { return map[string]any{"client_id": id, "redirect_uris": []string{redirect}} })
	code := b.visit(w.link(id)).Get("code")
	redirect = "https://app.example/stolen"
	if status, _ := w.redeem(id, code, "redirect_uri", redirect); status != http.StatusBadRequest {
		t.Errorf("status %d", status)
	}
	if b.visit(w.link(id)) != nil || b.status != http.StatusBadRequest {
		t.Errorf("the old redirect URI: status %d", b.status)
	}
	if b.visit(w.link(id, "redirect_uri", redirect)); b.asked != 2 {
		t.Errorf("asked %d times, want again for another redirect URI", b.asked)
	}
}

// A client ID makes this server request nothing inside, whatever it is spelled like.
func TestDocumentAddresses(t *testing.T) {
	w := newWorld(t, func(o *authserver.Options) { o.Egress = nil })
	inside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request came in") }))
	defer inside.Close()
	port := inside.URL[strings.LastIndex(inside.URL, ":"):]
	for _, id := range []string{
		inside.URL + "/a", "https://localhost" + port + "/a", "https://127.1" + port + "/a", "https://2130706433" + port + "/a", "https://[::ffff:127.0.0.1]" + port + "/a", "https://x@127.0.0.1" + port + "/a",
		"https://0x7f.0.0.1" + port + "/a", "https://169.254.169.254/a", "https://[::1]" + port + "/a", "https://client.example/a/../b", "http://127.0.0.1" + port + "/a", "file:///etc/passwd", "https://client.example/",
	} {
		b := newBrowser(t)
		if next := b.step(http.MethodGet, w.link(id), nil); next != nil || b.status != http.StatusBadRequest || strings.Contains(b.page, "127.") {
			t.Errorf("%s: %v, status %d", id, next, b.status)
		}
	}
}

// A document that redirects, is too long or is of another client is none.
func TestWrongDocuments(t *testing.T) {
	id := "https://client.example/app.json"
	for name, serve := range map[string]func(http.ResponseWriter){
		"redirect": func(w http.ResponseWriter) {
			w.Header().Set("Location", "https://client.example/b")
			w.WriteHeader(http.StatusFound)
		},
		"too long": func(w http.ResponseWriter) { writeJSON(w, strings.Repeat("x", 64<<10)) },
		"another client": func(w http.ResponseWriter) {
			writeJSON(w, map[string]any{"client_id": id + "x", "redirect_uris": []string{appURI}})
		},
		"a page": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(`{"client_id":"` + id + `","redirect_uris":["` + appURI + `"]}`))
		},
	} {
		w := newWorld(t)
		w.egress = func(r *http.Request) (*http.Response, error) {
			rec := httptest.NewRecorder()
			serve(rec)
			res := rec.Result()
			res.Request = r
			return res, nil
		}
		b := newBrowser(t)
		if next := b.step(http.MethodGet, w.link(id), nil); next != nil || b.status != http.StatusBadRequest {
			t.Errorf("%s: %v, status %d", name, next, b.status)
		}
	}
}

// On https, no other domain can set the cookies; if one appears twice, neither is believed.
func TestCookies(t *testing.T) {
	front, err := authserver.New("https://mcp.example.com/mcp", &authserver.Options{Provider: authserver.GitHub("id", "secret")})
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodPost, "/register", strings.NewReader(`{"redirect_uris":["`+appURI+`"]}`))
	front.ServeHTTP(rec, req)
	_, id, _ := strings.Cut(rec.Body.String(), `"client_id":"`)
	id, _, _ = strings.Cut(id, `"`)
	link := (&world{url: "https://mcp.example.com"}).link(id)
	page := httptest.NewRecorder()
	front.ServeHTTP(page, httptest.NewRequest(http.MethodGet, link, nil))
	for _, part := range []string{"__Host-psi-browser=", "Path=/", "HttpOnly", "Secure", "SameSite=Lax"} {
		if got := page.Header().Get("Set-Cookie"); !strings.Contains(got, part) || strings.Contains(got, "Domain") {
			t.Errorf("the cookie %q lacks %s", got, part)
		}
	}
	cookie := page.Result().Cookies()[0]
	form := url.Values{"token": {tokenField.FindStringSubmatch(page.Body.String())[1]}, "answer": {"allow"}}.Encode()
	for n, want := range map[int]int{1: http.StatusSeeOther, 2: http.StatusForbidden} {
		req := httptest.NewRequest(http.MethodPost, "/consent", strings.NewReader(form))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for range n {
			req.AddCookie(cookie)
		}
		rec := httptest.NewRecorder()
		if front.ServeHTTP(rec, req); rec.Code != want {
			t.Errorf("%d cookies of the name: status %d, want %d", n, rec.Code, want)
		}
	}
	for name, want := range map[string]string{"X-Frame-Options": "DENY", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
		if got := page.Header().Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if csp := page.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "default-src 'none'") {
		t.Errorf("%q", csp)
	}
}

// What a client says of itself changes no page and no log.
func TestInjectedName(t *testing.T) {
	w, b := newWorld(t), newBrowser(t)
	b.step(http.MethodGet, w.link(w.register("<script>alert(1)</script>\n\u202eevil\x1b[31m"+strings.Repeat("x", 500), appURI)), nil)
	if b.form() == "" || strings.ContainsAny(b.page, "\u202e\x1b") || strings.Contains(b.page, "<script") || strings.Contains(b.page, strings.Repeat("x", 101)) {
		t.Error(b.page)
	}
	b.step(http.MethodGet, w.link("x\ny\x1b[31m"), nil)
	if strings.Contains(w.logs.String(), "\x1b") {
		t.Error(w.logs.String())
	}
}

// A flood of registrations leaves nothing behind, and is slowed down.
func TestRegistrationFlood(t *testing.T) {
	values := &counting{Values: store.NewMemory(nil)}
	w := newWorld(t, func(o *authserver.Options) { o.Values = values })
	limited := false
	for range 1000 {
		status, _ := w.post("/register", map[string]any{"redirect_uris": []string{appURI}})
		limited = limited || status == http.StatusTooManyRequests
	}
	if !limited || values.puts.Load() != 0 {
		t.Errorf("limited: %v, %d values stored", limited, values.puts.Load())
	}
}

// The store and the log learn no secret.
func TestSecrets(t *testing.T) {
	values := &counting{Values: store.NewMemory(nil)}
	w := newWorld(t, func(o *authserver.Options) { o.Values = values })
	id := w.register("app", appURI)
	code := w.code(id)
	_, tokens := w.redeem(id, code)
	for _, secret := range []string{code, tokens["access_token"].(string), tokens["refresh_token"].(string), "upstream", "ada"} {
		if strings.Contains(values.String(), secret) || strings.Contains(w.logs.String(), secret) {
			t.Errorf("%.10q… is readable", secret)
		}
	}
}
