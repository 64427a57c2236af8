// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package middleware is a collection of [mcp.Middleware], to be used around a
// whole mux, around a part of it, or around a single handler:
//
//	mux.Use(middleware.RequestID(nil), middleware.Logger(nil), middleware.Recover(nil))
//	mux.Use(middleware.RateLimit(middleware.ByPrincipal, middleware.NewTokenBucket(100, time.Minute, nil)))
//	mux.With(middleware.RequireScopes("notes:write"), middleware.Timeout(time.Minute)).Tool("write", write)
//
// Who may use what is decided by [RequireScopes], which protects a registration and leaves
// it in lists; by [RequireScopesFor], which also hides it from those who lack the scopes;
// and by [Visible], which hides by any rule and denies that the item exists. [Allow] and
// [Deny] do so by name, for every caller, and [Rename] gives tools other names: they are for
// servers that are mounted. [Audit] records who has done what.
//
// The first one is outermost. Put observers ([RequestID], [Logger], [Audit],
// [Metrics]) outermost, then gatekeepers ([RateLimit], [RequireScopes], [Concurrency]), whose
// rejections the observers see, and then limits of a handler ([Timeout], [MaxResult]).
// State such as a count belongs to the Middleware value: a value that is used in
// several places shares it.
//
// [Cache], [Singleflight] and [Retry], in this order, are for the requests that a client
// sends; pass them to [mcp.Conn.Use]. The others work on clients, too, unless their
// documentation says otherwise.
package middleware
