// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

// An era is a generation of the wire. The core speaks the modern one; what
// differs on the wire of another is behind this interface, chosen per request.
type era interface {
	// appendResult appends res as the era has it.
	appendResult(dst []byte, req *Request, res Result) ([]byte, error)
	// wireError is e as the era has it.
	wireError(e *Error) *Error
}

func eraOf(req *Request) era {
	rev := revisionOf(req.peer.version)
	if rev == revNone || rev.modern() {
		return modernEra{}
	}
	return legacyEra{rev}
}
