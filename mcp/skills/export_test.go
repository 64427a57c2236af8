// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package skills

// LeaveRoom makes l behave as if only n more bytes of files may be read.
func LeaveRoom(l *Loaded, n int64) { l.size = MaxBytes - n }
