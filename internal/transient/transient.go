// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package transient

import "errors"

// Says returns the result of the Transient method of an error, such as one for an HTTP
// status. ok is false if the error has no such method.
func Says(err error) (transient, ok bool) {
	told, ok := errors.AsType[interface {
		error
		Transient() bool
	}](err)
	return ok && told.Transient(), ok
}

// Is reports whether an error means that a later attempt may succeed.
func Is(err error) bool {
	transient, _ := Says(err)
	return transient
}
