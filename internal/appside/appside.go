// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package appside

import "context"

type key struct{}

// Context returns a context for requests made by a page.
func Context(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Is reports whether ctx is the context of a request made by a page.
func Is(ctx context.Context) bool { return ctx.Value(key{}) != nil }
