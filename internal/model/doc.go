// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package model holds a test that compares psi with a model of it: clients of both
// eras and of two principals, over every transport and through gateways that they share
// with a hostile server, do at random what clients do, while messages are lost,
// connections cut and sessions forgotten, and what they see is held against what they
// may see. Another test does so with tasks, at replicas that are killed. It has no code but
// tests.
package model
