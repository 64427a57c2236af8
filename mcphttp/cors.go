// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/go-chi/cors"

	"github.com/go-psi/psi/internal/header"
)

// CORS returns HTTP middleware that lets web pages from other origins use a [Handler] or an
// [SSEHandler]. Origins have the same form as in [Options].AllowedOrigins; "*" allows any.
// Origins listed here need not be listed there. CORS must wrap all middleware that refuses
// requests, such as authentication, so that pages can read why a request was refused. It
// answers preflight requests.
//
// Pages may send any header, including Authorization, and may read the response headers
// that MCP clients need. Cookies are not allowed, because a page must not act for a user
// who happens to be logged in. CORS panics if there are no origins or one is invalid.
//
// Refused preflight requests are logged to slog.Default with the reason, because the browser
// does not report it to the page. If there are many, they are logged less and less often.
func CORS(origins ...string) func(http.Handler) http.Handler {
	if len(origins) == 0 {
		panic("mcphttp: CORS: there are no origins; list the origins of the pages that may use the server")
	}
	mustBeOrigins("CORS", origins)
	origins = slices.Clone(origins)
	log := &refusalLog{}
	headers := cors.Handler(cors.Options{
		AllowOriginFunc: func(_ *http.Request, origin string) bool { return matchesAny(origins, origin) },
		AllowedMethods:  corsMethods,
		AllowedHeaders:  []string{"*"}, // tools choose the names of argument headers
		ExposedHeaders:  []string{header.Session, "WWW-Authenticate", "DPoP-Nonce", "Retry-After"},
		MaxAge:          7200, // seconds; browsers cache it for at most that long
	})
	return func(next http.Handler) http.Handler {
		inner := headers(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if origin := r.Header.Get("Origin"); origin != "" && matchesAny(origins, origin) {
				r = r.WithContext(context.WithValue(r.Context(), originKey{}, origin))
			}
			next.ServeHTTP(w, r)
		}))
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if why := preflightRefusal(r, origins); why != "" {
				log.write(slog.Default(), r, "mcphttp: a preflight request was refused", why)
			}
			inner.ServeHTTP(w, r)
		})
	}
}

// preflightRefusal returns why a preflight request is refused, or "" if it is allowed or is
// not a preflight request.
func preflightRefusal(r *http.Request, origins []string) string {
	method := r.Header.Get("Access-Control-Request-Method")
	switch {
	case r.Method != http.MethodOptions || method == "":
		return ""
	case !matchesAny(origins, r.Header.Get("Origin")):
		return fmt.Sprintf("the origin %q is not one of CORS", r.Header.Get("Origin"))
	case !slices.Contains(corsMethods, method):
		return fmt.Sprintf("the method %q is not one of the protocol", method)
	}
	return ""
}

// corsMethods are the methods that pages may use.
var corsMethods = []string{http.MethodGet, http.MethodPost, http.MethodDelete}

// A refusalLog logs refused requests. After the first 16, it logs only those whose number
// is a power of two, so that a page cannot fill the disk of the server.
type refusalLog struct{ count atomic.Int64 }

func (l *refusalLog) write(log *slog.Logger, r *http.Request, what, why string) {
	if n := l.count.Add(1); n <= 16 || n&(n-1) == 0 {
		log.WarnContext(r.Context(), what, "reason", why, "path", r.URL.Path, "refused", n)
	}
}

type originKey struct{}

// originAllowed reports whether CORS allowed the origin of the request.
func originAllowed(r *http.Request) bool {
	origin, _ := r.Context().Value(originKey{}).(string)
	return origin != "" && origin == r.Header.Get("Origin")
}
