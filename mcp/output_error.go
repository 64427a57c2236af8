// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"errors"
	"fmt"

	"github.com/go-psi/psi/jsonschema"
)

// An OutputError is returned by [Conn.CallTool] if the structured content of a result
// does not conform to the output schema of the tool, or could not be validated.
//
// Err wraps a [*jsonschema.ValidationError] if the content does not conform. Otherwise
// nothing is known of it: Err says that the schema cannot be compiled (it refers to
// another document, or names an unknown dialect, say), or it wraps
// [jsonschema.ErrTooMuchWork] or the cause of the context's end.
type OutputError struct {
	Tool   string
	Result *CallToolResult // as the server sent it, for callers that do without the check
	Err    error
}

func (e *OutputError) Error() string {
	if _, invalid := errors.AsType[*jsonschema.ValidationError](e.Err); invalid {
		return fmt.Sprintf("mcp: the output of %q does not fit its schema: %v", e.Tool, e.Err)
	}
	return fmt.Sprintf("mcp: the output of %q could not be validated: %v", e.Tool, e.Err)
}

// Unwrap returns Err.
func (e *OutputError) Unwrap() error { return e.Err }
