// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package transient determines whether an error means that a later attempt may succeed.
package transient
