// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authtest_test

import (
	"errors"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcphttp/auth/authtest"
)

// shown is the test function that an example shows: examples have no *testing.T.
var shown func(t *testing.T)

func TestExamples(t *testing.T) {
	for name, example := range map[string]func(){"NewIssuer": ExampleNewIssuer, "NewProofKey": ExampleNewProofKey} {
		t.Run(name, func(t *testing.T) {
			example()
			shown(t)
		})
	}
}

// A server that accepts only the tokens of its issuer.
func ExampleNewIssuer() { //nolint:testableexamples // it shows a test
	shown = func(t *testing.T) { // func TestTokens(t *testing.T)
		issuer := authtest.NewIssuer(t, resource)
		server := whoami(must(auth.NewJWT(issuer.URL, resource, nil))) // the server under test
		url := mcptest.Serve(t, server) + "/mcp"

		ada := &mcphttp.TransportOptions{Header: issuer.Bearer(authtest.Claims{"sub": "ada"})}
		conn := mcptest.Dial(t, mcphttp.NewTransport(url, ada), nil)
		if got, err := mcp.Call[string](t.Context(), conn, "whoami", nil); err != nil || got != "ada" {
			t.Errorf("got %q, %v", got, err)
		}
		for problem, token := range issuer.InvalidTokens(nil) {
			mallory := &mcphttp.TransportOptions{}
			mallory.Header = map[string][]string{"Authorization": {"Bearer " + token}}
			_, err := mcp.NewClient("test", "v1.0.0", nil).Connect(t.Context(), mcphttp.NewTransport(url, mallory))
			if !errors.Is(err, mcp.ErrUnauthorized) {
				t.Errorf("a token that is %s: %v", problem, err)
			}
		}
	}
}

// A server that requires tokens bound to a key of the client.
func ExampleNewProofKey() { //nolint:testableexamples // it shows a test
	shown = func(t *testing.T) {
		issuer, key := authtest.NewIssuer(t, resource), authtest.NewProofKey()
		server := whoami(must(auth.NewDPoP(must(auth.NewJWT(issuer.URL, resource, nil)), resource, nil)))

		token := issuer.Token(authtest.Claims{"sub": "ada", "cnf": key.Confirmation()})
		opts := &mcphttp.TransportOptions{Client: key.Client(resource, token)}
		conn := mcptest.Dial(t, mcphttp.NewTransport(mcptest.Serve(t, server)+"/mcp", opts), nil)
		if got, err := mcp.Call[string](t.Context(), conn, "whoami", nil); err != nil || got != "ada" {
			t.Errorf("got %q, %v", got, err)
		}
	}
}
