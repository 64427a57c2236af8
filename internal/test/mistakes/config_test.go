// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mistakes_test

import (
	"context"
	"os"
	"os/exec"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcpstdio"
	"github.com/go-psi/psi/middleware"
)

// options are mistakes in the options of servers, middleware and authorization.
var options = []mistake{
	{"a URL as a host", serves(&mcphttp.Options{AllowedHosts: []string{"https://mcp.example.com/mcp"}}),
		[]string{`mcphttp: Options.AllowedHosts: "https://mcp.example.com/mcp" is not a host: write "mcp.example.com"`}},
	{"a pattern as a host", serves(&mcphttp.Options{AllowedHosts: []string{"mcp.*.com"}}),
		[]string{`mcphttp: Options.AllowedHosts: "mcp.*.com" is not a host: "*" must be the whole name, the port, or the first label`}},
	{"an empty host", serves(&mcphttp.Options{AllowedHosts: []string{""}}), []string{`mcphttp: Options.AllowedHosts: "" is not a host: it is empty`}},
	{"a path as a host", serves(&mcphttp.Options{AllowedHosts: []string{"example.com/mcp"}}), []string{`"example.com/mcp" is not a host: write one such as "mcp.example.com"`}},
	{"a host as an origin", serves(&mcphttp.Options{AllowedOrigins: []string{"app.example.com"}}),
		[]string{`mcphttp: Options.AllowedOrigins: "app.example.com" is not an origin: write "https://app.example.com"`}},
	{"a URL as an origin", serves(&mcphttp.Options{AllowedOrigins: []string{"https://app.example.com/"}}),
		[]string{`"https://app.example.com/" is not an origin: write "https://app.example.com"`}},
	{"an origin of CORS", panics(func() { mcphttp.CORS("app.example.com") }), []string{`mcphttp: CORS: "app.example.com" is not an origin`}},
	{"no origin of CORS", panics(func() { mcphttp.CORS() }), []string{"mcphttp: CORS: there are no origins; list the origins"}},
	{"a short state key", panics(func() { mcp.NewMux("m", "v1", &mcp.MuxOptions{StateKeys: [][]byte{[]byte("short")}}) }),
		[]string{"mcp: NewMux: MuxOptions.StateKeys", "at least 16"}},
	{"two scopes in one string", panics(func() { middleware.RequireScopes("a:read a:write") }), []string{`middleware.RequireScopes: "a:read a:write" is not a scope`, "each scope as a string of its own"}},
	{"scopes with a comma", panics(func() { middleware.RequireScopes("a:read,a:write") }), []string{`"a:read,a:write" is not a scope`}},
	{"no scopes to require", panics(func() { middleware.RequireScopes() }), []string{"middleware.RequireScopes: there are no scopes to require"}},
	{"a rate of 0", panics(func() { middleware.NewTokenBucket(0, time.Minute, nil) }), []string{"middleware.NewTokenBucket", "must be positive"}},
	{"a timeout of 0", panics(func() { middleware.Timeout(0) }), []string{"middleware.Timeout", "must be positive"}},
	{"a heartbeat without a pause", panics(func() { middleware.Heartbeat(0) }), []string{"middleware.Heartbeat", "must be positive"}},
	{"a limiter that is nil", panics(func() { middleware.RateLimit(nil, nil) }), []string{"middleware.RateLimit: the key and the limiter must not be nil"}},
	{"a meter that is nil", panics(func() { middleware.Metrics(nil, nil) }), []string{"middleware.Metrics: the meter must not be nil"}},
	{"a verifier that is nil", panics(func() { auth.Require(nil, nil) }), []string{"auth: Require wants a verifier"}},
	{"another audience", panics(func() {
		tokens, err := auth.NewJWT("https://issuer.example", "https://staging.example.com/mcp", nil)
		if err == nil {
			auth.Require(tokens, &auth.Options{Metadata: &auth.Metadata{Resource: "https://mcp.example.com/mcp"}})
		}
	}), []string{`*auth.JWT accepts tokens for "https://staging.example.com/mcp"`, `ask for tokens for "https://mcp.example.com/mcp"`, "make the verifier with Metadata.Resource"}},
	{"no issuer", newJWT("", nil), []string{"auth: NewJWT wants an issuer"}},
	{"a symmetric algorithm", newJWT("https://issuer.example", &auth.JWTOptions{Algorithms: []string{"HS256"}}),
		[]string{`auth: the algorithm "HS256" is not one of`, "RS256"}},
	{"an audience claim without values", newJWT("https://issuer.example", &auth.JWTOptions{AudienceClaims: map[string][]string{"client_id": nil}}),
		[]string{"auth: JWTOptions.AudienceClaims", "client_id"}},
	{"a short API key", panics(func() { auth.APIKeys(map[string]*mcp.Principal{"secret": {Subject: "ann"}}, nil) }), []string{"auth: an API key has 6 bytes", "made at random"}},
	{"a nil command", panics(func() { mcpstdio.NewCommand(nil, nil) }), []string{"mcpstdio: NewCommand of a nil command"}},
	{"a command with an output", panics(func() {
		cmd := exec.Command("true")
		cmd.Stdout = os.Stdout
		mcpstdio.NewCommand(cmd, nil)
	}), []string{"mcpstdio: NewCommand of a command with a Stdin or Stdout: messages go there"}},
	{"a root that is no file", func() error {
		_, err := mcp.NewClient("c", "v1", &mcp.ClientOptions{Roots: []mcp.Root{{URI: "/home"}}}).Connect(context.Background(), mcp.InProcess(newMux()))
		return err
	}, []string{`mcp: the root "/home" is not a file:// URI`}},
	{"a version that does not exist", func() error {
		_, err := mcp.NewClient("c", "v1", &mcp.ClientOptions{Version: "2020-01-01"}).Connect(context.Background(), mcp.InProcess(newMux()))
		return err
	}, []string{"mcp: Connect: this client speaks 2026-07-28, ", `"2020-01-01" is not supported`}},
	{"arguments that are no object", func() error {
		mux := newMux()
		mux.Tool("t", says[none](nil))
		c, err := mcp.NewClient("c", "v1", nil).Connect(context.Background(), mcp.InProcess(mux))
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = mcp.Call[string](context.Background(), c, "t", []int{1})
		return err
	}, []string{"params.arguments must be an object"}},
}

func serves(opts *mcphttp.Options) func() error {
	return panics(func() { mcphttp.NewHandler(newMux(), opts) })
}

// newJWT returns a function that makes a verifier of tokens for https://mcp.example.com/mcp.
func newJWT(issuer string, opts *auth.JWTOptions) func() error {
	return func() error {
		_, err := auth.NewJWT(issuer, "https://mcp.example.com/mcp", opts)
		return err
	}
}
