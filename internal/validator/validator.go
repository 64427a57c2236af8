// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package validator

// Full compiles a schema of any dialect, which is decoded into nil, bool,
// json.Number, string, []any and map[string]any. The formats are those to check,
// by name; all others are annotations.
//
// It is nil unless the program imports package jsonschema/full, whose init sets
// it.
var Full func(document any, formats map[string]func([]byte) bool) (Validate, error)

// Validate holds a value, decoded as the schema was, against a schema. It returns
// nil if the value conforms.
type Validate func(value any) *Failure

// A Failure is a keyword that a value does not satisfy, or several of them.
type Failure struct {
	// Keyword is "" for a failure that only brackets its causes, and "false" for a
	// schema that admits nothing.
	Keyword string

	// Schema and At are the tokens of JSON pointers: to the schema that has the
	// keyword, within its document, and to the value that failed.
	Schema, At []string

	// Want and Got are the value of the keyword and what it was compared with:
	//
	//	type                                    []string
	//	enum, const                             []any, and the value
	//	format, pattern                         string
	//	bounds of a number, multipleOf          string
	//	bounds of a length or size, contains    int, and the int that was found
	//	uniqueItems, oneOf if two alternatives  nil, and their indexes, [2]int
	//	additionalItems                         nil, and how many there are
	Want, Got any

	// Names are the properties that required, dependentRequired and dependencies
	// miss, because of the property Because if it is not "", those that
	// additionalProperties refuses, or the one whose name propertyNames refuses.
	Names   []string
	Because string

	// Causes are what a bracket holds, why each alternative of anyOf and oneOf
	// failed, and what propertyNames has against a name.
	Causes []*Failure

	// More counts what was found and left out of the outermost failure.
	More int
}

// An InvalidError says that a document is not a valid schema.
type InvalidError struct {
	Failure *Failure // of the document, held against its metaschema
}

func (e *InvalidError) Error() string { return "not a valid schema" }

// An ExternalError says that a schema refers to another document.
type ExternalError struct {
	URL string
}

func (e *ExternalError) Error() string {
	return "a reference to " + e.URL + " leaves the schema"
}
