// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/nearest"
	"github.com/go-psi/psi/internal/schematree"
)

// reshapeSchema returns the schema of a tool's arguments as callers see it. Where a condition of
// the schema depends on an argument that they do not see, the new schema allows more.
func (r *reshaping) reshapeSchema(schema json.RawMessage) (json.RawMessage, error) {
	if jsonscan.Valid(schema, 0) != nil || !jsonscan.IsObject(schema) {
		return nil, errors.New("the schema of its arguments is not an object")
	}
	d := argumentDescriber{texts: r.texts, known: map[string]bool{}, scan: jsonscan.Get(schema, 0)}
	defer d.scan.Release()
	described := d.schema(nil, "")
	if err := r.checkArguments(jsonscan.Member(described, "properties"), d.known); err != nil {
		return nil, err
	}
	if !r.changesArguments() {
		return described, nil
	}
	s := schemaShaper{reshaping: r, root: described, defaults: map[string]json.RawMessage{}, referenced: map[string]bool{}}
	for _, d := range r.defaults {
		s.defaults[d.name] = d.value
	}
	return s.withDefinitions(s.references(s.object(described)), described), nil
}

// checkArguments returns an error if an argument of the shape does not exist, or if two
// arguments would have the same name. known has the arguments inside others, too.
func (r *reshaping) checkArguments(properties json.RawMessage, known map[string]bool) error {
	top, seen := map[string]bool{}, map[string]string{}
	var clash error
	eachMember(properties, func(name string, _ json.RawMessage) {
		top[name] = true
		outer, changed := r.outer[name]
		if !changed {
			outer = name
		}
		if other, taken := seen[outer]; taken && outer != "" {
			clash = fmt.Errorf("the arguments %q and %q would both be named %q", other, name, outer)
		}
		seen[outer] = name
	})
	for _, name := range sortedKeys(r.Args) {
		arg := r.Args[name]
		switch {
		case !known[name]:
			return fmt.Errorf("the tool has no argument %q%s", name, nearest.Hint(name, sortedKeys(known)))
		case !top[name] && (arg.Name != "" || arg.Default != nil || arg.Preset != nil):
			return fmt.Errorf("%q is inside another argument, so only its Description can change", name)
		}
	}
	return clash
}

// An argumentDescriber copies a schema and replaces descriptions.
type argumentDescriber struct {
	texts map[string]string
	known map[string]bool // arguments found in the schema
	scan  *jsonscan.Scanner
}

// schema appends the next schema in scan: the root if path is "", otherwise the schema of the
// argument at path.
func (d *argumentDescriber) schema(dst []byte, path string) []byte {
	if d.scan.Kind() != '{' {
		return append(dst, d.scan.Value()...)
	}
	text, replaced := d.texts[path]
	object := []byte{'{'}
	for d.scan.Object(); d.scan.Member(); {
		name := string(d.scan.Name())
		switch {
		case name == "description" && replaced:
			d.scan.Skip()
		case name == "properties" && d.scan.Kind() == '{':
			object = d.properties(appendMember(object, name), path)
		case name == "items":
			object = d.schema(appendMember(object, name), path+"[]")
		default:
			object = append(appendMember(object, name), d.scan.Value()...)
		}
	}
	if replaced {
		object = jsonscan.AppendString(appendMember(object, "description"), text)
	}
	return append(append(dst, object...), '}')
}

func (d *argumentDescriber) properties(dst []byte, path string) []byte {
	object := []byte{'{'}
	for d.scan.Object(); d.scan.Member(); {
		name := string(d.scan.Name())
		inner := name
		if path != "" {
			inner = path + "." + name
		}
		d.known[inner] = true
		object = d.schema(appendMember(object, name), inner)
	}
	return append(append(dst, object...), '}')
}

// appendMember appends the name of an object member, after a comma if necessary.
func appendMember(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(jsonscan.AppendString(dst, name), ':')
}

// A schemaShaper renames and hides the arguments of a schema.
type schemaShaper struct {
	*reshaping
	root       json.RawMessage // with the tool's own names
	defaults   map[string]json.RawMessage
	referenced map[string]bool // own names of hidden arguments that references name
}

// object returns a schema that applies to the arguments as a whole.
func (s *schemaShaper) object(schema json.RawMessage) json.RawMessage {
	if !jsonscan.IsObject(schema) {
		return schema // true or false
	}
	isHidden := s.isUnknowable(jsonscan.Member(schema, "if"))
	out := []byte{'{'}
	eachMember(schema, func(name string, value json.RawMessage) {
		switch name {
		case "properties":
			value = s.properties(value)
		case "required":
			value = s.names(value)
		case "dependentRequired", "dependentSchemas", "dependencies":
			value = s.dependencies(value)
		case "allOf":
			value = s.list(value)
		case "$ref":
			if s.isUnknowable(json.RawMessage(`{"$ref":` + string(value) + "}")) {
				return
			}
		case "anyOf", "oneOf", "not":
			if s.isUnknowable(value) {
				return
			}
			value = s.list(value)
		case "if", "then", "else":
			if isHidden {
				return
			}
			value = s.object(value)
		case "propertyNames", "minProperties", "maxProperties", "default", "examples":
			if len(s.outer) > 0 {
				return
			}
		}
		if value != nil {
			out = append(appendMember(out, name), value...)
		}
	})
	return append(out, '}')
}

// list returns a schema, or a list of schemas, that apply to the arguments as a whole.
func (s *schemaShaper) list(schemas json.RawMessage) json.RawMessage {
	if schemas[0] != '[' {
		return s.object(schemas)
	}
	return eachElement(schemas, s.object)
}

func (s *schemaShaper) properties(value json.RawMessage) json.RawMessage {
	if !jsonscan.IsObject(value) {
		return value
	}
	out := []byte{'{'}
	eachMember(value, func(name string, schema json.RawMessage) {
		if d := s.defaults[name]; d != nil {
			if !jsonscan.IsObject(schema) {
				schema = []byte("{}") // a boolean schema
			}
			schema = jsonscan.AppendMembers(append([]byte(`{"default":`), d...), schema, "default")
		}
		if name, visible := s.outerName(name); visible {
			out = append(appendMember(out, name), schema...)
		}
	})
	return append(out, '}')
}

// outerName returns the name that callers use for an argument, if they see it.
func (s *schemaShaper) outerName(name string) (outer string, visible bool) {
	if outer, changed := s.outer[name]; changed {
		return outer, outer != ""
	}
	return name, true
}

// names returns a list of names of required arguments, or nil if none is required: an empty
// list is invalid in older dialects.
func (s *schemaShaper) names(list json.RawMessage) json.RawMessage {
	var names, kept []string
	if unmarshal(list, &names) != nil {
		return list
	}
	for _, name := range names {
		if outer, visible := s.outerName(name); visible && s.defaults[name] == nil {
			kept = append(kept, outer)
		}
	}
	if kept == nil {
		return nil
	}
	return mustMarshal(kept)
}

// dependencies returns an object with the names or the schema that each argument requires.
func (s *schemaShaper) dependencies(value json.RawMessage) json.RawMessage {
	out := []byte{'{'}
	eachMember(value, func(name string, needs json.RawMessage) {
		outer, visible := s.outerName(name)
		switch {
		case !visible || s.isUnknowable(needs):
			return
		case needs[0] == '[':
			needs = s.names(needs)
		default:
			needs = s.object(needs)
		}
		if needs != nil {
			out = append(appendMember(out, outer), needs...)
		}
	})
	return append(out, '}')
}

// mentionsHidden reports whether a schema may depend on an argument that callers do not see.
func (s *schemaShaper) mentionsHidden(schema json.RawMessage) bool {
	for _, name := range s.presets {
		if bytes.Contains(schema, jsonscan.AppendString(nil, name)) {
			return true
		}
	}
	return false
}

// isUnknowable reports whether a schema may depend on an argument that callers do not see, or
// refers to a definition with names that callers do not use: definitions stay as they are,
// because arguments can have them, too.
func (s *schemaShaper) isUnknowable(schema json.RawMessage) bool {
	return s.mentionsHidden(schema) || s.refersToChanged(schema, map[string]bool{})
}

func (s *schemaShaper) refersToChanged(schema json.RawMessage, seen map[string]bool) bool {
	if !bytes.Contains(schema, []byte(`"$ref"`)) {
		return false
	}
	found := false
	if schema[0] == '[' {
		eachElement(schema, func(element json.RawMessage) json.RawMessage {
			found = found || s.refersToChanged(element, seen)
			return element
		})
	}
	eachMember(schema, func(name string, value json.RawMessage) {
		pointer, local := "", false
		if name == "$ref" && value[0] == '"' {
			pointer, local = schematree.LocalRef(jsonscan.Text(value))
		}
		switch {
		case found, local && seen[pointer], name == "properties": // which is about the values of arguments
		case local:
			seen[pointer] = true
			target := s.root
			for _, token := range schematree.Split(pointer) {
				target = jsonscan.Member(target, token)
			}
			found = s.mentionsChanged(target) || s.refersToChanged(target, seen)
		default:
			found = s.refersToChanged(value, seen)
		}
	})
	return found
}

// mentionsChanged reports whether a definition may name an argument that callers name
// differently, or do not see.
func (s *schemaShaper) mentionsChanged(definition json.RawMessage) bool {
	for name := range s.outer {
		if bytes.Contains(definition, jsonscan.AppendString(nil, name)) {
			return true
		}
	}
	return false
}

// references returns a copy of JSON in which references to arguments follow their names.
// Generators of schemas make such references if two arguments have the same type.
func (s *schemaShaper) references(value json.RawMessage) json.RawMessage {
	if !bytes.Contains(value, []byte(`"$ref"`)) {
		return value
	}
	switch value[0] {
	case '[':
		return eachElement(value, s.references)
	case '{':
	default:
		return value
	}
	out := []byte{'{'}
	eachMember(value, func(name string, value json.RawMessage) {
		if name == "$ref" && value[0] == '"' {
			value = mustMarshal(s.reference(jsonscan.Text(value)))
		} else {
			value = s.references(value)
		}
		out = append(appendMember(out, name), value...)
	})
	return append(out, '}')
}

// definitionPrefix begins the names of the definitions of hidden arguments, so that they are
// unlikely to be names of definitions that the schema has.
const definitionPrefix = "argument-"

func (s *schemaShaper) reference(ref string) string {
	pointer, ok := schematree.LocalRef(ref)
	if !ok {
		return ref
	}
	tokens := schematree.Split(pointer)
	if len(tokens) < 2 || tokens[0] != "properties" {
		return ref
	}
	outer, changed := s.outer[tokens[1]]
	switch {
	case !changed:
		return ref
	case outer == "":
		s.referenced[tokens[1]] = true
		tokens[0], tokens[1] = "$defs", definitionPrefix+tokens[1]
	default:
		tokens[1] = outer
	}
	return (&url.URL{Fragment: schematree.Join(tokens)}).String()
}

// withDefinitions adds the schemas of the hidden arguments that references name.
func (s *schemaShaper) withDefinitions(schema, own json.RawMessage) json.RawMessage {
	if len(s.referenced) == 0 {
		return schema
	}
	properties := jsonscan.Member(own, "properties")
	definitions, added := []byte{'{'}, map[string]bool{}
	for len(added) < len(s.referenced) { // a definition may refer to another
		for _, name := range sortedKeys(s.referenced) {
			if added[name] {
				continue
			}
			added[name] = true
			if definition := jsonscan.Member(properties, name); definition != nil {
				definitions = append(appendMember(definitions, definitionPrefix+name), s.references(definition)...)
			}
		}
	}
	if old := jsonscan.Member(schema, "$defs"); old != nil && jsonscan.IsObject(old) {
		definitions = jsonscan.AppendMembers(definitions, old)
	} else {
		definitions = append(definitions, '}')
	}
	return jsonscan.AppendMembers(append([]byte(`{"$defs":`), definitions...), schema, "$defs")
}

// eachMember calls fn for the members of an object.
func eachMember(object json.RawMessage, fn func(name string, value json.RawMessage)) {
	if !jsonscan.IsObject(object) {
		return
	}
	scan := jsonscan.Get(object, 0)
	defer scan.Release()
	for ok := scan.Object() && scan.Member(); ok; ok = scan.Member() {
		name := string(scan.Name())
		fn(name, scan.Value())
	}
}

// eachElement returns a list with the results of fn for the elements of a list.
func eachElement(list json.RawMessage, fn func(json.RawMessage) json.RawMessage) json.RawMessage {
	scan := jsonscan.Get(list, 0)
	defer scan.Release()
	out := []byte{'['}
	for ok := scan.Array() && scan.Element(); ok; ok = scan.Element() {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, fn(scan.Value())...)
	}
	return append(out, ']')
}
