// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-psi/psi/jsonschema"
)

func ExampleFor() {
	type Forecast struct {
		City string `json:"city" jsonschema:"minLength=1" jsonschema_description:"Name of the city"`
		Unit string `json:"unit,omitzero" jsonschema:"enum=celsius,enum=fahrenheit,default=celsius"`
		Days *int   `json:"days,omitempty" jsonschema:"minimum=1,maximum=14"`
	}
	schema, err := jsonschema.For[Forecast]()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(schema))
	// Output: {"properties":{"city":{"type":"string","minLength":1,"description":"Name of the city"},"unit":{"type":"string","enum":["celsius","fahrenheit"],"default":"celsius"},"days":{"type":"integer","maximum":14,"minimum":1}},"additionalProperties":false,"type":"object","required":["city"]}
}

func ExampleCompile() {
	schema, err := jsonschema.Compile([]byte(`{
		"type": "object",
		"properties": {
			"city": {"type": "string"},
			"unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
			"days": {"type": "integer", "maximum": 14}
		},
		"required": ["city"],
		"additionalProperties": false
	}`), &jsonschema.Options{OptionalNull: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(schema.Validate(context.Background(), []byte(`{"city": "Lisbon", "unit": "celsius", "days": null}`)))
	fmt.Println(schema.Validate(context.Background(), []byte(`{"City": "Lisbon", "unit": "Celsius", "days": 15}`)))
	// Output:
	// <nil>
	// /City: expected a known property, got unknown property "City"; allowed: "city", "days", "unit"; did you mean "city"?
	// /city: expected string, got nothing (the property is required)
	// /days: expected number of at most 14, got number 15
	// /unit: expected one of the allowed values, got string "Celsius"; allowed: "celsius", "fahrenheit"; did you mean "celsius"?
}

func ExampleSchema_Validate() {
	schema, err := jsonschema.Compile([]byte(`{"type": "array", "items": {"type": "integer"}}`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](schema.Validate(context.Background(), []byte(`[1, "2"]`))); ok {
		for _, p := range invalid.Problems {
			fmt.Println(p.Pointer, p.Keyword, p.Expected)
		}
	}
	// Output: /1 type integer
}

func ExampleLint() {
	for _, f := range jsonschema.Lint([]byte(`{
		"type": "object",
		"properties": {"ids": {"type": "array"}, "filter": {}}
	}`)) {
		fmt.Println(f)
	}
	// Output:
	// /properties/filter: a node needs a "type" [portable, untyped]
	// /properties/ids: an array needs "items" [portable, array-items]
}
