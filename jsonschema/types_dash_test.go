// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build !goexperiment.jsonv2 || go1.27

package jsonschema_test

import "reflect"

// The JSON package of the experiment refuses the tag of dashed in Go 1.26.

type dashed struct {
	Dash string `json:"-,omitzero"` //nolint:staticcheck // the JSON package reads this as the name "-"
}

var dashedTypes = []goldenType{{name: "dashed", typ: reflect.TypeFor[dashed]()}}
