// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package bounds contains only tests. They let one caller, or one hostile server, send the
// largest messages that are allowed as often as is allowed to everything that keeps some of
// what a peer sends, and measure the memory that is kept.
//
//	go test ./internal/test/bounds -v                 # the figures, in seconds
//	go test ./internal/test/bounds -v -bounds.full    # as often as the defaults allow
package bounds
