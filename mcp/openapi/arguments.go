// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// nameArguments names the arguments: parameters by their names, and members of a body as
// long as no two have one name. Otherwise the body is one argument.
func (op *Operation) nameArguments(d *document) {
	used := map[string]bool{}
	for _, p := range op.params {
		p.arg = unused(argumentName(p.name), p.in, used)
	}
	if op.body == nil {
		return
	}
	if flat, ok := op.flatten(d, used); ok {
		op.body.fields = flat
		return
	}
	op.body.arg = unused("body", "request", used)
}

// argumentName returns the name of an argument that providers accept.
func argumentName(name string) string {
	if !isPortable(name) {
		name = cut(name, maxPath)
		name = strings.Trim(notPlain.ReplaceAllString(name, "_"), "_")
	}
	return cmpOr(name[:min(len(name), 56)], "argument")
}

func unused(base, where string, used map[string]bool) string {
	name := base
	if used[name] {
		name = base + "_" + where
	}
	for n := 2; used[name]; n++ {
		name = fmt.Sprint(base, n)
	}
	used[name] = true
	return name
}

const maxFields = 60 // members of a body that are arguments

// flatten returns the members of a body that is a plain object.
func (op *Operation) flatten(d *document, used map[string]bool) (fields []field, ok bool) {
	c := &converter{d: d, most: maxSchemaNodes}
	obj, err := d.resolve(op.body.schema)
	if err != nil {
		return nil, false
	}
	if len(list(obj, "allOf")) > 0 {
		obj = c.merged(obj, 8)
		if d.work += c.work(); c.err != nil || c.isFull() || obj["$ref"] != nil {
			return nil, false
		}
	}
	types, nullable := typesOf(obj)
	props := object(obj, "properties")
	_, open := obj["additionalProperties"].(map[string]any)
	if !isPlainObject(types) || nullable || open || obj["additionalProperties"] == true || len(props) == 0 || len(props) > maxFields ||
		obj["oneOf"] != nil || obj["anyOf"] != nil || obj["not"] != nil {
		return nil, false
	}
	required, taken := texts(list(obj, "required")), maps.Clone(used)
	names := slices.Collect(maps.Keys(props))
	d.work += len(required)
	for _, name := range required { // which may have no description
		_, known := props[name]
		if !known && !slices.Contains(names, name) {
			if len(names) > maxFields {
				continue
			}
			names = append(names, name)
		}
		op.body.needs[name] = op.body.required
	}
	// The names that remain as they are come first: the others must differ from them.
	slices.SortFunc(names, func(a, b string) int {
		switch isA, isB := isPortable(a), isPortable(b); {
		case isA && !isB:
			return -1
		case isB && !isA:
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		if d.isReadOnly(props[name]) {
			continue
		}
		if used[name] {
			return nil, false
		}
		fields = append(fields, field{name: name, arg: unused(argumentName(name), "body", taken)})
	}
	op.body.schema = obj
	return fields, len(fields) > 0
}

func isPlainObject(types []string) bool { return len(types) == 1 && types[0] == "object" }

// inputSchema returns the schema of the arguments.
func (op *Operation) inputSchema(c *converter, depth int) map[string]any {
	props, required := map[string]any{}, []string{}
	for _, p := range op.params {
		s := c.schema(p.schema, depth)
		if p.about != "" && s["$ref"] == nil {
			s["description"] = p.about
		}
		props[p.arg] = s
		if p.required {
			required = append(required, p.arg)
		}
	}
	if op.body != nil {
		required = append(required, op.body.addArguments(props, c, depth)...)
	}
	schema := map[string]any{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// addArguments adds the schemas of the arguments of a body, and returns those that are
// required.
func (b *body) addArguments(props map[string]any, c *converter, depth int) (required []string) {
	if b.arg != "" {
		props[b.arg] = b.argument(c, depth)
		if b.required {
			required = []string{b.arg}
		}
		return required
	}
	obj, _ := b.schema.(map[string]any)
	for _, f := range b.fields {
		member := object(obj, "properties")[f.name]
		props[f.arg] = c.schema(member, depth)
		if _, isFile := b.file(member, c.d); isFile {
			props[f.arg] = fileSchema(member)
		}
		if b.needs[f.name] {
			required = append(required, f.arg)
		}
	}
	return required
}
