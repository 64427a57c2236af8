// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package replay lets the owner of a handler's run, such as a background task, store what
// the handler remembers between its runs, instead of the client.
package replay
