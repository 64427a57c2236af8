// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"context"
	"fmt"
	"reflect"

	"github.com/go-psi/psi/jsonschema"
)

// A Unit is one of several words.
type Unit string

// The units.
const (
	Celsius    Unit = "celsius"
	Fahrenheit Unit = "fahrenheit"
)

// JSONSchemaEnum lists the units, wherever the type is used.
func (Unit) JSONSchemaEnum() []any { return []any{Celsius, Fahrenheit} }

// A type can list its values.
func ExampleEnumer() {
	type forecast struct {
		Unit  Unit   `json:"unit"`
		Other []Unit `json:"other,omitempty"`
	}
	schema, err := jsonschema.For[forecast]()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(schema))
	// Output: {"properties":{"unit":{"type":"string","enum":["celsius","fahrenheit"]},"other":{"items":{"type":"string","enum":["celsius","fahrenheit"]},"type":"array"}},"additionalProperties":false,"type":"object","required":["unit"]}
}

// A schema can be inferred from a type that is known only at run time.
func ExampleForType() {
	point := reflect.StructOf([]reflect.StructField{
		{Name: "X", Type: reflect.TypeFor[float64](), Tag: `json:"x" jsonschema:"minimum=0"`},
		{Name: "Y", Type: reflect.TypeFor[float64](), Tag: `json:"y" jsonschema:"minimum=0"`},
	})
	schema, err := jsonschema.ForType(point)
	if err != nil {
		fmt.Println(err)
		return
	}
	compiled, err := jsonschema.Compile(schema, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(compiled.Validate(context.Background(), []byte(`{"x":1,"y":-1}`)))
	// Output: /y: expected number of at least 0, got number -1
}
