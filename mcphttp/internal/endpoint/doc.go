// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package endpoint has what the HTTP endpoints of all revisions share: the limits and checks
// of a request, what its context knows of it, and the writing of JSON and of event streams.
package endpoint
