// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package redact removes secrets from JSON and from text that is written for people: logs,
// recordings, pages. What it returns has the shape of what it was given: JSON stays valid,
// objects keep their members, and values their types.
package redact
