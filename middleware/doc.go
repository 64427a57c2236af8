// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package middleware is a collection of [mcp.Middleware] for use around a whole mux, a part
// of it, or a single handler:
//
//	mux.Use(middleware.RequestID(nil), middleware.Logger(nil), middleware.Recover(nil))
//	mux.Use(middleware.RateLimit(middleware.ByPrincipal, middleware.NewTokenBucket(100, time.Minute, nil)))
//	mux.With(middleware.RequireScopes("notes:write"), middleware.Timeout(time.Minute)).Tool("write", write)
//
// [RequireScopes] protects a registration but leaves it in lists. [RequireScopesFunc] also
// hides it from callers that lack the scopes. [Visible] hides items by any rule, as if they
// did not exist. For mounted servers, [Allow] and [Deny] hide items by name from every
// caller, and [Reshape] changes names, descriptions, arguments and results of tools. For hosts that know tools only, [ResourcesAsTools] and [PromptsAsTools] add tools that read the others. [Audit] records who did what.
//
// The first middleware is the outermost. Put observers ([RequestID], [Logger], [Audit],
// [Metrics]) outermost, then gatekeepers ([RateLimit], [RequireScopes], [Concurrency]), so
// that observers see their rejections, and then limits of a handler ([Timeout],
// [MaxResult]). State such as a count belongs to the Middleware value: a value that is used
// in several places shares it.
//
// [Cache], [Singleflight] and [Retry], in this order, are for requests sent by a client;
// pass them to [mcp.Conn.Use]. The others work on clients, too, unless their documentation
// says otherwise.
//
// This package is stable, as docs/stability.md defines it.
package middleware
