// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package async

import "errors"

// SaysTransient returns the result of the Transient method of an error, such as one for an HTTP
// status. ok is false if the error has no such method.
func SaysTransient(err error) (transient, ok bool) {
	told, ok := errors.AsType[interface {
		error
		Transient() bool
	}](err)
	return ok && told.Transient(), ok
}

// IsTransient reports whether an error means that a later attempt may succeed.
func IsTransient(err error) bool {
	transient, _ := SaysTransient(err)
	return transient
}
