// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package authserver implements the authorization server of one MCP server, in front of an
// identity provider that MCP clients cannot use themselves: one that does not let clients
// register, or whose tokens are not for the MCP server.
//
//	front, err := authserver.New("https://mcp.example.com/mcp", &authserver.Options{
//		Provider: authserver.GitHub(id, secret),
//	})
//	if err != nil {
//		log.Fatal(err)
//	}
//	router := chi.NewRouter() // or another one; endpoint is an mcphttp.Handler
//	router.Mount("/", front)
//	router.With(auth.Require(front.Verifier(), &auth.Options{Metadata: front.Metadata()})).Handle("/mcp", endpoint)
//
// A login passes through these steps:
//
//	register   the client gets an ID (RFC 7591), or has a metadata document at its ID
//	authorize  the client sends the user here; the request is checked
//	consent    the user sees who asks for what, and agrees
//	provider   the user logs in at the identity provider
//	callback   the same browser comes back, and is sent to the client with a code
//	token      the client exchanges the code for tokens, and later refreshes them
//	revoke     the client, or a replayed token, ends the grant
//
// A consent is remembered for 90 days, but only for a program that has registered itself on the
// user's machine: others know the IDs of all other clients, and could ask in their name.
//
// Clients get tokens that this server signs, for the MCP server only. Tokens of the identity
// provider never leave the server: see [Server.TokenSource].
//
// Everything that outlives a request is in a [store.Values], sealed, so replicas that share
// Values and Keys can each serve any step. A replica that is killed during a step loses no grant.
// The user must start again if it was at callback, or had exchanged the code and not answered.
// Of the grants of a user, 256 are kept.
//
// This package is a tool, as docs/stability.md defines it: it may change in its first year.
package authserver
