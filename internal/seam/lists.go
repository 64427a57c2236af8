// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package seam

// A ListFilter is a handler made by middleware that must also wrap lists, because it hides
// items. The Key keeps other modules from implementing it.
type ListFilter interface{ FiltersLists(key Key) }
