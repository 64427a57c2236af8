// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package made

// Check panics if ok is false: the receiver of a method is nil, or a zero value that its
// constructor did not make.
func Check(ok bool, what, constructor string) {
	if !ok {
		panic(what + " must be made by " + constructor + "; this one is nil or a zero value")
	}
}
