// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package floorhttp is the hand-written floor in the comparison: package floor, with
// net/http and pipes around it.
package floorhttp
