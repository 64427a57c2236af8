// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package made

// Check panics if ok is false, that is, if the receiver of a method is nil, or a zero value
// that was not created by its constructor.
func Check(ok bool, what, constructor string) {
	if !ok {
		panic(what + " must be made by " + constructor + "; this one is nil or a zero value")
	}
}
