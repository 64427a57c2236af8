// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	"github.com/go-psi/psi/mcphttp"
)

// restRoutes returns the REST API: GET /items?q=…, and PUT /items/{name}.
func restRoutes(stock *inventory) http.Handler {
	r := chi.NewRouter()
	r.Get("/items", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, stock.find(r.URL.Query().Get("q")))
	})
	r.With(requireScope(scopeWrite)).Put("/items/{name}", func(w http.ResponseWriter, r *http.Request) {
		// The parameter of chi is escaped only if the name contains a slash.
		name, err := url.PathUnescape(path.Base(r.URL.EscapedPath()))
		if err != nil || utf8.RuneCountInString(name) > maxName || !utf8.ValidString(name) {
			http.Error(w, "expected a name of up to 100 characters", http.StatusBadRequest)
			return
		}
		it := item{Name: name}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&it.Count); err != nil || it.Count < 0 {
			http.Error(w, "expected a number of at least 0", http.StatusBadRequest)
			return
		}
		if err := stock.set(it.Name, it.Count); err != nil {
			http.Error(w, err.Error(), http.StatusInsufficientStorage)
			return
		}
		writeJSON(w, it)
	})
	return r
}

// requireScope is the REST counterpart of middleware.RequireScopes. auth.Require has
// already authenticated the caller.
func requireScope(scope string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !mcphttp.PrincipalOf(r).HasScope(scope) {
				http.Error(w, "this needs the scope "+scope, http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // an error means that the client has gone
}
