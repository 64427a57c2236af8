// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package provider is an OpenID provider for trying a login and testing it. A user logs in by
// typing a name, without a password: do not use it for anything else.
package provider
