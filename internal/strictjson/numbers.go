// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package strictjson

import (
	"bytes"
	"encoding/json"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ExactNumbers decodes a number into an any as a float64 or as a json.Number if that is an
// integer that a float64 cannot represent.
var ExactNumbers = jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, v *any) error {
	if d.PeekKind() != '0' {
		return ErrSkip
	}
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	if f, err := strconv.ParseFloat(string(raw), 64); err == nil && (!isInteger(raw) || string(raw) == strconv.FormatFloat(f, 'f', -1, 64)) {
		*v = f
	} else {
		*v = json.Number(raw)
	}
	return nil
}))

// isInteger reports whether a JSON number has neither a fraction nor an exponent.
func isInteger(raw []byte) bool { return !bytes.ContainsAny(raw, ".eE") }
