// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package serving contains what the server sides of all transports share: how to determine
// the revision of a message, and calls with the same interface for all revisions.
package serving
