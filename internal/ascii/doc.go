// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package ascii tells what names are made of. It is there because every program
// compiles the regular expressions of its packages when it starts, needed or not.
package ascii
