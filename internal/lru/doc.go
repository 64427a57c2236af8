// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package lru has a bounded map that evicts the least recently used entry.
package lru
