// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/internal/strictjson"
)

// lenient is how hosts read their files: the last of several members with the same name is
// used, and text anywhere may be invalid. [decode] checks the values that are used.
var lenient = jsonv2.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// maxMembers is the maximum number of members of an object, because each takes many times more
// memory than text. Hosts have at most a few thousand, such as the projects of Claude Code.
const maxMembers = 1 << 16

// An object holds the members of a JSON object.
type object struct {
	names  []string // sorted
	values map[string]jsontext.Value
	twice  []string // sorted names of members that the object had more than once
}

// parseFile parses the contents of a file, which must be an object.
func parseFile(data []byte) (object, error) {
	text := withoutComments(decodeText(data))
	var root jsontext.Value
	if err := strictjson.UnmarshalWith(lenient, text, &root); err != nil {
		return object{}, errors.New(problem(text, err))
	}
	return parseObject(root)
}

// parseObject returns the members of a syntactically valid value, as parts of it.
func parseObject(raw jsontext.Value) (object, error) {
	if raw.Kind() != '{' {
		_, err := decode[map[string]jsontext.Value](raw)
		return object{}, err
	}
	o := object{values: map[string]jsontext.Value{}}
	twice := map[string]bool{}
	d := jsontext.NewDecoder(bytes.NewReader(raw), lenient)
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() == '"' {
		var name jsontext.Token
		if name, err = d.ReadToken(); err != nil {
			break
		}
		if len(o.names) == maxMembers {
			return object{}, fmt.Errorf("an object has more than %d members", maxMembers)
		}
		key := name.String()
		var value jsontext.Value
		if value, err = d.ReadValue(); err != nil {
			break
		}
		if _, ok := o.values[key]; ok {
			twice[key] = true
		} else {
			o.names = append(o.names, key)
		}
		end := int(d.InputOffset())
		o.values[key] = raw[end-len(value) : end : end]
	}
	slices.Sort(o.names)
	for name := range twice {
		o.twice = append(o.twice, name)
	}
	slices.Sort(o.twice)
	return o, err
}

// get returns a member, or false if it is absent or null. Hosts write null for members that
// have no value.
func (o object) get(name string) (jsontext.Value, bool) {
	raw, ok := o.values[name]
	return raw, ok && raw.Kind() != 'n'
}

// decode decodes a value that is used.
func decode[T any](raw jsontext.Value) (T, error) {
	var v T
	if err := strictjson.Unmarshal(raw, &v); err != nil {
		return v, errors.New(strings.TrimPrefix(strictjson.Problem(err), "the value itself ")) // the caller names it
	}
	return v, nil
}

// scalarText returns the text of a string, a number or a boolean.
func scalarText(raw jsontext.Value) (string, error) {
	switch raw.Kind() {
	case '"':
		return decode[string](raw)
	case '0', 't', 'f':
		return string(raw), nil
	}
	return "", errors.New("want a string")
}

// problem describes why the text of a file could not be parsed: the line and the character in
// it, and the member in which it is.
func problem(text []byte, err error) string {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return strictjson.Problem(err)
	}
	before := text[:min(max(int(syntax.ByteOffset), 0), len(text))]
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	why := fmt.Sprintf("line %d, column %d: %v", 1+bytes.Count(before, []byte("\n")), column, cmp.Or(syntax.Err, errMalformed))
	if syntax.JSONPointer != "" {
		why += fmt.Sprintf(" (in %.200q)", string(syntax.JSONPointer))
	}
	return why
}

var errMalformed = errors.New("malformed JSON")

// listed returns names for an error: the first few, quoted, and the number of the others.
func listed(names []string) string {
	const most = 5
	var text []string
	for _, name := range names[:min(len(names), most)] {
		text = append(text, fmt.Sprintf("%.80q", name))
	}
	if more := len(names) - most; more > 0 {
		text = append(text, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(text, ", ")
}
