// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package pending matches responses to the requests that wait for them.
package pending
