// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcphttp/oauth"
)

// lastScope returns the most recently requested scopes.
func (w *world) lastScope() string {
	q := w.login.authorizations()
	return q[len(q)-1].Get("scope")
}

func TestScopes(t *testing.T) {
	for _, test := range []struct {
		name      string
		challenge string
		listed    []string
		offline   []string // scopes of the authorization server
		options   []string
		want      string
	}{
		{name: "none"},
		{name: "challenge", challenge: `Bearer scope="a b"`, listed: []string{"c"}, want: "a b"},
		{name: "listed", challenge: `Bearer`, listed: []string{"c", "d"}, want: "c d"},
		{name: "options", challenge: `Bearer`, listed: []string{"c"}, options: []string{"o"}, want: "o"},
		{name: "options and challenge", challenge: `Bearer scope="a"`, options: []string{"o", "a"}, want: "a o"},
		{name: "offline", listed: []string{"c"}, offline: []string{"c", "offline_access"}, want: "c offline_access"},
		{name: "nothing but offline", offline: []string{"offline_access"}, want: ""},
		{name: "malformed", listed: []string{"c", "with space", "\"", "\n", "c"}, want: "c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.server.challenge = test.challenge
			w.server.metadata["scopes_supported"] = test.listed
			w.login.metadata["scopes_supported"] = test.offline
			w.mustPost(w.transport(&oauth.Options{Scopes: test.options}), "", served)
			if got := w.lastScope(); got != test.want {
				t.Errorf("asked for %q, want %q", got, test.want)
			}
		})
	}
}

// Additional scopes are requested together with the old ones and are kept.
func TestStepUp(t *testing.T) {
	w := newWorld(t)
	w.server.metadata["scopes_supported"] = []string{"read"}
	rt := w.transport(nil)
	w.mustPost(rt, "", served)
	w.mustPost(rt, "write", served)
	if got := w.lastScope(); got != "read write" {
		t.Errorf("asked for %q, want both", got)
	}
	w.mustPost(rt, "read", served)
	w.login.revoke()
	w.mustPost(rt, "write", served)
	if got, n := w.lastScope(), len(w.login.authorizations()); got != "read write" || n != 3 {
		t.Errorf("asked for %q the %dth time, want both the third time", got, n)
	}
}

// A scope that is not granted is requested once, and again after a while.
func TestStepUpRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		rt := w.transport(nil)
		w.mustPost(rt, "", served)
		w.login.redirect = func(params url.Values) {
			params.Del("code")
			params.Set("error", "access_denied")
		}
		if _, err := post(t.Context(), rt, "admin", "hello"); err == nil {
			t.Fatal("no error")
		}
		for range 5 {
			w.mustPost(rt, "admin", "403")
		}
		w.mustPost(rt, "", served) // the old token is still there
		w.wantAuthorizations(2)
		<-time.After(time.Hour)
		w.login.redirect = nil
		w.mustPost(rt, "admin", served)
	})
}

// A server that requires more scopes for every token causes few prompts, however many
// requests there are.
func TestStepUpLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.server.step = func(n int) string { return fmt.Sprintf("scope-%d", n) }
		rt := w.transport(nil)
		for range 100 {
			w.mustPost(rt, "", "403")
		}
		if n := len(w.login.authorizations()); n > 10 {
			t.Errorf("%d authorizations", n)
		}
	})
}

// Concurrent requests cause few prompts, too.
func TestStepUpLoopTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.login.lifetime = nil
		w.receiver = oauth.NewRedirector("https://app.example/callback", w.slowly)
		w.server.step = func(n int) string { return fmt.Sprintf("scope-%d", n) }
		rt := w.transport(nil)
		for range 5 {
			var group sync.WaitGroup
			for range 20 {
				group.Go(func() {
					if got, err := post(t.Context(), rt, "", "hello"); err != nil || got != "403" {
						t.Errorf("%q, %v", got, err)
					}
				})
			}
			group.Wait()
		}
		if n := len(w.login.authorizations()); n > 10 {
			t.Errorf("%d authorizations", n)
		}
	})
}

func TestStepUpLimit(t *testing.T) {
	w := newWorld(t)
	w.server.step = func(n int) string { return fmt.Sprintf("scope-%d", n) }
	w.mustPost(w.transport(nil), "", "403")
	if n := len(w.login.authorizations()); n != 3 {
		t.Errorf("%d authorizations, want 3: the first and two with more scopes", n)
	}
}

// A scope that the server does not grant is requested once, and again after a while. A
// scope that it claims to have granted is not requested again.
func TestStepUpNotGranted(t *testing.T) {
	for _, claim := range []string{"", "admin", "not said"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.login.lifetime = nil
			w.login.answers = func(_ url.Values, answer map[string]any) {
				w.login.valid[answer["access_token"].(string)] = ""
				if answer["scope"] = claim; claim == "not said" {
					delete(answer, "scope") // implies that all requested scopes are granted
				}
			}
			rt := w.transport(nil)
			for _, want := range map[string][]int{"": {2, 3}, "admin": {1, 1}, "not said": {2, 2}}[claim] {
				for range 3 {
					w.mustPost(rt, "admin", "403")
				}
				if n := len(w.login.authorizations()); n != want {
					t.Errorf("claimed %q: %d authorizations, want %d", claim, n, want)
				}
				<-time.After(time.Hour)
			}
		})
	}
}

// If there are more scopes than can be requested at once, those that the request needs are
// included.
func TestStepUpBeyondManyScopes(t *testing.T) {
	w := newWorld(t)
	var listed []string
	for i := range 100 {
		listed = append(listed, fmt.Sprint("scope-", i))
	}
	w.server.metadata["scopes_supported"] = listed
	rt := w.transport(nil)
	w.mustPost(rt, "scope-99", served)
	w.mustPost(rt, "another", served)
	w.wantAuthorizations(2)
	if n := len(strings.Fields(w.lastScope())); n != 100 {
		t.Errorf("asked for %d scopes, want 100", n)
	}
}

// slowly acts as a user who takes a minute.
func (w *world) slowly(ctx context.Context, to string) (url.Values, error) {
	select {
	case <-time.After(time.Minute):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return w.visit(ctx, to)
}

// Concurrent requests that need different scopes get them one after another. A step-up for
// another request does not count as theirs.
func TestStepUpsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.login.lifetime = nil
		w.receiver = oauth.NewRedirector("https://app.example/callback", w.slowly)
		rt := w.transport(nil)
		w.mustPost(rt, "", served)
		var group sync.WaitGroup
		for i := range 4 {
			group.Go(func() {
				if got, err := post(t.Context(), rt, fmt.Sprint("scope-", i), "hello"); err != nil || got != served {
					t.Errorf("scope-%d: %q, %v", i, got, err)
				}
			})
		}
		group.Wait()
		w.wantAuthorizations(5)
	})
}

// A request that is abandoned while the user is prompted for more scopes does not stop the
// next one from waiting for the user.
func TestStepUpGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.login.lifetime = nil
		w.receiver = oauth.NewRedirector("https://app.example/callback", w.slowly)
		rt := w.transport(nil)
		w.mustPost(rt, "", served)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, err := post(ctx, rt, "admin", "hello"); err == nil {
			t.Fatalf("%q, want an error", got)
		}
		w.mustPost(rt, "admin", served)
		w.wantAuthorizations(2)
	})
}
