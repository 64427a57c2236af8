// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package transient finds out whether an error says that a later attempt may succeed.
package transient
