// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"net/http"
	"slices"

	"github.com/go-chi/cors"
)

// CORS returns HTTP middleware that lets web pages of other origins use a [Handler] or an
// [SSEHandler]. An origin has the form of those in [Options].AllowedOrigins; "*" is any.
// Origins that are listed here need not be listed there. CORS must be outside of all
// middleware that refuses requests, such as authentication, so that pages can read why
// they were refused. It answers preflight requests.
//
// Pages may send any header, including Authorization, and read those that MCP clients
// need. Cookies are not allowed, because a page must not act for the user who happens to be
// logged in. CORS panics without origins, and for a text that is
// not an origin.
func CORS(origins ...string) func(http.Handler) http.Handler {
	if len(origins) == 0 {
		panic("mcphttp: CORS: there are no origins; list those of the pages that may use the server")
	}
	mustBeOrigins("CORS", origins)
	origins = slices.Clone(origins)
	headers := cors.Handler(cors.Options{
		AllowOriginFunc: func(_ *http.Request, origin string) bool { return matchesAny(origins, origin) },
		AllowedMethods:  []string{http.MethodGet, http.MethodPost, http.MethodDelete},
		AllowedHeaders:  []string{"*"}, // tools choose the names of argument headers
		ExposedHeaders:  []string{headerSession, "WWW-Authenticate", "DPoP-Nonce", "Retry-After"},
		MaxAge:          7200, // seconds; browsers cache it no longer
	})
	return func(next http.Handler) http.Handler {
		return headers(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if origin := r.Header.Get("Origin"); origin != "" && matchesAny(origins, origin) {
				r = r.WithContext(context.WithValue(r.Context(), originKey{}, origin))
			}
			next.ServeHTTP(w, r)
		}))
	}
}

type originKey struct{}

// originAllowed reports whether CORS let in the origin of a request.
func originAllowed(r *http.Request) bool {
	origin, _ := r.Context().Value(originKey{}).(string)
	return origin != "" && origin == r.Header.Get("Origin")
}
