// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package filetype determines the MIME types of files, and which of them are sent as text.
package filetype
