// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"net/http"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// shared is a host with a path for each tenant. Documents are served at their paths; all
// other paths are the server of the tenant at /mcp.
func shared(t *testing.T, challenge string, documents map[string]string) *world {
	t.Helper()
	w := newWorld(t)
	w.server.challenge = challenge
	w.hosts[origin(serverURL)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if id, ok := documents[r.URL.Path]; ok {
			writeJSON(rw, 200, map[string]any{"resource": id, "authorization_servers": []string{loginURL}})
			return
		}
		if r.URL.Path != "/mcp" {
			http.NotFound(rw, r)
			return
		}
		w.server.ServeHTTP(rw, r)
	})
	return w
}

const (
	wellKnownRoot = "/.well-known/oauth-protected-resource"
	advertise     = `Bearer resource_metadata="https://mcp.example`
)

// A tenant of a shared host cannot get tokens that are valid for the whole host: only the
// host can say, at its own well-known URL, that its tenants are one resource.
func TestFindingS7ParentResource(t *testing.T) {
	const host = "https://mcp.example"
	for name, test := range map[string]struct {
		challenge string
		documents map[string]string // resources by the path of their metadata
		want      string            // that a token was requested for, "" for none
	}{
		"the server's own, advertised":         {advertise + `/mcp/prm.json"`, map[string]string{"/mcp/prm.json": serverURL}, serverURL},
		"the host, advertised by the tenant":   {advertise + `/mcp/prm.json"`, map[string]string{"/mcp/prm.json": host}, ""},
		"the host, with a slash":               {advertise + `/mcp/prm.json"`, map[string]string{"/mcp/prm.json": host + "/"}, ""},
		"the host, at the tenant's well-known": {"Bearer", map[string]string{wellKnownRoot + "/mcp": host}, ""},
		"the host, at its own well-known":      {"Bearer", map[string]string{wellKnownRoot: host}, host},
		"the host's own, advertised":           {advertise + wellKnownRoot + `"`, map[string]string{wellKnownRoot: host}, host},
		"the tenant's, at the host's":          {"Bearer", map[string]string{wellKnownRoot: serverURL}, serverURL},
		"a query makes another place":          {advertise + wellKnownRoot + `?tenant=evil"`, map[string]string{wellKnownRoot: host}, host}, // by the place without it
		"wrong, then right":                    {advertise + `/mcp/prm.json"`, map[string]string{"/mcp/prm.json": host, wellKnownRoot + "/mcp": serverURL}, serverURL},
		"one document in all places":           {advertise + wellKnownRoot + `/mcp"`, map[string]string{wellKnownRoot + "/mcp": host, wellKnownRoot: host}, host},
	} {
		t.Run(name, func(t *testing.T) {
			w := shared(t, test.challenge, test.documents)
			if test.want == "" {
				w.mustFail(w.transport(nil), oauth.ErrResource)
				w.wantAuthorizations(0)
				return
			}
			w.mustPost(w.transport(nil), "", served)
			if got := w.login.authorizations()[0].Get("resource"); got != test.want {
				t.Errorf("a token for %q, want %q", got, test.want)
			}
		})
	}
}

// ExactResource is for hosts whose tenants are not one resource, whatever the host says.
func TestFindingS7ExactResource(t *testing.T) {
	w := shared(t, "Bearer", map[string]string{wellKnownRoot: "https://mcp.example"})
	w.mustFail(w.transport(&oauth.Options{ExactResource: true}), oauth.ErrResource)
	w.mustFail(w.transport(&oauth.Options{ExactResource: true}), mcp.ErrUnauthorized)
	w.wantAuthorizations(0)

	w = shared(t, "Bearer", map[string]string{wellKnownRoot + "/mcp": serverURL + "/"}) // a slash at the end says nothing
	w.mustPost(w.transport(&oauth.Options{ExactResource: true}), "", served)
}

// A server that is distinguished by its query does not get the tokens of the others.
func TestFindingS7Query(t *testing.T) {
	w := shared(t, advertise+`/mcp/prm.json"`, map[string]string{"/mcp/prm.json": serverURL})
	w.server.url = serverURL + "?tenant=evil"
	w.mustFail(w.transport(nil), oauth.ErrResource)
	w.wantAuthorizations(0)
}
