// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authtest

import (
	"maps"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	pathKeys       = "/jwks"
	pathIntrospect = "/introspect"
)

// IntrospectionURL returns the URL of the introspection endpoint (RFC 7662), which requires
// no authentication.
func (i *Issuer) IntrospectionURL() string { return i.URL + pathIntrospect }

// ServeHTTP serves the OAuth (RFC 8414) and OpenID Connect metadata, the keys, and
// introspection. It implements [http.Handler].
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "GET /.well-known/oauth-authorization-server", "GET /.well-known/openid-configuration":
		writeJSON(w, must(json.Marshal(map[string]any{
			"issuer": i.URL, "jwks_uri": i.URL + pathKeys, "introspection_endpoint": i.IntrospectionURL(),
			"response_types_supported": []string{},
		})))
	case "GET " + pathKeys:
		writeJSON(w, i.JWKS())
	case "POST " + pathIntrospect:
		writeJSON(w, must(json.Marshal(i.introspect(r.FormValue("token")))))
	default:
		http.NotFound(w, r)
	}
}

func writeJSON(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// introspect returns the introspection response for a token.
func (i *Issuer) introspect(token string) Claims {
	i.mu.Lock()
	defer i.mu.Unlock()
	c := i.issued[token]
	if c == nil || c["iss"] != i.URL || !isCurrent(c, time.Now()) {
		return Claims{"active": false}
	}
	c = maps.Clone(c)
	c["active"] = true
	return c
}

// isCurrent reports whether exp and nbf allow a token at the given time. It ignores values
// of types other than [time.Time] and int64.
func isCurrent(c Claims, now time.Time) bool {
	expiry, expires := c["exp"].(int64)
	begin, begins := c["nbf"].(int64)
	return (!expires || now.Unix() < expiry) && (!begins || now.Unix() >= begin)
}
