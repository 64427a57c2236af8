// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package appside

import "context"

type key struct{}

// Context returns a context for requests of a page.
func Context(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Is reports whether ctx is that of a request of a page.
func Is(ctx context.Context) bool { return ctx.Value(key{}) != nil }
