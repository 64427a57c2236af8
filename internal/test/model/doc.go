// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package model contains only tests. One compares psi with a model: clients of both eras
// and two principals perform random operations over every transport, and through gateways
// that they share with a hostile server. Meanwhile, messages are lost, connections cut and
// sessions forgotten. The test checks what clients observe against what the model allows.
// Another test does the same with tasks, on replicas that are killed.
package model
