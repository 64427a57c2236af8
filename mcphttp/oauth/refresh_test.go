// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/callclock"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// refreshing returns a world whose tokens can be refreshed, and a transport with a token in
// use.
func refreshing(t *testing.T) (*world, *oauth.Transport) {
	w := newWorld(t)
	w.login.refresh = "r"
	rt := w.transport(nil)
	w.mustPost(rt, "", served)
	return w, rt
}

// If 50 concurrent requests find that their token has expired, one of them refreshes it;
// T66.
func TestOneRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, rt := refreshing(t)
		w.login.revoke()
		w.login.token = func(http.ResponseWriter, *http.Request) bool { <-time.After(time.Second); return false }
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				if got, err := post(t.Context(), rt, "", "hello"); err != nil || got != served {
					t.Errorf("%q, %v", got, err)
				}
			})
		}
		group.Wait()
		w.wantRefreshes(1)
		w.wantAuthorizations(1)
	})
}

// A refresh outlives its request, because its refresh token has been used; T66.
func TestRefreshOutlivesRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, rt := refreshing(t)
		w.login.revoke()
		w.login.token = func(http.ResponseWriter, *http.Request) bool { <-time.After(10 * time.Second); return false }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := post(ctx, rt, "", "hello"); err == nil {
			t.Fatal("the first request did not end")
		}
		w.mustPost(rt, "", served)
		w.wantRefreshes(1)
	})
}

// A refresh also outlives its transport: the next transport gets its token.
func TestRefreshOutlivesTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, rt := refreshing(t)
		w.login.revoke()
		w.login.token = func(http.ResponseWriter, *http.Request) bool { <-time.After(10 * time.Second); return false }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := post(ctx, rt, "", "hello"); err == nil {
			t.Fatal("the first request did not end")
		}
		rt.Close()
		w.mustPost(w.transport(nil), "", served)
		w.wantRefreshes(1)
		w.wantAuthorizations(1)
	})
}

// A token is refreshed before it expires, and the new refresh token is used for the next
// refresh.
func TestRefreshInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, rt := refreshing(t)
		for range 3 {
			<-time.After(time.Hour)
			w.mustPost(rt, "", served)
		}
		grants := w.login.granted("refresh_token")
		if len(grants) != 3 || grants[2].form.Get("refresh_token") != "r+++" || grants[2].form.Get("resource") != serverURL || grants[2].form.Get("client_id") != "client-1" {
			t.Errorf("refreshes: %v", grants)
		}
		if n := w.asked("POST " + serverURL); n != 5 {
			t.Errorf("%d requests to the server, want 5: only the first was refused", n)
		}
	})
}

// A rejected refresh token prompts the user, once.
func TestRefreshRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, rt := refreshing(t)
		w.login.refresh = ""
		<-time.After(2 * time.Hour)
		w.login.revoke()
		w.mustPost(rt, "", served)
		w.wantAuthorizations(2)
	})
}

// Some authorization servers, including GitHub's, reject a refresh token with status 200.
func TestRefreshRefusedWithStatus200(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, rt := refreshing(t)
		w.login.token = func(rw http.ResponseWriter, r *http.Request) bool {
			isRefresh := r.PostForm.Get("grant_type") == "refresh_token"
			if isRefresh {
				writeJSON(rw, 200, map[string]any{"error": "bad_refresh_token", "error_description": "The refresh token is incorrect or expired."})
			}
			return isRefresh
		}
		<-time.After(2 * time.Hour)
		w.login.revoke()
		w.mustPost(rt, "", served)
		w.wantAuthorizations(2)
	})
}

// The user is not prompted before the server has rejected the old token.
func TestExpiredButGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, rt := refreshing(t)
		w.login.refresh = ""
		for range 3 {
			<-time.After(2 * time.Hour)
			w.mustPost(rt, "", served)
		}
		if a, n := len(w.login.authorizations()), w.asked("POST https://login.example/token"); a != 1 || n != 2 {
			t.Errorf("%d authorizations and %d token requests, want 1 and 2", a, n)
		}
	})
}

// The user is not prompted because an authorization server is temporarily down.
func TestRefreshFails(t *testing.T) {
	w, rt := refreshing(t)
	w.login.revoke()
	w.login.token = func(rw http.ResponseWriter, _ *http.Request) bool {
		rw.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	if got, err := post(t.Context(), rt, "", "hello"); err == nil {
		t.Errorf("%q, want an error", got)
	}
	w.login.token = nil
	w.mustPost(rt, "", served)
	w.wantAuthorizations(1)
}

// If a server moves to another authorization server, the transport follows, even if the one
// that issued the refresh token is gone.
func TestRefreshAtServerThatIsGone(t *testing.T) {
	w, rt := refreshing(t)
	w.login.revoke()
	next := newIssuer("https://next.example")
	w.hosts[next.url] = next
	delete(w.hosts, loginURL)
	w.server.issuer, w.server.metadata["authorization_servers"] = next, []string{next.url}
	w.mustPost(rt, "", served)
	if g := next.granted(""); len(g) != 1 || g[0].form.Get("grant_type") != "authorization_code" || len(next.clients) != 1 {
		t.Errorf("tokens of the next one: %v, %d registrations", g, len(next.clients))
	}
}

// If a server rejects every token, neither the authorization server nor the user is asked
// repeatedly.
func TestEndlessRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, rt := refreshing(t)
		w.server.deny = true
		for range 10 {
			got, err := post(t.Context(), rt, "", "hello")
			if err != nil || got != "401" {
				t.Fatalf("%q, %v; want 401", got, err)
			}
		}
		w.wantAuthorizations(2)
		w.wantRefreshes(1)
		<-time.After(2 * time.Minute)
		w.server.deny = false
		w.mustPost(rt, "", served)
	})
}

// The next process uses the stored token and registration, without prompting the user; T66.
func TestRestart(t *testing.T) {
	for name, store := range map[string]func(t *testing.T) oauth.Store{
		"memory": func(*testing.T) oauth.Store { return oauth.NewMemoryStore() },
		"file":   func(t *testing.T) oauth.Store { return oauth.NewFileStore(t.TempDir() + "/tokens") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.store = store(t)
			w.login.refresh = "r"
			w.mustPost(w.transport(nil), "", served)
			w.mustPost(w.transport(nil), "", served)
			if a, r := len(w.login.authorizations()), len(w.login.clients); a != 1 || r != 1 {
				t.Errorf("%d authorizations and %d registrations, want 1 of each", a, r)
			}
			w.login.revoke()
			w.mustPost(w.transport(nil), "", served)
			if r := w.login.granted("refresh_token"); len(r) != 1 || r[0].form.Get("client_id") != "client-1" {
				t.Errorf("refreshes: %v", r)
			}
			w.login.revoke()
			w.login.refresh = ""
			w.mustPost(w.transport(nil), "", served)
			if a, r := len(w.login.authorizations()), len(w.login.clients); a != 2 || r != 1 {
				t.Errorf("%d authorizations and %d registrations, want 2 and 1", a, r)
			}
		})
	}
}

// Of two processes with one store, the second uses the token that the first has refreshed,
// not a used refresh token.
func TestTwoProcesses(t *testing.T) {
	w := newWorld(t)
	w.login.refresh = "r"
	first, second := w.transport(nil), w.transport(nil)
	w.mustPost(first, "", served)
	w.mustPost(second, "", served)
	w.login.revoke()
	w.mustPost(first, "", served)
	w.mustPost(second, "", served)
	w.wantRefreshes(1)
	w.wantAuthorizations(1)
}

// The rejection of a token that is no longer current does not cause another renewal.
func TestLateRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.login.refresh, w.store = "r", broken{}
		rt := w.transport(&oauth.Options{Base: roundTripper(func(req *http.Request) (*http.Response, error) {
			res, err := w.RoundTrip(req)
			if req.Header.Get("X-Scope") == "slow" && res.StatusCode == http.StatusUnauthorized {
				<-time.After(time.Second)
			}
			return res, err
		})})
		w.mustPost(rt, "", served)
		w.login.revoke()
		var group sync.WaitGroup
		group.Go(func() {
			if got, err := post(t.Context(), rt, "slow", "hello"); err != nil || got != served {
				t.Errorf("%q, %v", got, err)
			}
		})
		synctest.Wait()
		w.login.answers = func(_ url.Values, answer map[string]any) { w.login.valid[answer["access_token"].(string)] = "slow" }
		w.mustPost(rt, "", served)
		group.Wait()
		if n := w.asked("POST https://login.example/token"); n != 2 {
			t.Errorf("%d token requests, want 2", n)
		}
	})
}

// Another process has just used the refresh token, and its store has no locks.
func TestLostRace(t *testing.T) {
	w := newWorld(t)
	w.login.refresh, w.store = "r", struct{ oauth.Store }{w.store}
	first, second := w.transport(nil), w.transport(nil)
	w.mustPost(first, "", served)
	w.mustPost(second, "", served)
	w.login.revoke()
	raced := false
	w.login.token = func(rw http.ResponseWriter, r *http.Request) bool {
		if raced {
			return false
		}
		raced = true
		w.mustPost(second, "", served)
		return false
	}
	w.mustPost(first, "", served)
	w.wantAuthorizations(1)
}

// A token endpoint may omit a new refresh token.
func TestSameRefreshToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.login.refresh = "r"
		w.login.answers = func(form url.Values, answer map[string]any) {
			w.login.refresh = "r"
			answer["refresh_token"] = "r"
			if form.Get("grant_type") == "refresh_token" {
				delete(answer, "refresh_token")
			}
		}
		rt := w.transport(nil)
		for range 4 {
			w.mustPost(rt, "", served)
			<-time.After(time.Hour)
		}
		w.wantRefreshes(3)
	})
}

// A refreshed token has the scopes of the previous one unless the token endpoint says
// otherwise (RFC 6749, section 6). A server that requires them again requests nothing new.
func TestSameScopes(t *testing.T) {
	w := newWorld(t)
	w.login.refresh = "r"
	w.server.metadata["scopes_supported"] = []string{"read"}
	w.login.answers = func(form url.Values, answer map[string]any) {
		if form.Get("grant_type") == "refresh_token" {
			delete(answer, "scope")
			w.login.valid[answer["access_token"].(string)] = ""
		}
	}
	rt := w.transport(nil)
	w.mustPost(rt, "read", served)
	w.login.revoke()
	w.mustPost(rt, "read", "403")
	w.wantRefreshes(1)
	w.wantAuthorizations(1)
}

// The client registers again if the authorization server has forgotten it.
func TestForgottenClient(t *testing.T) {
	w, rt := refreshing(t)
	w.login.revoke()
	w.login.token = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.PostForm.Get("client_id") == "client-1" {
			writeJSON(rw, 401, map[string]any{"error": "invalid_client"})
			return true
		}
		return false
	}
	w.mustPost(rt, "", served)
	if n := len(w.login.clients); n != 2 {
		t.Errorf("%d registrations, want 2", n)
	}
}

// The rejection of an old registration does not remove a newer one that another transport
// has made at the same authorization server.
func TestForgottenClientOfTwoServers(t *testing.T) {
	w := newWorld(t)
	w.login.refresh = "r"
	const other = "https://other.example/mcp"
	w.hosts[origin(other)] = &resource{url: other, issuer: w.login, metadata: map[string]any{
		"resource": other, "authorization_servers": []string{loginURL},
	}}
	first := w.transport(nil)
	w.mustPost(first, "", served)
	w.login.token = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.PostForm.Get("client_id") == "client-1" {
			writeJSON(rw, 401, map[string]any{"error": "invalid_client"})
			return true
		}
		return false
	}
	w.server.url = other
	second := w.transport(nil)
	if err := second.Authorize(t.Context()); err == nil {
		t.Error("the forgotten client got a token")
	}
	if err := second.Authorize(t.Context()); err != nil {
		t.Error(err)
	}
	w.login.revoke()
	w.mustPost(first, "", served)
	if n := len(w.login.clients); n != 2 {
		t.Errorf("%d registrations, want 2", n)
	}
}

// Lifetimes may be numbers, strings, or missing.
func TestLifetimes(t *testing.T) {
	for _, test := range []struct {
		expires   any
		refreshes int
	}{{60, 1}, {"60", 1}, {60.5, 1}, {nil, 0}, {"soon", 0}, {1e300, 0}, {-5, 0}, {7200, 0}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.login.refresh, w.login.lifetime = "r", test.expires
			rt := w.transport(nil)
			w.mustPost(rt, "", served)
			<-time.After(time.Hour)
			w.mustPost(rt, "", served)
			if n := len(w.login.granted("refresh_token")); n != test.refreshes {
				t.Errorf("expires_in %v: %d refreshes, want %d", test.expires, n, test.refreshes)
			}
		})
	}
}

// refuseRefresh answers every refresh in the same way.
func refuseRefresh(status int, answer any) func(http.ResponseWriter, *http.Request) bool {
	return func(rw http.ResponseWriter, r *http.Request) bool {
		isRefresh := r.PostForm.Get("grant_type") == "refresh_token"
		if isRefresh {
			writeJSON(rw, status, answer)
		}
		return isRefresh
	}
}

// A refresh that is answered with status 200, but without a token that can be used, means
// that the refresh token is no longer valid. It leads to one new login, as a refusal does.
func TestFindingR13RefreshWithoutToken(t *testing.T) {
	text := func(body string) any { return json.RawMessage(body) }
	for name, test := range map[string]struct {
		dpop   *oauth.Key
		answer any
	}{
		"nothing":               {answer: text(`{}`)},
		"null":                  {answer: text(`null`)},
		"a list":                {answer: text(`[]`)},
		"a string":              {answer: text(`"expired"`)},
		"another structure":     {answer: text(`{"success":false,"error":{"code":401}}`)},
		"an empty token":        {answer: text(`{"access_token":""}`)},
		"a token that is null":  {answer: text(`{"access_token":null}`)},
		"a token of odd type":   {answer: text(`{"access_token":5}`)},
		"not fit for a header":  {answer: text(`{"access_token":"a b"}`)},
		"of another type":       {answer: text(`{"access_token":"t","token_type":"mac"}`)},
		"not bound to the key":  {new(oauth.Key), text(`{"access_token":"t","token_type":"Bearer"}`)},
		"a member stands twice": {answer: text(`{"access_token":"t","access_token":"u"}`)},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.login.refresh = "r"
			if test.dpop != nil {
				w.login.answers = func(_ url.Values, answer map[string]any) { answer["token_type"] = "DPoP" }
			}
			rt := w.transport(&oauth.Options{DPoP: test.dpop, Base: bearing{w}})
			w.mustPost(rt, "", served)
			w.login.token = refuseRefresh(200, test.answer)
			<-time.After(2 * time.Hour)
			w.login.revoke()
			if got, err := post(t.Context(), rt, "", "hello"); err != nil || got != served {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			if n := len(w.login.authorizations()); n != 2 {
				t.Errorf("%s: %d authorizations, want 2", name, n)
			}
		})
	}
}

// bearing makes the server accept DPoP tokens as bearer tokens.
type bearing struct{ *world }

func (b bearing) RoundTrip(req *http.Request) (*http.Response, error) {
	if token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "DPoP "); ok {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return b.network.RoundTrip(req)
}

// A request that was about to renew a token while another request renewed it uses the new
// token. It must not use the old refresh token again: the authorization server would take
// that for theft, and revoke all tokens of the user.
func TestFindingMutant47NoSecondRefresh(t *testing.T) {
	w := newWorld(t)
	w.login.refresh, w.store = "r", broken{} // so that only memory has the new token
	rt := w.transport(nil)
	w.mustPost(rt, "", served)
	w.login.revoke()
	atEndpoint, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.login.token = func(http.ResponseWriter, *http.Request) bool {
		once.Do(func() { close(atEndpoint); <-release })
		return false
	}
	var group sync.WaitGroup
	group.Go(func() {
		if got, err := post(t.Context(), rt, "", "hello"); err != nil || got != served {
			t.Errorf("the first request: %q, %v", got, err)
		}
	})
	<-atEndpoint
	// The second request has found that the token in use is the rejected one, and stops its
	// clock before it joins the renewal. By then, the renewal is over.
	late := &lateContext{Context: t.Context(), at: func() {
		close(release)
		group.Wait()
	}}
	if got, err := post(late, rt, "", "hello"); err != nil || got != served {
		t.Errorf("the second request: %q, %v", got, err)
	}
	w.wantRefreshes(1)
	w.wantAuthorizations(1)
}

// A lateContext calls a function when its clock is looked up first.
type lateContext struct {
	context.Context

	at   func()
	once sync.Once
}

func (c *lateContext) Value(key any) any {
	if key == clockKey() {
		c.once.Do(c.at)
	}
	return c.Context.Value(key)
}

// clockKey returns the key under which contexts have clocks.
func clockKey() (key any) {
	callclock.FromContext(keyRecorder{context.Background(), &key})
	return key
}

type keyRecorder struct {
	context.Context

	key *any
}

func (r keyRecorder) Value(key any) any { *r.key = key; return nil }
