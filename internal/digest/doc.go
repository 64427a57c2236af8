// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package digest derives names that are safe to log from secrets.
package digest
