// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

func TestAuthorizationCode(t *testing.T) {
	w := newWorld(t)
	rt := w.transport(nil)
	w.mustPost(rt, "", served)
	w.mustPost(rt, "", served)
	q := w.login.authorizations()
	if len(q) != 1 {
		t.Fatalf("%d authorizations, want 1", len(q))
	}
	for name, want := range map[string]string{
		"response_type": "code", "client_id": "client-1", "redirect_uri": "https://app.example/callback",
		"code_challenge_method": "S256", "resource": serverURL, "scope": "",
	} {
		if got := q[0].Get(name); got != want {
			t.Errorf("authorization request: %s is %q, want %q", name, got, want)
		}
	}
	grants := w.login.granted("authorization_code")
	if len(grants) != 1 || grants[0].form.Get("resource") != serverURL || grants[0].form.Get("redirect_uri") != "https://app.example/callback" {
		t.Errorf("token requests: %v", grants)
	}
	if c := w.login.clients[0]; c["application_type"] != "web" || c["token_endpoint_auth_method"] != "none" {
		t.Errorf("registered as %v", c)
	}
}

// Requests to other servers, and those with an Authorization header, are forwarded
// unchanged.
func TestPassedOn(t *testing.T) {
	w := newWorld(t)
	rt := w.transport(nil)
	w.mustPost(rt, "", served)
	other := newIssuer("https://other.example")
	w.hosts["https://other.example"] = other
	for _, to := range []string{"https://other.example/mcp", "http://mcp.example/mcp", "https://mcp.example:8443/mcp", "https://mcp.example.evil/mcp"} {
		req, _ := http.NewRequest(http.MethodPost, to, strings.NewReader("x"))
		res, err := rt.RoundTrip(req)
		if err == nil {
			res.Body.Close()
		}
		if w.seen(origin(to), "Bearer") {
			t.Errorf("%s was sent the token", to)
		}
	}
	w.login.revoke()
	req, _ := http.NewRequest(http.MethodPost, serverURL, strings.NewReader("x"))
	req.Header.Set("Authorization", "Bearer mine")
	res, err := rt.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusUnauthorized || len(w.login.authorizations()) != 1 || req.Header.Get("Authorization") != "Bearer mine" {
		t.Errorf("with a header of the user's: %v, %v, %d authorizations", res, err, len(w.login.authorizations()))
	}
}

// Challenges of other schemes are ignored.
func TestForeignChallenge(t *testing.T) {
	w := newWorld(t)
	w.server.challenge = `Basic realm="Bearer", Negotiate`
	w.mustPost(w.transport(nil), "", "401")
	if n := w.asked("GET"); n != 0 {
		t.Errorf("%d requests for metadata", n)
	}
}

// Ending a session may refresh the token, but does not cause a login.
func TestQuietDelete(t *testing.T) {
	w := newWorld(t)
	w.login.refresh = "r"
	rt := w.transport(nil)
	remove := func(want int) {
		t.Helper()
		req, _ := http.NewRequest(http.MethodDelete, serverURL, nil)
		res, err := rt.RoundTrip(req)
		if err != nil || res.StatusCode != want {
			t.Errorf("DELETE: %v, %v; want %d", res, err, want)
		}
	}
	remove(http.StatusUnauthorized)
	w.mustPost(rt, "", served)
	w.login.revoke()
	remove(http.StatusOK)
	w.login.revoke()
	w.login.refresh = ""
	remove(http.StatusUnauthorized)
	if a, r := len(w.login.authorizations()), len(w.login.granted("refresh_token")); a != 1 || r != 1 {
		t.Errorf("%d authorizations and %d refreshes, want 1 of each", a, r)
	}
	if n := w.asked("DELETE " + serverURL); n != 4 {
		t.Errorf("%d requests, want 4: only one was worth a second attempt", n)
	}
	w.mustPost(rt, "", served)
}

// stream is a body that can be read only once.
type stream struct {
	io.Reader
	closed bool
}

func (s *stream) Close() error { s.closed = true; return nil }

func TestBodies(t *testing.T) {
	for _, test := range []struct{ name, body, want string }{
		{"short", "hello", served},
		{"at the limit", strings.Repeat("x", 1<<20), served},
		{"too long", strings.Repeat("x", 1<<20+1), "401"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			rt := w.transport(nil)
			body := &stream{Reader: strings.NewReader(test.body)}
			req, _ := http.NewRequest(http.MethodPost, serverURL, body)
			res, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(res.Body)
			if got := strings.TrimSpace(http.StatusText(res.StatusCode)); !strings.HasPrefix(test.want, map[string]string{"OK": "200", "Unauthorized": "401"}[got]) {
				t.Errorf("%s: %s, want %s", got, text, test.want)
			}
			if !body.closed {
				t.Error("the body was not closed")
			}
			// With a token, a body that can be read only once is sent completely.
			if err := rt.Authorize(t.Context()); err != nil {
				t.Fatal(err)
			}
			req, _ = http.NewRequest(http.MethodPost, serverURL, &stream{Reader: strings.NewReader(test.body)})
			if res, err = rt.RoundTrip(req); err != nil {
				t.Fatal(err)
			}
			if text, _ := io.ReadAll(res.Body); string(text) != "POST /mcp "+test.body {
				t.Errorf("with a token: %q", text)
			}
		})
	}
}

func TestInvalidServer(t *testing.T) {
	for _, raw := range []string{"", "::", "ftp://mcp.example/", "https://", "https://user:pw@mcp.example/"} {
		rt := oauth.NewTransport(raw, nil)
		if _, err := post(t.Context(), rt, "", ""); err == nil {
			t.Errorf("%q: no error", raw)
		}
		if err := rt.Authorize(t.Context()); err == nil {
			t.Errorf("%q: authorized", raw)
		}
		rt.Close()
	}
}

// A server without HTTPS gets no token, but may be used if it requires none.
func TestPlainServer(t *testing.T) {
	w := newWorld(t)
	w.server.url = "http://mcp.example/mcp"
	w.hosts["http://mcp.example"] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Scope") != "" {
			rw.WriteHeader(http.StatusUnauthorized)
		}
	})
	rt := w.transport(nil)
	req, _ := http.NewRequest(http.MethodPost, w.server.url, nil)
	if res, err := rt.RoundTrip(req); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("anonymous: %v, %v", res, err)
	}
	req.Header.Set("X-Scope", "any")
	if _, err := rt.RoundTrip(req); !errors.Is(err, oauth.ErrUnsafeURL) || !errors.Is(err, mcp.ErrUnauthorized) {
		t.Errorf("asked for a token: %v", err)
	}
	if err := rt.Authorize(t.Context()); !errors.Is(err, oauth.ErrUnsafeURL) {
		t.Errorf("Authorize: %v", err)
	}
}

// Many requests wait for a single login; T66.
func TestOneAuthorization(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		arrived, release := make(chan struct{}), make(chan struct{})
		visit := w.visit
		w.receiver = oauth.NewRedirector("https://app.example/callback", func(ctx context.Context, to string) (url.Values, error) {
			close(arrived)
			<-release
			return visit(ctx, to)
		})
		rt := w.transport(nil)
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				if got, err := post(t.Context(), rt, "", "hello"); err != nil || got != served {
					t.Errorf("%q, %v", got, err)
				}
			})
		}
		<-arrived
		synctest.Wait()
		close(release)
		group.Wait()
		w.wantAuthorizations(1)
	})
}

// The request that started the login may end. Another request joins the login.
func TestRequestEndsBeforeUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		visit, visits := w.visit, 0
		w.receiver = oauth.NewRedirector("https://app.example/callback", func(ctx context.Context, to string) (url.Values, error) {
			visits++
			select {
			case <-time.After(time.Minute):
				return visit(ctx, to)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		rt := w.transport(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := post(ctx, rt, "", "hello")
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, mcp.ErrUnauthorized) {
			t.Fatalf("first: %v", err)
		}
		w.mustPost(rt, "", served)
		if visits != 1 {
			t.Errorf("the user was asked %d times, want once", visits)
		}
	})
}

func TestLoginTimeoutAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.receiver = oauth.NewRedirector("https://app.example/callback", func(ctx context.Context, _ string) (url.Values, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		rt := w.transport(nil)
		start := time.Now()
		_, err := post(t.Context(), rt, "", "hello")
		if d := time.Since(start); d != 5*time.Minute || !errors.Is(err, mcp.ErrUnauthorized) || !strings.Contains(err.Error(), "longer than 5m0s") {
			t.Errorf("gave up after %v: %v", d, err)
		}
		go func() {
			<-time.After(time.Second)
			rt.Close()
		}()
		start = time.Now()
		w.mustFail(rt, mcp.ErrUnauthorized)
		if d := time.Since(start); d != time.Second {
			t.Errorf("closed after %v", d)
		}
	})
}

// A Redirector that panics makes the waiting requests fail.
func TestPanic(t *testing.T) {
	w := newWorld(t)
	w.receiver = oauth.NewRedirector("https://app.example/callback", func(context.Context, string) (url.Values, error) { panic("oops") })
	w.mustFail(w.transport(nil), mcp.ErrUnauthorized)
}

// A failed login fails only its own request.
func TestDenied(t *testing.T) {
	w := newWorld(t)
	w.login.redirect = func(params url.Values) {
		params.Del("code")
		params.Set("error", "access_denied")
		params.Set("error_description", "not today")
	}
	rt := w.transport(nil)
	_, err := post(t.Context(), rt, "", "hello")
	var refusal *oauth.Error
	if !errors.As(err, &refusal) || refusal.Code != "access_denied" || refusal.Description != "not today" || refusal.Issuer != loginURL {
		t.Fatalf("%v", err)
	}
	w.login.redirect = nil
	w.mustPost(rt, "", served)
}

func TestAuthorize(t *testing.T) {
	w := newWorld(t)
	w.login.lifetime = 5
	rt := w.transport(nil)
	for range 2 {
		if err := rt.Authorize(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.wantAuthorizations(1)
	w.mustPost(rt, "", served)
	if n := w.asked("POST " + serverURL); n != 1 {
		t.Errorf("%d requests to the server, want 1: it was not refused", n)
	}
}
