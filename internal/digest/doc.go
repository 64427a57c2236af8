// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package digest makes names for secrets that log lines may show.
package digest
