// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package revision orders the older revisions of the protocol, which begin with an
// initialize handshake, and defines the names that only they have.
package revision
