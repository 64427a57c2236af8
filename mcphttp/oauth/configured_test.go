// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"cmp"
	"net/http"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

const namedMetadata = "https://login.example/tenant/metadata.json"

// serveMetadata serves the authorization server's metadata at namedMetadata only.
func serveMetadata(w *world) {
	w.hosts[loginURL] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/tenant/metadata.json":
			writeJSON(rw, 200, w.login.metadata)
		case strings.Contains(r.URL.Path, ".well-known"):
			http.NotFound(rw, r)
		default:
			w.login.ServeHTTP(rw, r)
		}
	})
}

// The user names the metadata of the authorization server, for servers whose own metadata
// is missing or wrong. The issuer is the one in the metadata.
func TestFindingRM1MetadataOfTheUser(t *testing.T) {
	for name, arrange := range map[string]func(w *world){
		"wrong issuer": func(w *world) {
			w.login.metadata["issuer"], w.login.iss = "https://cf.example/t1", "https://cf.example/t1"
		},
		"another authorization server": func(w *world) { w.server.metadata["authorization_servers"] = []string{"https://evil.example"} },
		"no authorization server":      func(w *world) { delete(w.server.metadata, "authorization_servers") },
		"no metadata of the server":    func(w *world) { w.server.metadata = nil },
		"metadata of another server":   func(w *world) { w.server.metadata["resource"] = "https://other.example" },
		"damaged metadata":             func(w *world) { w.server.metadata["resource"] = 1 },
		"an old server":                func(w *world) { w.server.metadata, w.server.challenge = nil, "Bearer" },
	} {
		w := newWorld(t)
		serveMetadata(w)
		w.hosts["https://evil.example"] = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%s: another server was asked", name) })
		arrange(w)
		got, err := post(t.Context(), w.transport(&oauth.Options{AuthorizationServerMetadata: namedMetadata}), "", "hello")
		if err != nil || got != served {
			t.Errorf("%s: %q, %v", name, got, err)
			continue
		}
		if q := w.login.authorizations()[0]; q.Get("resource") != serverURL || q.Get("code_challenge_method") != "S256" {
			t.Errorf("%s: asked for %v", name, q)
		}
		key := oauth.StoreKey{Issuer: w.login.metadata["issuer"].(string), Resource: serverURL}
		if value, err := w.store.Load(t.Context(), key); value == nil || err != nil {
			t.Errorf("%s: no token is stored under %+v", name, key)
		}
	}
	// What the server says about itself still counts.
	w := newWorld(t)
	serveMetadata(w)
	w.server.metadata["resource"], w.server.metadata["scopes_supported"] = "https://mcp.example/mcp/", []string{"read"}
	w.mustPost(w.transport(&oauth.Options{AuthorizationServerMetadata: namedMetadata}), "read", served)
	if q := w.login.authorizations()[0]; q.Get("resource") != "https://mcp.example/mcp/" || q.Get("scope") != "read" {
		t.Errorf("asked for %v", q)
	}
}

// The metadata that the user names is trusted, but its redirects and the credentials of
// others are checked as always. Nothing else is tried.
func TestFindingRM1StillChecked(t *testing.T) {
	secret := &oauth.ClientCredentials{Client: oauth.Client{Issuer: "https://partner.example", ID: "id", Secret: "secret"}}
	for name, test := range map[string]struct {
		at      string
		grant   oauth.Grant
		arrange func(w *world)
		reason  error
	}{
		"iss of another":        {arrange: func(w *world) { w.login.iss = "https://evil.example" }, reason: oauth.ErrIssuer},
		"credentials of others": {grant: secret, reason: oauth.ErrIssuer},
		"no issuer":             {arrange: func(w *world) { delete(w.login.metadata, "issuer") }, reason: oauth.ErrUnsafeURL},
		"a user in the issuer":  {arrange: func(w *world) { w.login.metadata["issuer"] = "https://u:p@login.example" }, reason: oauth.ErrUnsafeURL},
		"no token endpoint":     {arrange: func(w *world) { delete(w.login.metadata, "token_endpoint") }, reason: oauth.ErrMetadata},
		"no document":           {at: loginURL + "/missing.well-known", reason: oauth.ErrMetadata},
		"in the clear":          {at: "http://login.example/tenant/metadata.json", reason: oauth.ErrUnsafeURL},
		"not a URL":             {at: "login.example", reason: oauth.ErrUnsafeURL},
		"token endpoint on this machine": {arrange: func(w *world) { w.login.metadata["token_endpoint"] = "http://127.0.0.1:1/token" },
			reason: oauth.ErrUnsafeURL},
		"token endpoint of the cloud": {arrange: func(w *world) { w.login.metadata["token_endpoint"] = "https://169.254.169.254/token" },
			reason: oauth.ErrUnsafeURL},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			serveMetadata(w)
			if test.arrange != nil {
				test.arrange(w)
			}
			rt := w.transport(&oauth.Options{AuthorizationServerMetadata: cmp.Or(test.at, namedMetadata), Grant: test.grant})
			w.mustFail(rt, test.reason)
			w.mustFail(rt, mcp.ErrUnauthorized)
			if n := w.asked("GET https://login.example/.well-known") + w.asked("POST https://mcp.example/register"); n != 0 {
				t.Error("another authorization server was looked up")
			}
			if w.seen(loginURL, "Basic") {
				t.Error("the secret was sent")
			}
		})
	}
}

// An authorization server that the user names may be in a private network.
func TestFindingRM1PrivateNetwork(t *testing.T) {
	const at = "https://10.0.0.1"
	w := newWorld(t)
	w.login = newIssuer(at)
	w.server.issuer = w.login
	w.hosts[at] = w.login
	w.mustPost(w.transport(&oauth.Options{AuthorizationServerMetadata: at + "/.well-known/oauth-authorization-server"}), "", served)
	w.store = oauth.NewMemoryStore()
	w.login.revoke()
	w.server.metadata["authorization_servers"] = []string{at}
	w.mustFail(w.transport(nil), oauth.ErrUnsafeURL) // but not if the server names it
}

// Metadata that the user names need not promise PKCE, as that of some large providers does
// not. PKCE is used. Metadata that promises something else is refused.
func TestFindingRM6PKCEWithoutPromise(t *testing.T) {
	for _, test := range []struct {
		methods any
		named   bool
		good    bool
	}{
		{nil, true, true}, {[]string{"plain", "S256"}, true, true},
		{nil, false, false}, {[]string{}, true, false}, {[]string{"plain"}, true, false},
	} {
		w := newWorld(t)
		w.login.metadata["code_challenge_methods_supported"] = test.methods
		opts := &oauth.Options{}
		if test.named {
			opts.AuthorizationServerMetadata = loginURL + "/.well-known/oauth-authorization-server"
		}
		rt := w.transport(opts)
		if !test.good {
			w.mustFail(rt, oauth.ErrMetadata)
			continue
		}
		w.mustPost(rt, "", served)
		if q := w.login.authorizations()[0]; q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" {
			t.Errorf("%v: %v", test.methods, q)
		}
	}
}

// InsecureNoResource is for authorization servers that refuse the parameter.
func TestFindingRM3NoResource(t *testing.T) {
	for _, leftOut := range []bool{false, true} {
		w := newWorld(t)
		w.login.refresh = "r"
		rt := w.transport(&oauth.Options{InsecureNoResource: leftOut})
		w.mustPost(rt, "", served)
		w.login.revoke()
		w.mustPost(rt, "", served)
		w.wantRefreshes(1)
		if got := w.login.authorizations()[0].Has("resource"); got == leftOut {
			t.Errorf("InsecureNoResource %v: in the authorization request: %v", leftOut, got)
		}
		for _, g := range w.login.granted("") {
			if got := g.form.Has("resource"); got == leftOut {
				t.Errorf("InsecureNoResource %v: in %v: %v", leftOut, g.form, got)
			}
		}
		w.mustPost(w.transport(&oauth.Options{InsecureNoResource: leftOut}), "", served) // with the stored token
		w.wantAuthorizations(1)
	}
}
