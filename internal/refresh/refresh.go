// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package refresh

import "context"

type key struct{}

// Context returns a context for requests that must not be answered from a cache.
func Context(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Is reports whether ctx is the context of such a request.
func Is(ctx context.Context) bool { return ctx.Value(key{}) != nil }
