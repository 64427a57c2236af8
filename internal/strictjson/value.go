// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package strictjson

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MarshalValue encodes a value of a user-defined type. A time.Duration is a string such as
// "1m30s", a url.URL is a string, and a json.Number is a number.
func MarshalValue(v any) ([]byte, error) { return MarshalValueWith(nil, v) }

// MarshalValueWith is like MarshalValue, with options. These must not be functions for types.
func MarshalValueWith(o Options, v any) ([]byte, error) {
	if v == nil || !hasSpecial(reflect.TypeOf(v)) {
		return MarshalWith(o, v)
	}
	return jsonv2.Marshal(v, jsonv2.Deterministic(true), jsonv2.WithMarshalers(specialMarshalers()), o)
}

// UnmarshalValue decodes what [MarshalValue] encodes. Integers may be written in any form,
// as in JSON Schema: 1.0 and 1e2 can be decoded into an int.
func UnmarshalValue(data []byte, v any) error {
	if p := reflect.ValueOf(v); p.Kind() != reflect.Pointer || p.IsNil() {
		return unmarshalExactly(data, v) // which says that v must be a pointer
	}
	unmarshal := unmarshalExactly
	if hasSpecial(reflect.TypeOf(v)) {
		unmarshal = unmarshalSpecial
	}
	err := unmarshal(data, v)
	if err == nil || !jsontext.Value(data).IsValid() {
		return err
	}
	plain, changed := plainIntegers(data)
	if !changed {
		return err
	}
	reflect.ValueOf(v).Elem().SetZero()
	return unmarshal(plain, v)
}

func unmarshalExactly(data []byte, v any) error { return jsonv2.Unmarshal(data, v) }

func unmarshalSpecial(data []byte, v any) error {
	return jsonv2.Unmarshal(data, v, jsonv2.WithUnmarshalers(specialUnmarshalers()))
}

// specialMarshalers and specialUnmarshalers define the JSON form of standard library types
// that have none, or not in every release of Go.
var (
	specialMarshalers = sync.OnceValue(func() *jsonv2.Marshalers {
		return jsonv2.JoinMarshalers(
			jsonv2.MarshalToFunc(marshalNumber),
			jsonv2.MarshalFunc(func(d time.Duration) ([]byte, error) { return Marshal(d.String()) }),
			jsonv2.MarshalFunc(func(u url.URL) ([]byte, error) { return Marshal(u.String()) }))
	})
	specialUnmarshalers = sync.OnceValue(func() *jsonv2.Unmarshalers {
		return jsonv2.JoinUnmarshalers(
			jsonv2.UnmarshalFromFunc(unmarshalNumber),
			jsonv2.UnmarshalFunc(func(data []byte, d *time.Duration) (err error) {
				return unmarshalFrom(data, d, time.ParseDuration, `a duration such as "1m30s"; the units are h, m, s, ms, us and ns`)
			}),
			jsonv2.UnmarshalFunc(func(data []byte, u *url.URL) error {
				return unmarshalFrom(data, u, func(text string) (url.URL, error) {
					parsed, err := url.Parse(text)
					if err != nil {
						return url.URL{}, err
					}
					return *parsed, nil
				}, "a URL")
			}))
	})
)

// marshalNumber encodes a json.Number, unless it is the name of a member. An empty number
// is encoded as 0, as in package encoding/json.
func marshalNumber(enc *jsontext.Encoder, n json.Number) error {
	if isName(enc.StackIndex(enc.StackDepth())) {
		return ErrSkip
	}
	text := cmp.Or(string(n), "0")
	if value := jsontext.Value(text); value.Kind() != '0' || !value.IsValid() {
		return fmt.Errorf("the json.Number %.100q is not a number", text)
	}
	return enc.WriteValue(jsontext.Value(text))
}

func unmarshalNumber(dec *jsontext.Decoder, n *json.Number) error {
	if isName(dec.StackIndex(dec.StackDepth())) {
		return ErrSkip
	}
	value, err := dec.ReadValue()
	switch {
	case err != nil:
		return err
	case value.Kind() == '0':
		*n = json.Number(value)
	case value.Kind() == 'n': // as for other types
		*n = ""
	default:
		return errors.New("it must be a number")
	}
	return nil
}

// isName reports whether the next token in an object or array of the given length is a name.
func isName(kind jsontext.Kind, length int64) bool { return kind == '{' && length%2 == 0 }

// unmarshalFrom decodes a string and parses it.
func unmarshalFrom[T any](data []byte, dst *T, parse func(string) (T, error), what string) error {
	if string(data) == "null" { // as for other types
		var zero T
		*dst = zero
		return nil
	}
	var text string
	if err := Unmarshal(data, &text); err != nil {
		return fmt.Errorf("it must be a string: %s", what)
	}
	v, err := parse(text)
	if err != nil {
		return fmt.Errorf("%.100q is not %s", text, what)
	}
	*dst = v
	return nil
}

// special caches the results of hasSpecial. The options that few types need slow down all others.
var special sync.Map

// hasSpecial reports whether values of t can contain a type that specialMarshalers encode.
func hasSpecial(t reflect.Type) bool {
	if known, ok := special.Load(t); ok {
		return known.(bool)
	}
	found := findSpecial(t, map[reflect.Type]bool{})
	special.Store(t, found)
	return found
}

func findSpecial(t reflect.Type, seen map[reflect.Type]bool) bool {
	switch t {
	case reflect.TypeFor[time.Duration](), reflect.TypeFor[url.URL](), reflect.TypeFor[json.Number]():
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface: // it may contain one
		return true
	case reflect.Map:
		return findSpecial(t.Key(), seen) || findSpecial(t.Elem(), seen)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return findSpecial(t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if (f.IsExported() || f.Anonymous) && findSpecial(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

// plainIntegers removes fractions and exponents from the integers in valid JSON.
func plainIntegers(data []byte) (plain []byte, changed bool) {
	plain = make([]byte, 0, len(data))
	for i := 0; i < len(data); {
		end := i + 1
		switch c := data[i]; {
		case c == '"':
			for data[end] != '"' {
				if data[end] == '\\' {
					end++
				}
				end++
			}
			end++
		case c == '-' || '0' <= c && c <= '9':
			for end < len(data) && strings.IndexByte("0123456789+-.eE", data[end]) >= 0 {
				end++
			}
			if number, ok := plainInteger(string(data[i:end])); ok {
				plain, i, changed = append(plain, number...), end, true
				continue
			}
		}
		plain = append(plain, data[i:end]...)
		i = end
	}
	return plain, changed
}

func plainInteger(number string) (string, bool) {
	if !strings.ContainsAny(number, ".eE") {
		return "", false
	}
	n, ok := ParseDecimal(number)
	return n.String(), ok && n.IsInteger()
}
