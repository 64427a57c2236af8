// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package authtest issues access tokens for testing servers that are protected by package
// auth.
//
// An [Issuer] stands in for the authorization server. It publishes its metadata and keys
// and answers introspection requests, like a real one, so the server under test needs no
// changes:
//
//	issuer := authtest.NewIssuer(t, "https://notes.example.com/mcp")
//	url := mcptest.Serve(t, newServer(issuer.URL, issuer.Audience))
//	opts := &mcphttp.TransportOptions{Header: issuer.Bearer(authtest.Claims{"sub": "ada", "scope": "notes:read"})}
//	conn := mcptest.Dial(t, mcphttp.NewTransport(url+"/mcp", opts), nil)
//
// [Issuer.Token] returns a valid token with any claims, and [Issuer.InvalidTokens] returns
// tokens that a server must reject. A [ProofKey] acts as the client for tokens that are
// bound to a key (DPoP).
//
// The package does not implement login: see mcphttp/oauth for clients, and examples/auth
// for a complete authorization server.
//
// This package is stable, as docs/stability.md defines it.
package authtest
