// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package hints has what adapters to engines need for topics: a bounded queue for each
// subscription, and numbers by which subscribers see that messages are missing.
package hints
