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

// IntrospectionURL returns where tokens are introspected (RFC 7662), by anyone.
func (i *Issuer) IntrospectionURL() string { return i.URL + pathIntrospect }

// ServeHTTP serves the metadata (RFC 8414, and that of OpenID Connect), the keys and
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

// introspect returns what there is to say about a token.
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

// isCurrent reports whether a token is valid at a time. Times that the test gave in
// another type than [time.Time] or int64 are not looked at.
func isCurrent(c Claims, now time.Time) bool {
	expiry, expires := c["exp"].(int64)
	begin, begins := c["nbf"].(int64)
	return (!expires || now.Unix() < expiry) && (!begins || now.Unix() >= begin)
}
