// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// The kinds of clients, in order of preference.
func TestClientOrder(t *testing.T) {
	const document = "https://app.example/client.json"
	arranged := []oauth.Client{{Issuer: "https://partner.example", ID: "other"}, {Issuer: loginURL, ID: "arranged", Secret: "s"}}
	for name, test := range map[string]struct {
		grant       oauth.AuthorizationCode
		documents   bool // whether the authorization server supports metadata documents
		noEndpoint  bool
		want        string // client_id; "" for an error
		registering int
	}{
		"arranged first":        {grant: oauth.AuthorizationCode{Clients: arranged, MetadataURL: document}, documents: true, want: "arranged"},
		"then the document":     {grant: oauth.AuthorizationCode{Clients: arranged[:1], MetadataURL: document}, documents: true, want: document},
		"if it is supported":    {grant: oauth.AuthorizationCode{MetadataURL: document}, want: "client-1", registering: 1},
		"then registration":     {want: "client-1", registering: 1},
		"unless unwanted":       {grant: oauth.AuthorizationCode{NoRegistration: true}},
		"unless impossible":     {noEndpoint: true},
		"arranged at any":       {grant: oauth.AuthorizationCode{Clients: []oauth.Client{{ID: "any"}}}, want: "any"},
		"arranged elsewhere":    {grant: oauth.AuthorizationCode{Clients: arranged[:1]}, noEndpoint: true},
		"elsewhere, registered": {grant: oauth.AuthorizationCode{Clients: arranged[:1]}, want: "client-1", registering: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.login.metadata["client_id_metadata_document_supported"] = test.documents
			if test.noEndpoint {
				delete(w.login.metadata, "registration_endpoint")
			}
			grant := test.grant
			grant.Redirector = w.receiver
			rt := w.transport(&oauth.Options{Grant: &grant})
			if test.want == "" {
				w.mustFail(rt, oauth.ErrNoClient)
				return
			}
			w.mustPost(rt, "", served)
			if got := w.login.authorizations()[0].Get("client_id"); got != test.want {
				t.Errorf("client_id is %q, want %q", got, test.want)
			}
			if len(w.login.clients) != test.registering {
				t.Errorf("%d registrations, want %d", len(w.login.clients), test.registering)
			}
		})
	}
}

// A refresh token is used only by its client.
func TestRefreshTokenOfAnotherClient(t *testing.T) {
	w := newWorld(t)
	w.login.refresh = "r"
	w.mustPost(w.transport(nil), "", served)
	w.login.revoke()
	grant := &oauth.AuthorizationCode{Redirector: w.receiver, Clients: []oauth.Client{{Issuer: loginURL, ID: "arranged"}}}
	w.mustPost(w.transport(&oauth.Options{Grant: grant}), "", served)
	if n := len(w.login.granted("refresh_token")); n != 0 {
		t.Errorf("%d refreshes, want none", n)
	}
}

func TestRegistration(t *testing.T) {
	w := newWorld(t)
	w.login.metadata["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"}
	w.login.register = func(map[string]any) (int, map[string]any) {
		return 201, map[string]any{"client_id": "id", "client_secret": "secret"}
	}
	grant := &oauth.AuthorizationCode{Redirector: oauth.NewRedirector("http://localhost:1/cb", w.visit), Registration: oauth.Registration{
		Name: "A program", URI: "https://app.example", LogoURI: "https://app.example/logo", Token: "initial", TokenIssuer: loginURL,
	}}
	w.mustPost(w.transport(&oauth.Options{Grant: grant}), "", served)
	sent := w.login.clients[0]
	for name, want := range map[string]string{
		"client_name": "A program", "client_uri": "https://app.example", "logo_uri": "https://app.example/logo", "application_type": "native",
		"token_endpoint_auth_method": "client_secret_post",
	} {
		if sent[name] != want {
			t.Errorf("%s is %v, want %q", name, sent[name], want)
		}
	}
	if !w.seen(loginURL, "Bearer initial") {
		t.Error("the initial access token was not sent")
	}
	if g := w.login.granted("authorization_code")[0].form; g.Get("client_secret") != "secret" {
		t.Errorf("token request: %v", g)
	}
}

// An initial access token is sent only to its authorization server.
func TestInitialTokenOfAnother(t *testing.T) {
	for _, issuer := range []string{"", "https://partner.example"} {
		w := newWorld(t)
		grant := &oauth.AuthorizationCode{Redirector: w.receiver, Registration: oauth.Registration{Token: "initial", TokenIssuer: issuer}}
		w.mustPost(w.transport(&oauth.Options{Grant: grant}), "", served)
		if w.seen(loginURL, "initial") {
			t.Errorf("the token of %q was sent to %s", issuer, loginURL)
		}
	}
}

func TestRegistrationRefused(t *testing.T) {
	for name, answer := range map[string]map[string]any{
		"refused":   {"error": "invalid_redirect_uri", "error_description": "not that one"},
		"no id":     {"client_name": "x"},
		"id as int": {"client_id": 5},
	} {
		w := newWorld(t)
		w.login.register = func(map[string]any) (int, map[string]any) { return 201, answer }
		_, err := post(t.Context(), w.transport(nil), "", "hello")
		if !errors.Is(err, oauth.ErrNoClient) || name == "refused" && !strings.Contains(err.Error(), "not that one") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An expired secret, or a redirect URI that is not registered, requires a new registration.
func TestRegisteredAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.login.register = func(map[string]any) (int, map[string]any) {
			return 201, map[string]any{"client_id": "id", "client_secret": "s", "client_secret_expires_at": time.Now().Add(time.Hour).Unix()}
		}
		again := func(uri string, want int) {
			t.Helper()
			w.login.revoke()
			grant := &oauth.AuthorizationCode{Redirector: oauth.NewRedirector(uri, w.visit)}
			w.mustPost(w.transport(&oauth.Options{Grant: grant}), "", served)
			if n := len(w.login.clients); n != want {
				t.Errorf("%d registrations, want %d", n, want)
			}
		}
		again("https://app.example/a", 1)
		again("https://app.example/a", 1)
		again("https://app.example/b", 2)
		<-time.After(2 * time.Hour)
		again("https://app.example/b", 3)
	})
}

// An authorization server that does not know a client reports that only to the user, who
// does not return. The next login registers again, including in another process.
func TestUnknownRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.login.lifetime = nil
		w.receiver = oauth.NewRedirector("https://app.example/callback", func(ctx context.Context, to string) (url.Values, error) {
			if strings.Contains(to, "client_id=client-1&") && len(w.login.authorizations()) > 0 {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			return w.visit(ctx, to)
		})
		w.mustPost(w.transport(nil), "", served)
		w.login.revoke() // together with everything it knew
		w.mustFail(w.transport(nil), mcp.ErrUnauthorized)
		w.mustPost(w.transport(nil), "", served)
		if n := len(w.login.clients); n != 2 {
			t.Errorf("%d registrations, want 2", n)
		}
		w.login.revoke()
		w.mustPost(w.transport(nil), "", served)
		if n := len(w.login.clients); n != 2 {
			t.Errorf("%d registrations, want still 2", n)
		}
	})
}
