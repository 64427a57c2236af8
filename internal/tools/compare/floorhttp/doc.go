// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package floorhttp is the hand-written baseline of the comparison: package floor, served
// over net/http and pipes.
package floorhttp
