// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package digest derives names from secrets that are safe to log.
package digest
