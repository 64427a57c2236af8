// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package cutproxy provides a TCP proxy for tests whose connections can be cut.
package cutproxy
