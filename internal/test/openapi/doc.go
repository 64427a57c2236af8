// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package openapi runs package mcp/openapi with public documents.
package openapi
