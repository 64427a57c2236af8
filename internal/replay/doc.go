// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package replay lets the owner of a handler's run, such as a background task, keep what
// the handler remembers between its runs, in place of the client.
package replay
