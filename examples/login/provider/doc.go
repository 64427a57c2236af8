// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package provider is an OpenID provider for trying out a login, and for its test. Whoever
// types a name is that user: do not use it for anything else.
package provider
