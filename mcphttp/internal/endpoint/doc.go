// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package endpoint implements what the HTTP endpoints of all revisions share: the limits
// and checks of a request, the values in its context, and the writing of JSON and of event streams.
package endpoint
