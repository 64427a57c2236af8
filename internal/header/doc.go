// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package header defines the names of the protocol's HTTP headers and media types.
package header
