// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package validator is what package jsonschema and the full validator, which it
// does not import, agree on: how to ask it, and what it answers.
package validator
