// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// oddMembers arranges documents with a member of the wrong type, by the place and the name of
// the member.
var oddMembers = map[string]func(w *world, name string, value any){
	"resource": func(w *world, name string, value any) { w.server.metadata[name] = value },
	"server":   func(w *world, name string, value any) { w.login.metadata[name] = value },
	"token": func(w *world, name string, value any) {
		w.login.answers = func(_ url.Values, answer map[string]any) { answer[name] = value }
	},
	"registration": func(w *world, name string, value any) {
		w.login.register = func(map[string]any) (int, map[string]any) {
			answer := map[string]any{"client_id": "c"}
			answer[name] = value
			return 201, answer
		}
	},
}

// A member that is not needed and has the wrong type is left out, with a warning that names
// it.
func TestFindingR12OptionalMembers(t *testing.T) {
	for _, test := range []struct {
		place, name string
		value       any
	}{
		{"resource", "scopes_supported", "a b"},
		{"resource", "scopes_supported", []any{"a", 5}},
		{"resource", "authorization_servers", []any{nil, 5, loginURL, map[string]any{}}},
		{"resource", "dpop_bound_access_tokens_required", "false"},
		{"server", "scopes_supported", "a b"},
		{"server", "client_id_metadata_document_supported", "true"},
		{"server", "authorization_response_iss_parameter_supported", "true"},
		{"server", "token_endpoint_auth_methods_supported", "none"},
		{"server", "token_endpoint_auth_signing_alg_values_supported", map[string]any{}},
		{"server", "dpop_signing_alg_values_supported", false},
		{"server", "code_challenge_methods_supported", []any{1, "S256"}},
		{"token", "scope", []string{"a"}},
		{"token", "error", false},
		{"token", "error_description", 1},
		{"token", "refresh_token", false},
		{"token", "issued_token_type", 1},
		{"token", "token_type", []string{"Bearer"}},
		{"registration", "redirect_uris", "https://app.example/callback"},
		{"registration", "client_secret_expires_at", "0"},
		{"registration", "client_secret", 0},
		{"registration", "token_endpoint_auth_method", false},
		{"registration", "error", false},
	} {
		w := newWorld(t)
		oddMembers[test.place](w, test.name, test.value)
		var log strings.Builder
		got, err := post(t.Context(), w.transport(&oauth.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}), "", "hello")
		if err != nil || got != served {
			t.Errorf("%s: %s %v: %q, %v", test.place, test.name, test.value, got, err)
		}
		if text := log.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, test.name) {
			t.Errorf("%s: %s %v: logged %s", test.place, test.name, test.value, text)
		}
	}
}

// A member that is needed must have the right type.
func TestFindingR12NeededMembers(t *testing.T) {
	for _, test := range []struct {
		place, name string
		value       any
		want        string
	}{
		{"resource", "resource", 1, "resource"},
		{"resource", "authorization_servers", loginURL, "authorization_servers"},
		{"resource", "authorization_servers", []any{1}, "names no authorization server"},
		{"server", "issuer", 1, "issuer"},
		{"server", "token_endpoint", []string{"x"}, "token_endpoint"},
		{"server", "authorization_endpoint", false, "authorization_endpoint"},
		{"server", "code_challenge_methods_supported", "S256", "PKCE"},
		{"token", "access_token", 5, "token response"},
		{"registration", "client_id", 5, "registration response"},
	} {
		w := newWorld(t)
		oddMembers[test.place](w, test.name, test.value)
		got, err := post(t.Context(), w.transport(nil), "", "hello")
		if err == nil || !errors.Is(err, mcp.ErrUnauthorized) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %s %v: %q, %v", test.place, test.name, test.value, got, err)
		}
	}
}

// The code of an error response counts, whatever else is in it: an unknown client registers
// again.
func TestFindingR12ErrorResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, rt := refreshing(t)
		w.login.token = refuseRefresh(400, map[string]any{"access_token": 1, "error_description": 5, "error": "invalid_client"})
		<-time.After(2 * time.Hour)
		w.login.revoke()
		w.mustPost(rt, "", served)
		if n := len(w.login.clients); n != 2 {
			t.Errorf("%d registrations, want 2", n)
		}
	})
}
