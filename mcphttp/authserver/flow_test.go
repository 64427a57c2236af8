// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/authserver"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// connect connects psi's own client, whose user has a browser.
func (w *world) connect(b *browser, opts *oauth.Options) (*mcp.Conn, *oauth.Transport) {
	w.t.Helper()
	opts.Base, opts.Egress = w.transport, w.transport
	opts.Grant = &oauth.AuthorizationCode{Redirector: oauth.NewRedirector("http://127.0.0.1:7/cb", func(_ context.Context, to string) (url.Values, error) {
		if back := b.visit(to); back != nil {
			return back, nil
		}
		return nil, errors.New(b.page)
	})}
	rt := oauth.NewTransport(w.url+"/mcp", opts)
	w.t.Cleanup(func() { _ = rt.Close() })
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(w.t.Context(), mcphttp.NewTransport(w.url+"/mcp", &mcphttp.TransportOptions{Client: &http.Client{Transport: rt}}))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	return conn, rt
}

// psi's client registers, logs in, steps up and logs out, with and without a key of its own.
func TestClient(t *testing.T) {
	for name, key := range map[string]*oauth.Key{"bearer": nil, "DPoP": {}} {
		t.Run(name, func(t *testing.T) {
			w, b := newWorld(t), newBrowser(t)
			conn, rt := w.connect(b, &oauth.Options{DPoP: key, Scopes: []string{"read"}})
			if got, err := mcp.Call[string](t.Context(), conn, "me", nil); got != "ada" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
			if got, err := mcp.Call[string](t.Context(), conn, "write", nil); got != "written" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
			if b.asked != 2 {
				t.Errorf("the user was asked %d times, want once for each scope", b.asked)
			}
			logins := b.logins
			if err := rt.Logout(t.Context()); err != nil {
				t.Error(err)
			}
			if got, err := mcp.Call[string](t.Context(), conn, "me", nil); got != "ada" || err != nil || b.logins != logins+1 {
				t.Errorf("after the logout: %q, %v, %d logins, want one more than %d", got, err, b.logins, logins)
			}
		})
	}
}

// psi's client refreshes its tokens without its user, with a key of its own or without, many calls
// at a time; and asks the user again when the grant has ended.
func TestClientRefreshes(t *testing.T) {
	for name, key := range map[string]*oauth.Key{"bearer": nil, "DPoP": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newQuietWorld(t)
				b := w.browser()
				conn, _ := w.connect(b, &oauth.Options{DPoP: key, Scopes: []string{"read"}})
				call := func() {
					t.Helper()
					var calls sync.WaitGroup
					for range 8 {
						calls.Go(func() {
							if got, err := mcp.Call[string](t.Context(), conn, "me", nil); got != "ada" || err != nil {
								t.Errorf("%q, %v", got, err)
							}
						})
					}
					calls.Wait()
				}
				for range 3 {
					<-time.After(7 * time.Minute)
					call()
				}
				if b.asked != 1 || b.logins != 1 {
					t.Errorf("the user was asked %d times, and logged in %d times", b.asked, b.logins)
				}
				<-time.After(31 * 24 * time.Hour)
				call()
				if b.logins != 2 {
					t.Errorf("after the grant has ended, the user logged in %d times", b.logins)
				}
			})
		})
	}
}

// A tool gets the provider's token, refreshed before it expires, and the client never does.
func TestTokenSource(t *testing.T) {
	w, b := newWorld(t), newBrowser(t)
	w.idp.lifetime = 1
	conn, _ := w.connect(b, &oauth.Options{})
	for range 3 {
		if got, err := mcp.Call[string](t.Context(), conn, "upstream", nil); err != nil || len(got) < 20 {
			t.Errorf("%q, %v", got, err)
		}
	}
	if w.idp.refreshes != 1 {
		t.Errorf("refreshed %d times, want once", w.idp.refreshes)
	}
}

// The provider's token is refreshed once, a minute before it expires, or after half of its time
// if that is short.
func TestTokenIsRefreshedEarly(t *testing.T) {
	for lifetime, fresh := range map[int]time.Duration{3600: 59 * time.Minute, 60: 30 * time.Second, 8: 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := newQuietWorld(t)
			w.idp.lifetime = lifetime
			conn, _ := w.connect(w.browser(), &oauth.Options{})
			use := func() string {
				t.Helper()
				got, err := mcp.Call[string](t.Context(), conn, "upstream", nil)
				if err != nil {
					t.Errorf("%d seconds: %v", lifetime, err)
				}
				return got
			}
			first := use()
			<-time.After(fresh - time.Second)
			if use() != first {
				t.Errorf("%d seconds: refreshed too early", lifetime)
			}
			<-time.After(time.Second)
			if use() == first || w.idp.refreshes != 1 {
				t.Errorf("%d seconds: not refreshed", lifetime)
			}
		})
	}
}

// A request that needs the provider's token while another one refreshes it waits for the new
// one. If that takes long, because a replica has died or the provider is slow, the old one is used
// until it expires.
func TestTokenWhileRefreshed(t *testing.T) {
	for name, c := range map[string]struct {
		age, slow, wait time.Duration
		old             bool
	}{
		"new":     {59 * time.Minute, 2 * time.Second, 2 * time.Second, false},
		"still":   {59 * time.Minute, 8 * time.Second, 3 * time.Second, true},
		"no more": {time.Hour - 6*time.Second, 9 * time.Second, 9 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newQuietWorld(t)
				conn, _ := w.connect(w.browser(), &oauth.Options{})
				use := func() string {
					got, err := mcp.Call[string](t.Context(), conn, "upstream", nil)
					if err != nil {
						t.Error(err)
					}
					return got
				}
				first := use()
				<-time.After(58 * time.Minute)
				use() // the client's own token is new
				<-time.After(c.age - 58*time.Minute)
				w.idp.slow = c.slow
				var other sync.WaitGroup
				other.Go(func() {
					if use() == first {
						t.Error("the one who refreshes gets the old token")
					}
				})
				synctest.Wait()
				begun := time.Now()
				if got, took := use(), time.Since(begun).Round(time.Second); (got == first) != c.old || took != c.wait {
					t.Errorf("the old token: %v, after %v", got == first, took)
				}
				other.Wait()
			})
		})
	}
}

// When the provider withdraws its grant, the client's ends with the next refresh. GitHub has an error
// of its own for it.
func TestWithdrawnByProvider(t *testing.T) {
	for end, status := range map[string]int{"invalid_grant": http.StatusBadRequest, "bad_refresh_token": http.StatusOK} {
		w := newWorld(t)
		w.idp.lifetime, w.idp.withdrawn, w.idp.end, w.idp.endStatus = 1, true, end, status
		id := w.register("app", appURI)
		_, tokens := w.redeem(id, w.code(id))
		if status, answer := w.refresh(id, tokens); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
			t.Errorf("%s: %d %v", end, status, answer)
		}
	}
}

// A user who has agreed is not asked again for the same, and is for anything else.
func TestRememberedConsent(t *testing.T) {
	w, b := newWorld(t), newBrowser(t)
	const other = "com.example.app:/cb"
	id := w.register("app", localURI, other)
	link := func(id string, changes ...string) string {
		return w.link(id, append([]string{"redirect_uri", localURI}, changes...)...)
	}
	for i, step := range []struct {
		link, user string
		asked      int
	}{
		{link(id), "ada", 1},
		{link(id), "ada", 1},
		{link(id, "scope", "write"), "ada", 2},
		{link(id, "scope", "read write"), "ada", 2},
		{link(id, "redirect_uri", other), "ada", 3},
		{link(id, "redirect_uri", other), "ada", 3},
		{link(w.register("app", localURI)), "ada", 4},
		{link(id), "bob", 5}, // who has not agreed, in the browser of one who has
		{link(id), "bob", 5},
	} {
		w.idp.login(step.user)
		if back := b.visit(step.link); back.Get("code") == "" || b.asked != step.asked {
			t.Errorf("step %d: %v, asked %d times, want %d", i, back, b.asked, step.asked)
		}
	}
}

// A program opens the browser, and no page of another site does: one that sends the user here, with
// the ID of a program that it has seen, does not get around the question.
func TestConsentAtTheRequestOfAPage(t *testing.T) {
	w, b := newWorld(t), newBrowser(t)
	link := w.link(w.register("app", localURI), "redirect_uri", localURI)
	site := ""
	b.client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/authorize" && site != "" {
			r.Header.Set("Sec-Fetch-Site", site)
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	b.visit(link)
	for _, c := range []struct {
		site  string
		asked int
	}{{"cross-site", 1}, {"same-site", 1}, {"same-origin", 1}, {"none", 0}, {"", 0}} {
		site = c.site
		before := b.asked
		if back := b.visit(link); back.Get("code") == "" || b.asked-before != c.asked {
			t.Errorf("%q: %v, asked %d times, want %d", c.site, back, b.asked-before, c.asked)
		}
	}
}

// Logins in two tabs go on side by side, each with its own page. A page that was left open for too
// long does not count, although the other tab has kept the browser's cookie alive.
func TestTabs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newQuietWorld(t)
		b := w.browser()
		var forms []string
		for range 3 {
			b.step(http.MethodGet, w.link(w.register("app", appURI)), nil)
			forms = append(forms, b.form())
			<-time.After(4 * time.Minute)
		}
		var callbacks []*url.URL
		for i, form := range forms {
			to := b.step(http.MethodPost, w.url+"/consent", url.Values{"token": {form}, "answer": {"allow"}})
			if i == 0 {
				if to != nil || b.status != http.StatusBadRequest || !strings.Contains(b.page, "too long") {
					t.Errorf("the first tab: %v, status %d %s", to, b.status, b.page)
				}
				continue
			}
			callbacks = append(callbacks, b.step(http.MethodGet, to.String(), nil))
		}
		for _, at := range []int{1, 0} {
			if to := b.step(http.MethodGet, callbacks[at].String(), nil); to == nil || !to.Query().Has("code") {
				t.Errorf("tab %d: %v, status %d", at+1, to, b.status)
			}
		}
	})
}

// A client with a metadata document needs no registration.
func TestDocument(t *testing.T) {
	w, b := newWorld(t), newBrowser(t)
	id := "https://client.example/app.json"
	doc := map[string]any{"client_id": id, "client_name": "App", "redirect_uris": []string{appURI}}
	w.document(func() map[string]any { return doc })
	back := b.visit(w.link(id))
	if status, answer := w.redeem(id, back.Get("code")); status != http.StatusOK || w.status(answer["access_token"]) == http.StatusUnauthorized {
		t.Errorf("%d %v", status, answer)
	}
}

// A user is asked each time about a client whose ID others know. A document's ID is known to everyone,
// the registration of a client at another host to all its users. So any program on the user's machine
// could ask for it, and an attacker's server that the client has been connected to could send the
// browser here in the client's name. If the client does not compare iss, it then gives the attacker's
// server the code (GHSA-6x8h-498w-gv8c of another server).
func TestConsentOfPublicClients(t *testing.T) {
	w, b := newWorld(t), newBrowser(t)
	id := "https://client.example/app.json"
	doc := map[string]any{"client_id": id, "client_name": "App", "redirect_uris": []string{appURI, "http://127.0.0.1/cb", "cursor://app/cb"}}
	w.document(func() map[string]any { return doc })
	hosted := w.register("App", appURI, localURI)
	for i, step := range []struct{ id, redirect string }{{id, appURI}, {id, "http://127.0.0.1:9/cb"}, {id, "cursor://app/cb"}, {hosted, appURI}} {
		for range 2 {
			before := b.asked
			if back := b.visit(w.link(step.id, "redirect_uri", step.redirect)); back.Get("code") == "" || b.asked != before+1 {
				t.Errorf("step %d: %v, asked %d times, want once", i, back, b.asked-before)
			}
			b.step(http.MethodGet, w.link(step.id, "redirect_uri", step.redirect), nil)
			if warned := strings.Contains(b.page, "Any program on this computer can claim to be it."); warned != (step.id == id && step.redirect != appURI) {
				t.Errorf("step %d: page %s", i, b.page)
			}
		}
	}
}

// A provider without ID tokens has user info.
func TestUserInfo(t *testing.T) {
	w := newWorld(t, func(o *authserver.Options) {
		p := authserver.GitHub("psi", "secret")
		base := o.Provider.Issuer
		p.AuthURL, p.TokenURL, p.UserInfoURL = base+"/auth", base+"/token", base+"/user"
		o.Provider = p
		o.Identify = func(_ context.Context, claims map[string]any) (*mcp.Principal, error) {
			return &mcp.Principal{Subject: "github:" + claims["sub"].(string), Scopes: []string{"read"}, Claims: map[string]any{"login": claims["login"]}}, nil
		}
	})
	conn, _ := w.connect(newBrowser(t), &oauth.Options{})
	if got, err := mcp.Call[string](t.Context(), conn, "me", nil); got != "github:4711" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Keys are replaced one replica after the other: each opens what the other has sealed.
func TestKeyRotation(t *testing.T) {
	before, after := bytes.Repeat([]byte("o"), 32), bytes.Repeat([]byte("n"), 32)
	keys := [][][]byte{{before, after}, {after, before}}
	w := newWorld(t, func(o *authserver.Options) { o.Keys, keys = keys[0], keys[1:] })
	id := w.register("app", appURI)
	_, tokens := w.redeem(id, w.code(id))
	for range 3 {
		var status int
		if status, tokens = w.refresh(id, tokens); status != http.StatusOK || w.status(tokens["access_token"]) == http.StatusUnauthorized {
			t.Errorf("status %d", status)
		}
	}
}

// Revoking any token of a grant ends it.
func TestRevoke(t *testing.T) {
	for _, name := range []string{"access_token", "refresh_token"} {
		w := newWorld(t)
		id := w.register("app", appURI)
		_, tokens := w.redeem(id, w.code(id))
		other := w.register("other", appURI)
		for client, want := range map[string]int{other: http.StatusOK, id: http.StatusBadRequest} {
			if client == id {
				continue
			}
			if status, _ := w.post("/revoke", url.Values{"token": {tokens[name].(string)}, "client_id": {client}}); status != http.StatusOK {
				t.Errorf("status %d", status)
			}
			var status int
			if status, tokens = w.refresh(id, tokens); status != want {
				t.Errorf("%s revoked by another client: refresh has status %d, want %d", name, status, want)
			}
		}
		_, _ = w.post("/revoke", url.Values{"token": {tokens[name].(string)}, "client_id": {id}})
		if status, answer := w.refresh(id, tokens); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
			t.Errorf("%s revoked: %d %v", name, status, answer)
		}
	}
}
