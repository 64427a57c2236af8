// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/mcp"
)

// Whatever the server asks and the user answers, a form results in valid JSON or an error.
func FuzzForm(f *testing.F) {
	f.Add(`{"properties":{"a":{"type":"string","oneOf":[{"const":"x","title":"X"}]},"b":{"type":"array","items":{"enum":["y",1]}}},"required":["b"]}`, "1\nx, y\n")
	f.Add(`{"properties":{"a":{"type":["integer","null"],"default":1,"minimum":0}},"required":[1]}`, "\n")
	f.Add(`{"properties":{"a":{"enum":[],"type":7}},"required":"a"}`, "!\n")
	f.Fuzz(func(t *testing.T, schema, answers string) {
		if jsonscan.Valid([]byte(schema), 0) != nil {
			return
		}
		term := newTerminal(strings.NewReader(answers), io.Discard)
		res, err := term.elicit(t.Context(), nil, &mcp.ElicitParams{Message: "?", RequestedSchema: []byte(schema)})
		if err == nil && res.Action == mcp.ActionAccept && !json.Valid(res.Content) {
			t.Errorf("the answer is %q", res.Content)
		}
	})
}
