// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package jsonschema infers JSON Schemas from Go types, validates JSON against
// schemas, explains to a model what is wrong, and checks that the clients of the
// large model providers will accept a schema:
//
//	raw, err := jsonschema.For[Forecast]()
//	schema, err := jsonschema.Compile(raw, nil)
//	err = schema.Validate(ctx, []byte(`{"city":"Lisbon"}`))
//	findings := jsonschema.Lint(raw)
//
// Package mcp does that for typed functions: to write a tool, nobody has to begin
// here.
//
// # Inference
//
// [For] describes what github.com/go-json-experiment/json, the code of
// encoding/json/v2, reads and writes for a type:
//
//   - A struct is an object. "properties" is always there, in the order of the
//     fields, and "additionalProperties" is false unless an embedded map or
//     jsontext.Value takes what is left. Embedding, shadowing and the options of
//     the json tag work as in the JSON package. A struct that embeds a time.Time
//     inherits its methods and is therefore a time.
//   - A property is required unless its field is a pointer, has omitempty or
//     omitzero, or is reached through an embedded pointer.
//   - A pointer admits null only where its nil is written as null: not in a field
//     with omitempty, or with omitzero. To a caller who sends null for an
//     argument that may be left out, [Options.OptionalNull] is the answer.
//   - A slice is an array, a map an object with "additionalProperties". Their
//     nils are written as [] and {} and so need no null.
//   - []byte is a string with contentEncoding base64; a time.Time a string with
//     format date-time; a type with MarshalText, and a number with the string
//     option, a string.
//   - Integers of 8, 16 and 32 bits, and unsigned ones, carry their range.
//   - any, json.RawMessage, jsontext.Value and types with JSON methods of their own
//     admit every value. Because some clients refuse a node without a type, an
//     object without properties or an array without items, this is written as
//     {"type":[…all six…],"properties":{},"items":{}}, and as
//     "additionalProperties":true in a map.
//   - time.Duration, channels, functions and complex numbers have no JSON form and
//     are an error.
//
// Every type is written out where it is used, because many clients do not follow
// references. Only a type that contains itself becomes a definition under
// "$defs", under its name, and even then the root is written out.
//
// Tags add the rest; they are those of github.com/invopop/jsonschema:
//
//	Unit string `json:"unit" jsonschema:"enum=celsius,enum=fahrenheit,default=celsius"`
//	Days int    `json:"days" jsonschema:"minimum=1,maximum=14"`
//	City string `json:"city" jsonschema_description:"Commas, of course, are fine here"`
//
// The words are title, description, type, default, example, enum, format, pattern,
// minLength, maxLength, minimum, maximum, exclusiveMinimum, exclusiveMaximum,
// multipleOf, minItems, maxItems, uniqueItems, required and nullable; a comma in a
// value is written "\,". For a list, enum, pattern and format speak of its
// elements. A field tagged jsonschema:"-" is not in the schema, which then refuses
// a value that has it.
//
// A type with a method JSONSchemaEnum() []any ([Enumer]) lists its values. One with
// JSONSchema() json.RawMessage or JSONSchema() *jsonschema.Schema (invopop's)
// supplies its whole schema, one with JSONSchemaExtend(*jsonschema.Schema) edits
// what was inferred. They are called on a zero value, and not on a struct that has
// them only from an embedded field.
//
// # Validation
//
// [Compile] takes a JSON Schema, of a stranger too: sizes are bounded and nothing is
// ever fetched. [Schema.Validate] first tries to prove, in one pass over the bytes
// and without allocating, that the value is valid. It succeeds for nearly every
// valid value of an inferred schema. Otherwise github.com/santhosh-tekuri/jsonschema
// decides, which knows all of JSON Schema from draft-04 to 2020-12, and a
// [ValidationError] says, one line for each problem, where it is, what was expected,
// what was found, what is allowed, and what was probably meant.
//
// Whatever schema and value are, the work is bounded ([Options.MaxWork]) and ends with
// the context. It grows with the size of the value, not with the power of its depth:
// what came of a schema and a part of the value is remembered. That is so except for
// schemas with unevaluatedProperties, unevaluatedItems or dynamic references, where
// the outcome can depend on the schemas around them.
//
// # Lint
//
// A schema can be valid and still be refused by the provider of a model, which
// then usually refuses all tools with it. [Lint] finds what is known to be refused,
// by [Profile].
package jsonschema
