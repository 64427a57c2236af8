// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package authtest issues access tokens for tests of servers that package auth protects.
//
// An [Issuer] stands in for the authorization server. It publishes its metadata and keys,
// and answers introspection, as a real one does, so the server under test needs no
// changes:
//
//	issuer := authtest.NewIssuer(t, "https://notes.example.com/mcp")
//	url := mcptest.Serve(t, newServer(issuer.URL, issuer.Audience))
//	opts := &mcphttp.TransportOptions{Header: issuer.Bearer(authtest.Claims{"sub": "ada", "scope": "notes:read"})}
//	conn := mcptest.Dial(t, mcphttp.NewTransport(url+"/mcp", opts), nil)
//
// [Issuer.Token] returns a valid token with any claims, and [Issuer.InvalidTokens] those
// that a server has to refuse. A [ProofKey] is the client of tokens that are bound to a
// key (DPoP).
//
// The package has no login: see mcphttp/oauth for clients, and examples/auth for a whole
// authorization server.
package authtest
