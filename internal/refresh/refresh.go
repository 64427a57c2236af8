// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package refresh

import "context"

type key struct{}

// Context returns a context for such requests.
func Context(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Is reports whether ctx is that of such a request.
func Is(ctx context.Context) bool { return ctx.Value(key{}) != nil }
