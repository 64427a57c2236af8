// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package strictjson

import (
	"errors"
	"math"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Integers are functions that decode the int and int64 members of protocol values. To JSON
// Schema, 10.0 and 1e1 are integers, and some languages write them so. The protocol's integers
// are codes and hints, such as sizes and durations: those with a fraction are rounded.
var Integers = jsonv2.JoinUnmarshalers(
	jsonv2.UnmarshalFromFunc(unmarshalInteger[int]),
	jsonv2.UnmarshalFromFunc(unmarshalInteger[int64]))

var lenientIntegers = jsonv2.WithUnmarshalers(Integers)

func unmarshalInteger[T int | int64](d *jsontext.Decoder, dst *T) error {
	if d.PeekKind() != '0' {
		return ErrSkip // the JSON package decodes null and rejects the rest
	}
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	n, err := parseInteger(string(value))
	if err != nil {
		return err
	}
	if *dst = T(n); int64(*dst) != n { // an int may have 32 bits
		return strconv.ErrRange
	}
	return nil
}

// parseInteger parses a JSON number and rounds it to the nearest integer.
func parseInteger(number string) (int64, error) {
	n, err := strconv.ParseInt(number, 10, 64)
	if !errors.Is(err, strconv.ErrSyntax) {
		return n, err
	}
	if exact, ok := ParseDecimal(number); ok && exact.IsInteger() {
		n, err = strconv.ParseInt(exact.String(), 10, 64)
		if errors.Is(err, strconv.ErrSyntax) { // it has too many digits
			err = strconv.ErrRange
		}
		return n, err
	}
	f, err := strconv.ParseFloat(number, 64)
	if f = math.Round(f); err != nil || math.Abs(f) >= 1<<63 {
		return 0, strconv.ErrRange
	}
	return int64(f), nil
}
