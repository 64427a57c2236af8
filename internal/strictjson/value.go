// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package strictjson

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/internal/decimal"
)

// MarshalValue encodes a value of a program's own type. A time.Duration is a string such as
// "1m30s", and a url.URL is a string.
func MarshalValue(v any) ([]byte, error) {
	if v == nil || !hasText(reflect.TypeOf(v)) {
		return Marshal(v)
	}
	return jsonv2.Marshal(v, jsonv2.Deterministic(true), jsonv2.WithMarshalers(textMarshalers()))
}

// UnmarshalValue decodes into a program's own type what [MarshalValue] encodes. An integer is
// one however it is written, as in JSON Schema: 1.0 and 1e2 fit an int.
func UnmarshalValue(data []byte, v any) error {
	if p := reflect.ValueOf(v); p.Kind() != reflect.Pointer || p.IsNil() {
		return Unmarshal(data, v) // which says that v must be a pointer
	}
	unmarshal := Unmarshal
	if hasText(reflect.TypeOf(v)) {
		unmarshal = unmarshalText
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

func unmarshalText(data []byte, v any) error {
	return jsonv2.Unmarshal(data, v, jsonv2.WithUnmarshalers(textUnmarshalers()))
}

// textMarshalers and textUnmarshalers give types of the standard library, which have no form
// of their own in JSON, that of a string.
var (
	textMarshalers = sync.OnceValue(func() *jsonv2.Marshalers {
		return jsonv2.JoinMarshalers(
			jsonv2.MarshalFunc(func(d time.Duration) ([]byte, error) { return Marshal(d.String()) }),
			jsonv2.MarshalFunc(func(u url.URL) ([]byte, error) { return Marshal(u.String()) }))
	})
	textUnmarshalers = sync.OnceValue(func() *jsonv2.Unmarshalers {
		return jsonv2.JoinUnmarshalers(
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

// unmarshalFrom decodes a string that parse understands.
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

// texts caches hasText by type. Options that few types need slow down all others.
var texts sync.Map

// hasText reports whether values of t can contain a time.Duration or a url.URL.
func hasText(t reflect.Type) bool {
	if known, ok := texts.Load(t); ok {
		return known.(bool)
	}
	found := findText(t, map[reflect.Type]bool{})
	texts.Store(t, found)
	return found
}

func findText(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == reflect.TypeFor[time.Duration]() || t == reflect.TypeFor[url.URL]() {
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
		return findText(t.Key(), seen) || findText(t.Elem(), seen)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return findText(t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if (f.IsExported() || f.Anonymous) && findText(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

// plainIntegers writes the integers of valid JSON that have a fraction or an exponent
// without.
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
	n, ok := decimal.Parse(number)
	return n.String(), ok && n.IsInteger()
}
