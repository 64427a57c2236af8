// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"errors"
	"fmt"
	"strings"
)

// A dialect is a version of JSON Schema, by the year or number that orders it.
type dialect int

const (
	draft4       dialect = 4
	draft6       dialect = 6
	draft7       dialect = 7
	dialect2019  dialect = 2019
	dialect2020  dialect = 2020
	dialectNames         = "2020-12, 2019-09, draft-07, draft-06 and draft-04"
)

var dialects = map[string]dialect{
	"json-schema.org/schema":               dialect2020,
	"json-schema.org/draft/2020-12/schema": dialect2020,
	"json-schema.org/draft/2019-09/schema": dialect2019,
	"json-schema.org/draft-07/schema":      draft7,
	"json-schema.org/draft-06/schema":      draft6,
	"json-schema.org/draft-04/schema":      draft4,
}

// dialectOf returns the dialect of a schema document.
func dialectOf(doc any) (dialect, error) {
	obj, isObject := doc.(map[string]any)
	if _, isBool := doc.(bool); !isObject && !isBool {
		return 0, errors.New("jsonschema: a schema is a JSON object or a boolean")
	}
	named, ok := obj["$schema"]
	if !ok {
		return dialect2020, nil
	}
	uri, _ := named.(string)
	key := strings.TrimSuffix(uri, "#")
	key = strings.TrimPrefix(key, "http://")
	key = strings.TrimPrefix(key, "https://")
	if d := dialects[key]; d != 0 {
		return d, nil
	}
	return 0, fmt.Errorf("jsonschema: unknown dialect %q in $schema; known are "+dialectNames, named)
}
