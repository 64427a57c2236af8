// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package middleware is a collection of [mcp.Middleware], to be used around a
// whole mux, around a part of it, or around a single handler:
//
//	mux.Use(middleware.Logger(nil))
package middleware
