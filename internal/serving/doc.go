// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package serving is what the server sides of all transports share: which revision a
// message belongs to, and calls that look alike in all revisions.
package serving
