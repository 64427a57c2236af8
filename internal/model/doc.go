// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package model holds a test that compares psi with a model of it: clients of both
// eras, over every transport, do at random what clients do, while messages are
// lost, connections cut and sessions forgotten, and what they see is held against
// what they may see. It has no code but tests.
package model
