// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mark

import "context"

// A mark is a key in a context.
type mark int

const (
	app mark = iota
	refresh
)

// App returns a context for requests made by a page.
func App(ctx context.Context) context.Context { return context.WithValue(ctx, app, true) }

// IsApp reports whether ctx is the context of a request made by a page.
func IsApp(ctx context.Context) bool { return ctx.Value(app) != nil }

// Refresh returns a context for requests that must not be answered from a cache.
func Refresh(ctx context.Context) context.Context { return context.WithValue(ctx, refresh, true) }

// IsRefresh reports whether ctx is the context of such a request.
func IsRefresh(ctx context.Context) bool { return ctx.Value(refresh) != nil }
