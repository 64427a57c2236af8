// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import "cmp"

// NewWithin is New with a limit on the number of working tasks. 0 means the constant.
func NewWithin(name string, opts *Options, working int) *Manager {
	m := New(name, opts)
	m.maxWorking = cmp.Or(working, maxWorking)
	return m
}
