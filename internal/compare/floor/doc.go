// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package floor is what a careful programmer writes by hand for two tools: it
// decodes a message into structs, looks at its method and the name of its tool, and
// encodes structs. It validates nothing. It is what libraries are measured against.
package floor
