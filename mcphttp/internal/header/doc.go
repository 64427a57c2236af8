// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package header has the names of the headers of the protocol, and the media types.
package header
