// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/go-psi/psi/mcphttp/oauth"
)

// revoking returns a world whose authorization server revokes tokens, as RFC 7009 says.
func revoking(t *testing.T) *world {
	w := newWorld(t)
	w.login.refresh = "r"
	w.login.metadata["revocation_endpoint"] = loginURL + "/revoke"
	return w
}

// wantRevoked checks the last revocation request, and how many there were.
func (w *world) wantRevoked(n int, token, hint string) {
	w.t.Helper()
	w.login.mu.Lock()
	defer w.login.mu.Unlock()
	if len(w.login.revoked) != n {
		w.t.Fatalf("%d revocations, want %d: %v", len(w.login.revoked), n, w.login.revoked)
	}
	if form := w.login.revoked[n-1]; form.Get("token") != token || form.Get("token_type_hint") != hint || form.Get("client_id") != "client-1" {
		w.t.Errorf("revoked %v", form)
	}
}

// wantForgotten checks that the store has no token, but still the registration.
func (w *world) wantForgotten() {
	w.t.Helper()
	token, err := w.store.Load(w.t.Context(), oauth.StoreKey{Issuer: loginURL, Resource: serverURL})
	if token != nil || err != nil {
		w.t.Errorf("the store has %q, %v", token, err)
	}
	registration, err := w.store.Load(w.t.Context(), oauth.StoreKey{Issuer: loginURL})
	if registration == nil || err != nil {
		w.t.Errorf("the registration is %q, %v", registration, err)
	}
}

// A logout revokes the grant and forgets the token. The next request has the user log in
// again, with the client that is registered.
func TestLogout(t *testing.T) {
	w := revoking(t)
	rt := w.transport(nil)
	w.mustPost(rt, "", served)
	if err := rt.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantRevoked(1, "r+", "refresh_token")
	w.wantForgotten()
	if err := rt.Logout(t.Context()); err != nil {
		t.Error(err)
	}
	w.wantRevoked(1, "r+", "refresh_token")
	w.mustPost(rt, "", served)
	w.wantAuthorizations(2)
	if n := len(w.login.clients); n != 1 {
		t.Errorf("%d clients are registered", n)
	}
}

// Without a refresh token, the access token is revoked.
func TestLogoutWithoutRefreshToken(t *testing.T) {
	w := revoking(t)
	w.login.refresh = ""
	rt := w.transport(nil)
	w.mustPost(rt, "", served)
	if err := rt.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantRevoked(1, "login.example#1", "access_token")
	w.wantForgotten()
}

// A program that was started anew logs out with the token in the store, and so does one whose
// token was refreshed by another.
func TestLogoutOfStoredToken(t *testing.T) {
	w := revoking(t)
	first := w.transport(nil)
	w.mustPost(first, "", served)
	second := w.transport(nil)
	w.login.revoke() // so that it is refreshed
	w.mustPost(second, "", served)
	if err := first.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantRevoked(1, "r++", "refresh_token")
	w.mustPost(w.transport(nil), "", served)
	if err := w.transport(nil).Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantRevoked(2, "r+++", "refresh_token")
	w.wantForgotten()
	w.wantAuthorizations(2)
}

// A token that is not revoked is removed all the same, and the error says what may still work.
func TestLogoutThatCannotRevoke(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(w *world)
		is      func(err error) bool
	}{
		"no endpoint": {
			func(w *world) { delete(w.login.metadata, "revocation_endpoint") },
			func(err error) bool { return errors.Is(err, errors.ErrUnsupported) },
		},
		"an endpoint that is down": {
			func(w *world) { w.login.refuses = http.StatusServiceUnavailable },
			func(err error) bool {
				e, ok := errors.AsType[*oauth.Error](err)
				return ok && e.Status == http.StatusServiceUnavailable && e.Issuer == loginURL
			},
		},
		"an endpoint without encryption": {
			func(w *world) { w.login.metadata["revocation_endpoint"] = "http://login.example/revoke" },
			func(err error) bool { return errors.Is(err, oauth.ErrUnsafeURL) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := revoking(t)
			test.prepare(w)
			rt := w.transport(nil)
			w.mustPost(rt, "", served)
			if err := rt.Logout(t.Context()); err == nil || !test.is(err) {
				t.Errorf("got %v", err)
			}
			w.wantForgotten()
			w.mustPost(rt, "", served)
			w.wantAuthorizations(2)
		})
	}
}

// If it is not known whether there is a token, or if it cannot be removed, nothing changes.
func TestLogoutThatFails(t *testing.T) {
	w := revoking(t)
	w.mustPost(w.transport(nil), "", served)
	w.server.metadata["authorization_servers"] = []string{"https://elsewhere.example"}
	if err := w.transport(nil).Logout(t.Context()); err == nil {
		t.Error("logged out of an unknown authorization server")
	}
	w.server.metadata["authorization_servers"] = []string{loginURL}
	full := w.transport(&oauth.Options{Store: readOnly{w.store}})
	w.mustPost(full, "", served)
	if err := full.Logout(t.Context()); !errors.Is(err, errReadOnly) {
		t.Errorf("got %v", err)
	}
	w.mustPost(full, "", served)
	w.wantAuthorizations(1)
	if err := oauth.NewTransport("ftp://mcp.example", nil).Logout(t.Context()); err == nil {
		t.Error("logged out of a URL that is none")
	}
}

var errReadOnly = errors.New("the store is read-only")

type readOnly struct{ oauth.Store }

func (readOnly) Save(context.Context, oauth.StoreKey, []byte) error { return errReadOnly }

// A client with a secret authenticates as it does for tokens.
func TestLogoutAuthenticates(t *testing.T) {
	w := revoking(t)
	w.login.metadata["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"}
	rt := w.transport(&oauth.Options{Grant: &oauth.AuthorizationCode{
		Redirector: w.receiver, Clients: []oauth.Client{{Issuer: loginURL, ID: "client-1", Secret: "s"}},
	}})
	w.mustPost(rt, "", served)
	if err := rt.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantRevoked(1, "r+", "refresh_token")
	if got := w.login.revoked[0]; got.Get("client_secret") != "s" {
		t.Errorf("sent %v", got)
	}
}
