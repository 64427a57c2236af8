// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package openapi runs package mcp/openapi with public documents, against a mock of each API that
// checks the whole request with a validator by others. It is a module of its own because of the
// validator.
package openapi
