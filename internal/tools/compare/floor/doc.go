// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package floor is a server and a client for two tools as a careful programmer would write
// them by hand: it decodes messages into structs, dispatches by method and tool name, and
// encodes structs. It validates nothing. Libraries are measured against it.
package floor
