// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package matrix contains only tests. They send every method over every path to a server,
// as callers with different permissions, and check which caller the handlers see and what
// the callers receive.
package matrix
