// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/go-chi/chi/v5"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/debug"
)

// The page is mounted next to the endpoint. Its content is also available as JSON.
func ExampleHandler() {
	mux := mcp.NewMux("clock", "v1.0.0", nil)
	mux.Tool("now", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		return "", errors.New("the clock has stopped")
	}, nil))

	endpoint := mcphttp.NewHandler(mux, nil)
	r := chi.NewRouter()
	r.Handle("/mcp", endpoint)
	r.Mount("/debug/mcp", debug.Handler(mux, endpoint))
	server := httptest.NewServer(r)
	defer server.Close()

	// Requests are observed from the first look on.
	page := server.URL + "/debug/mcp?format=json"
	type recent struct {
		Recent []struct{ Method, Name, Outcome, Error string }
	}
	read := func() (shown recent, err error) {
		res, err := http.Get(page)
		if err != nil {
			return shown, err
		}
		defer res.Body.Close()
		return shown, json.NewDecoder(res.Body).Decode(&shown)
	}
	if _, err := read(); err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	conn, err := mcp.NewClient("example", "v1.0.0", nil).Connect(ctx, mcphttp.NewTransport(server.URL+"/mcp", nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	if _, err := conn.CallTool(ctx, &mcp.CallToolParams{Name: "now"}); err != nil {
		fmt.Println(err)
	}

	shown, err := read()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range shown.Recent {
		fmt.Println(r.Method, r.Name, r.Outcome, r.Error)
	}
	// Output:
	// tools/call now isError the clock has stopped
	// server/discover  ok
}

// A page that is reachable from other machines needs its own authorization.
func ExampleNewHandler() {
	mux := mcp.NewMux("clock", "v1.0.0", nil)
	page := debug.NewHandler(mux, &debug.Options{
		AllowedHosts: []string{"clock.example.com"},
		Authorize: func(r *http.Request) (*mcp.Principal, error) {
			user, password, _ := r.BasicAuth()
			if user != "operator" || password != "correct horse" {
				return nil, errors.New("wrong user or password")
			}
			return &mcp.Principal{Issuer: "operators", Subject: user}, nil
		},
	})

	for _, password := range []string{"correct horse", "guess"} {
		r := httptest.NewRequest(http.MethodGet, "https://clock.example.com/debug/mcp", nil)
		r.SetBasicAuth("operator", password)
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 403
}
