// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package revision orders the older revisions of the protocol, those that begin with an
// initialize handshake, and names what only they have.
package revision
