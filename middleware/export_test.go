// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

// LimitKeys makes b remember at most n keys, and returns b.
func LimitKeys(b *TokenBucket, n int) *TokenBucket {
	b.keys = n
	return b
}
