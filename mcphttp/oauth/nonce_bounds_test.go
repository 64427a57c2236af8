// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"fmt"
	"net/http"
	"testing"
)

// A request is retried with another nonce up to three times, at the authorization server and
// at the MCP server, and only if there is a nonce to send.
func TestNonceBounds(t *testing.T) {
	for name, c := range map[string]struct {
		code  string
		nonce bool
		posts int
	}{
		"a nonce each time":  {"use_dpop_nonce", true, 4},
		"none to be sent":    {"use_dpop_nonce", false, 1},
		"for another reason": {"invalid_dpop_proof", true, 1},
	} {
		n := 0
		next := func(rw http.ResponseWriter) {
			if n++; c.nonce {
				rw.Header().Set("DPoP-Nonce", fmt.Sprint("nonce-", n))
			}
		}
		b := newBound(t)
		b.login.token = func(rw http.ResponseWriter, _ *http.Request) bool {
			next(rw)
			writeJSON(rw, 400, map[string]any{"error": c.code})
			return true
		}
		if got, err := post(t.Context(), b.transport(nil), "", "hello"); err == nil {
			t.Errorf("%s: %q", name, got)
		}
		if n != c.posts {
			t.Errorf("%s: %d token requests, want %d", name, n, c.posts)
		}

		n = 0
		b = newBound(t)
		first := b.hosts[origin(serverURL)]
		b.hosts[origin(serverURL)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.Header.Get("DPoP") == "" {
				first.ServeHTTP(rw, r)
				return
			}
			next(rw)
			rw.Header().Set("WWW-Authenticate", fmt.Sprintf(`DPoP error=%q`, c.code))
			rw.WriteHeader(http.StatusUnauthorized)
		})
		got, err := post(t.Context(), b.transport(nil), "", "hello")
		if n != c.posts || err == nil && got[:3] != "401" {
			t.Errorf("%s: %d requests to the server, want %d: %q, %v", name, n, c.posts, got, err)
		}
	}
}
