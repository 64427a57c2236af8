// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package redact removes secrets from JSON and text that people read: logs, recordings,
// pages. The output has the shape of the input: JSON stays valid, objects keep their
// members, and values their types.
package redact
