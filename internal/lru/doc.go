// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package lru is a bounded map in which the entry used longest ago makes room.
package lru
