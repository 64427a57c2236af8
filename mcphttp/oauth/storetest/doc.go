// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package storetest tests implementations of oauth.Store.
package storetest
