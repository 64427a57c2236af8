// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package transient

import "errors"

// Says returns what the method Transient of an error says, as that of an HTTP status does. It
// reports false if the error has no such method.
func Says(err error) (transient, ok bool) {
	told, ok := errors.AsType[interface {
		error
		Transient() bool
	}](err)
	return ok && told.Transient(), ok
}

// Is reports whether an error says that a later attempt may succeed.
func Is(err error) bool {
	transient, _ := Says(err)
	return transient
}
