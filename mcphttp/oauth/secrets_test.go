// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcphttp/oauth"
)

// The password of a URL is in no error and no log, wherever the URL comes from.
func TestFindingX16NoPasswordsInErrors(t *testing.T) {
	const password = "S7secret"
	for _, server := range []string{
		"http://u:S7secret@127.0.0.1:1/mcp",
		"https://u:S7%secret@mcp.example/mcp", // not a URL, because of the %
		"u:S7secret@mcp.example/mcp",          // the scheme is missing
	} {
		rt := oauth.NewTransport(server, nil)
		err := rt.Authorize(t.Context())
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "mcp") {
			t.Errorf("%s: %v", server, err)
		}
		rt.Close()
	}
	const evil = "https://u:S7secret@login.example"
	metadata := func(name string) func(w *world) {
		return func(w *world) { w.login.metadata[name] = evil }
	}
	for name, arrange := range map[string]func(w *world){
		"challenge":              func(w *world) { w.server.metadata, w.server.challenge = nil, `Bearer resource_metadata="`+evil+`"` },
		"resource":               func(w *world) { w.server.metadata["resource"] = evil },
		"authorization server":   func(w *world) { w.server.metadata["authorization_servers"] = []string{evil} },
		"issuer":                 metadata("issuer"),
		"authorization_endpoint": metadata("authorization_endpoint"),
		"token_endpoint":         metadata("token_endpoint"),
		"registration_endpoint":  metadata("registration_endpoint"),
		"iss":                    func(w *world) { w.login.redirect = func(params url.Values) { params.Set("iss", evil) } },
	} {
		w := newWorld(t)
		arrange(w)
		var log strings.Builder
		got, err := post(t.Context(), w.transport(&oauth.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}), "", "hello")
		if err == nil {
			t.Errorf("%s: got %s", name, got)
			continue
		}
		if text := err.Error() + log.String(); strings.Contains(text, password) {
			t.Errorf("%s: the password is in %s", name, text)
		}
	}
	w := newWorld(t)
	_, err := post(t.Context(), w.transport(&oauth.Options{Grant: &oauth.ClientCredentials{Client: oauth.Client{Issuer: evil, ID: "id", Secret: "s"}}}), "", "hello")
	if err == nil || strings.Contains(err.Error(), password) {
		t.Errorf("configured issuer: %v", err)
	}
}
