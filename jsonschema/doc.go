// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package jsonschema infers JSON Schemas from Go types, validates JSON against
// schemas, explains validation errors to a model, and checks that the clients of the
// large model providers accept a schema:
//
//	raw, err := jsonschema.For[Forecast]()
//	schema, err := jsonschema.Compile(raw, nil)
//	err = schema.Validate(ctx, []byte(`{"city":"Lisbon"}`))
//	findings := jsonschema.Lint(raw)
//
// Package mcp does all of this for typed functions. You need this package only for more
// control.
//
// # Inference
//
// [For] describes what github.com/go-json-experiment/json, the code of
// encoding/json/v2, reads and writes for a type:
//
//   - A struct is an object. It always has "properties", in the order of the fields,
//     and "additionalProperties" is false unless an embedded map or jsontext.Value
//     holds the other members. Embedding, shadowing and the options of the json tag
//     work as in the JSON package. A struct that embeds a time.Time inherits its
//     methods and is therefore a time.
//   - A property is required unless its field is a pointer, has omitempty, omitzero or
//     a default, or is reached through an embedded pointer.
//   - A pointer allows null only where a nil pointer is written as null: not in a field
//     with omitempty or omitzero. [ForInput] describes arguments, which are never
//     written, without null; see [Options.OptionalNull].
//   - A slice is an array, and a map is an object with "additionalProperties". Nil
//     slices and maps are written as [] and {}, so they do not allow null.
//   - []byte is a string with contentEncoding base64, and a time.Time is a string with
//     format date-time. A type with MarshalText or UnmarshalText, such as a netip.Addr,
//     and a number with the string option, is a string; a type UUID of 16 bytes has the
//     format uuid.
//   - A json.Number is a number, a time.Duration is a string such as "1m30s", and a
//     url.URL is a string with format uri. The JSON package encodes them differently, or
//     not at all: use [Marshal] and [Unmarshal], as package mcp does.
//   - Integers of 8, 16 and 32 bits have a minimum and a maximum. Other unsigned integers
//     have a minimum of 0.
//   - any, json.RawMessage, jsontext.Value and types with their own JSON methods allow
//     every value. Because some clients reject a schema without a type, an object
//     without properties or an array without items, this is written as
//     {"type":[…all six…],"properties":{},"items":{}}, and as
//     "additionalProperties":true in a map.
//   - Channels, functions and complex numbers have no JSON form and are an error.
//
// Every type is written out where it is used, because many clients do not follow
// references. Only a type that contains itself becomes a definition in "$defs", under
// its name, and even then the root is written out.
//
// Struct tags add the rest. They use the syntax of github.com/invopop/jsonschema:
//
//	Unit string `json:"unit" jsonschema:"enum=celsius,enum=fahrenheit,default=celsius"`
//	Days int    `json:"days" jsonschema:"minimum=1,maximum=14"`
//	City string `json:"city" jsonschema:"minLength=1,description=The city, and its country"`
//	Zone string `json:"zone" jsonschema:"A tag without an equals sign is a description"`
//
// A description extends to the end of its tag, including commas. In other values, a comma
// is written as "\,". The words are:
//
//   - for every field: title, description, required, nullable;
//   - for strings: minLength, maxLength, pattern, format, default, example, enum;
//   - for numbers: minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf,
//     default, example, enum;
//   - for booleans: default;
//   - for lists: minItems, maxItems, uniqueItems=true, default (repeated for each element),
//     and the words of the elements;
//   - for fields that allow every value: type.
//
// enum and example may be repeated. It is an error if a word is unknown, does not apply to
// the type of the field or has an invalid value, if a pattern does not compile in Go, or if
// a default does not match the schema or the type of the field. A description can also be
// given in the tag jsonschema_description. A field tagged jsonschema:"-" is omitted from
// the schema, which then rejects values that contain it.
//
// A type with a method JSONSchemaEnum() []any ([Enumer]) lists its values. A type with
// JSONSchema() json.RawMessage supplies its whole schema. The methods are called on a zero
// value. They are not called for a struct that only inherits them from an embedded field.
//
// For types that were written for github.com/invopop/jsonschema, JSONSchema()
// *jsonschema.Schema and JSONSchemaExtend(*jsonschema.Schema) of that package work as well.
// That module has no version 1, so these two methods are not covered by the stability of this
// package.
//
// The schema that is inferred for a type may improve in a minor version, and so may the texts
// of problems and findings.
//
// # Validation
//
// [Compile] accepts untrusted schemas: sizes are bounded and nothing is fetched.
// [Schema.Validate] first tries to prove, in one pass over the bytes and without
// allocating, that the value is valid. This succeeds for nearly every valid value of an
// inferred schema. Otherwise github.com/santhosh-tekuri/jsonschema validates the value. It
// supports all of JSON Schema from draft-04 to 2020-12. A [ValidationError] has one line
// for each problem: where it is, what was expected, what was found, what is allowed, and
// what was probably meant.
//
// Regular expressions have the syntax of ECMAScript, as far as package regexp supports it.
// [Schema.Unchecked] lists those that it does not support.
//
// The work is bounded for any schema and value ([ErrTooMuchWork]) and stops when the context
// is done. It grows with the size of the value, not exponentially with its depth,
// because the outcome of each schema for each part of the value is cached. There is no
// cache for schemas with unevaluatedProperties, unevaluatedItems or dynamic references,
// whose outcome can depend on the enclosing schemas.
//
// # Lint
//
// Model providers reject some valid schemas, and then usually reject all tools of the
// request. [Lint] reports what each [Profile] is known to reject.
//
// This package is stable, as docs/stability.md defines it.
package jsonschema
