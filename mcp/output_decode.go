// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/nearest"
	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/jsonschema"
)

// decodeOutput decodes the output in the result of a tool into out, a pointer; see [Call].
func decodeOutput(res *CallToolResult, out any) error {
	switch out := out.(type) {
	case **CallToolResult:
		*out = res
		return nil
	case *Contents:
		*out = res.Content
		return nil
	case *string:
		return decodeText(res, out)
	case output:
		value, _, _ := out.parts()
		out.setParts(res.Content, res.Meta)
		return decodeOutput(res, value)
	}
	content := res.StructuredContent
	if content == nil && len(res.Content) == 0 {
		return errors.New("it is empty: use Call[string], or CallTool")
	}
	if content == nil {
		if err := wantText(res.Content); err != nil {
			return err
		}
		text := textOf(res.Content)
		if content = json.RawMessage(text); jsonscan.Valid(content, 0) != nil {
			return fmt.Errorf("it is text, not JSON (%s): use Call[string]", printable.Text(printable.Excerpt(text)))
		}
	}
	if err := decode(content, out); err != nil {
		return fmt.Errorf("it is not a %v (%s): %s", reflect.TypeOf(out).Elem(), printable.Text(printable.Excerpt(string(content))), strictjson.Problem(err))
	}
	return checkMembers(content, reflect.TypeOf(out).Elem())
}

func decodeText(res *CallToolResult, text *string) error {
	content := res.StructuredContent
	switch {
	case content == nil:
		*text = textOf(res.Content)
		return wantText(res.Content)
	case content[0] != '"':
		return fmt.Errorf("it is data, not text (%s): use Call with a type for it, or CallTool", printable.Text(printable.Excerpt(string(content))))
	}
	*text = jsonscan.Text(content)
	return nil
}

// wantText returns an error if there is content, but no text.
func wantText(contents Contents) error {
	for _, c := range contents {
		if _, ok := c.(*TextContent); ok {
			return nil
		}
	}
	if len(contents) == 0 {
		return nil
	}
	return fmt.Errorf("it is content of the type %s: use Call[mcp.Contents], or CallTool", contents[0].contentType())
}

// memberTables holds the names of the members of structs, by type. They are those of programs,
// not of peers.
var memberTables sync.Map // of []string by reflect.Type

// membersOf returns the names of the members that a struct decodes, or nil if it is no struct,
// has no members, or decodes any.
func membersOf(t reflect.Type) []string {
	if names, ok := memberTables.Load(t); ok {
		return names.([]string)
	}
	var names []string
	if raw, err := jsonschema.ForType(t); err == nil && t.Kind() == reflect.Struct && !holdsOthers(t) && string(jsonscan.Member(raw, "additionalProperties")) == "false" {
		names = memberNames(jsonscan.Member(raw, "properties"))
	}
	memberTables.Store(t, names)
	return names
}

// holdsOthers reports whether a struct has a field for the members that have no field.
func holdsOthers(t reflect.Type) bool {
	for f := range t.Fields() {
		_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		for option := range strings.SplitSeq(options, ",") {
			if option == "inline" || option == "embed" || option == "unknown" {
				return true
			}
		}
	}
	return false
}

// checkMembers returns an error if an object cannot be meant for a struct, although decoding
// it succeeded: a member differs from a field's name in case alone, or none has the name of a
// field. Further members are allowed: the server may be newer.
func checkMembers(object json.RawMessage, t reflect.Type) error {
	names := membersOf(t)
	if len(names) == 0 || !jsonscan.IsObject(object) {
		return nil
	}
	members := memberNames(object)
	fits := len(members) == 0
	for _, member := range members {
		if slices.Contains(names, member) {
			fits = true
			continue
		}
		i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, member) })
		if i >= 0 && !slices.Contains(members, names[i]) {
			return fmt.Errorf("its member %q is not the field %q of %v: tag the field with `json:%q`", printable.Excerpt(member), names[i], t, member)
		}
	}
	if fits {
		return nil
	}
	hint := ""
	for _, member := range members {
		if hint = nearest.Hint(member, names); hint != "" {
			break
		}
	}
	return fmt.Errorf("its members (%s) are not those of %v (%s)%s", printable.Text(printable.Excerpt(strings.Join(members, ", "))), t, strings.Join(names, ", "), hint)
}
