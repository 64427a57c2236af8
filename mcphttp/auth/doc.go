// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package auth protects an MCP server that is reached over HTTP: it is the resource
// server's side of OAuth as MCP has it (basic/authorization), and takes API keys and
// client certificates as well.
//
// [Require] is plain HTTP middleware. It asks a [Verifier] who the caller is, answers
// those who are nobody with a challenge that tells clients where to get a token, and
// hands the others on, with the caller in [mcp.Request.Principal]:
//
//	tokens := auth.NewJWT("https://login.example.com", "https://mcp.example.com/mcp", nil)
//	protect := auth.Require(tokens, &auth.Options{Resource: "https://mcp.example.com/mcp"})
//	router := mcphttp.NewRouter(mux, &mcphttp.RouterOptions{
//		Middleware: []func(http.Handler) http.Handler{protect},
//	})
//	metadata := &auth.Metadata{
//		Resource:             "https://mcp.example.com/mcp",
//		AuthorizationServers: []string{"https://login.example.com"},
//	}
//	router.Handle(auth.MetadataPath(metadata.Resource), auth.MetadataHandler(metadata))
//
// What a caller may do is decided where it is known what is asked: in MCP middleware
// and handlers. An [mcp.InsufficientScope] that one of them returns reaches the client
// as a challenge to ask its user for more.
//
// Credentials are taken from headers and from the connection, never from the URL, and
// are for this server only: nothing here passes them on, and no handler should.
package auth
