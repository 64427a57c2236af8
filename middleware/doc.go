// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package middleware is a collection of [mcp.Middleware], to be used around a
// whole mux, around a part of it, or around a single handler:
//
//	mux.Use(middleware.RequestID(nil), middleware.Logger(nil), middleware.Recover(nil))
//	mux.Use(middleware.RateLimit(middleware.ByPrincipal, middleware.NewTokenBucket(100, time.Minute, nil)))
//	mux.With(middleware.RequireScopes("notes:write"), middleware.Timeout(time.Minute)).Tool("write", write)
//
// The first is outermost. What watches ([RequestID], [Logger], [Metrics]) goes outside
// of what refuses ([RateLimit], [RequireScopes], [Concurrency]), which it then sees,
// and what limits a handler ([Timeout], [MaxResult]) inside. What a Middleware counts
// belongs to its value: a value that is used in several places counts them together.
//
// Others are for the requests that a client sends, by [mcp.Conn.Use]: [Cache],
// [Singleflight], [Retry], in this order. Of the rest, those that say nothing else may
// be used on clients as well.
package middleware
