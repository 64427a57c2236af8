// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package auth authenticates the callers of an MCP server over HTTP. It implements the
// resource server side of OAuth for MCP (basic/authorization), and also supports API
// keys and client certificates.
//
// [Require] is plain HTTP middleware. It authenticates each request with a [Verifier]. It
// rejects unauthenticated requests with a challenge that tells clients where to get a
// token, and passes the others on with the caller in [mcp.Request.Principal]:
//
//	metadata := &auth.Metadata{
//		Resource:             "https://mcp.example.com/mcp",
//		AuthorizationServers: []string{"https://login.example.com"},
//	}
//	tokens, err := auth.NewJWT("https://login.example.com", metadata.Resource, nil)
//	if err != nil {
//		return err
//	}
//	protect := auth.Require(tokens, &auth.Options{Metadata: metadata})
//	router := mcphttp.NewRouter(mux, &mcphttp.RouterOptions{
//		Middleware: []func(http.Handler) http.Handler{protect},
//	})
//	path, err := auth.MetadataPath(metadata.Resource)
//	if err != nil {
//		return err
//	}
//	router.Handle(path, auth.MetadataHandler(metadata))
//
// Authorization decisions are made in MCP middleware and handlers, where the operation is
// known. If one of them returns an [mcp.NewInsufficientScopeError], the client gets a
// challenge that lets it request more scopes.
//
// Credentials are read from headers and the connection, never from the URL. They are for
// this server only: this package does not forward them, and handlers must not either.
//
// Package authtest issues tokens for tests.
//
// This package is stable, as docs/stability.md defines it.
package auth
