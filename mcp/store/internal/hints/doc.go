// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package hints provides what adapters to engines need for topics: a bounded queue for each
// subscription, and numbers by which subscribers detect missing messages.
package hints
