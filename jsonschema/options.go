// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import "cmp"

// Options says how [Compile] reads a schema and how the result validates. A nil
// *Options is the zero Options, in which every bound has its default. Compile
// copies the options.
type Options struct {
	// OptionalNull makes a null count as absent where it stands for a property
	// that is not required and whose schema does not admit null. Models often
	// send null for an argument that they mean to leave out.
	OptionalNull bool

	// AssertFormats checks the formats date-time, date, email and uri. All
	// other formats, and these without the option, are annotations, as they are
	// by default in JSON Schema 2020-12. It is worth setting for a schema that
	// For inferred: what is no date-time cannot be decoded into a time.Time, and
	// the validator's text explains that better than the decoder's.
	AssertFormats bool

	// MaxBytes, MaxDepth and MaxNodes bound the schema: its length, the nesting of
	// its objects and arrays, and how many JSON values it is made of. Zero means
	// 1 MiB, 64 and 10,000.
	MaxBytes, MaxDepth, MaxNodes int

	// MaxInputBytes and MaxInputDepth bound what is validated: its length and its
	// nesting. Zero means 16 MiB and 128.
	MaxInputBytes, MaxInputDepth int

	// MaxWork bounds the work of validating one value, and so the time. It counts
	// how often a schema is applied to a value; what takes longer than half a
	// microsecond, as long texts and large numbers do, counts more than once. If it
	// does not suffice, Validate returns an error that wraps ErrTooMuchWork. Zero
	// means 3 million, which is a few seconds at most.
	MaxWork int
}

// withDefaults returns a copy of o, which may be nil, with every bound set.
func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	c.MaxBytes = cmp.Or(c.MaxBytes, 1<<20)
	c.MaxDepth = cmp.Or(c.MaxDepth, 64)
	c.MaxNodes = cmp.Or(c.MaxNodes, 10_000)
	c.MaxInputBytes = cmp.Or(c.MaxInputBytes, 16<<20)
	c.MaxInputDepth = cmp.Or(c.MaxInputDepth, 128)
	c.MaxWork = cmp.Or(c.MaxWork, 3_000_000)
	return c
}
