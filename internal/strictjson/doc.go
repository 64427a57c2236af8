// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package strictjson encodes and decodes the values of the protocol.
package strictjson
