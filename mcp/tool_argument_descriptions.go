// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"fmt"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/nearest"
)

// describeArguments returns a schema with other descriptions of the arguments. It returns an
// error for an argument that does not exist.
func describeArguments(schema json.RawMessage, texts map[string]string) (json.RawMessage, error) {
	if len(texts) == 0 || jsonscan.Valid(schema, 0) != nil {
		return schema, nil
	}
	d := argumentDescriber{texts: texts, known: map[string]bool{}, scan: jsonscan.Get(schema, 0)}
	defer d.scan.Release()
	described := d.schema(nil, "")
	for _, name := range sortedKeys(texts) {
		if !d.known[name] {
			return nil, fmt.Errorf("Tool.ArgumentDescriptions has %q, which is no argument%s", name, nearest.Hint(name, sortedKeys(d.known)))
		}
	}
	return described, nil
}

// An argumentDescriber copies a schema.
type argumentDescriber struct {
	texts map[string]string
	known map[string]bool // arguments of the schema
	scan  *jsonscan.Scanner
}

// schema appends the next schema, which is that of an argument or, if path is "", the root.
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

// appendMember begins a member of an object.
func appendMember(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(jsonscan.AppendString(dst, name), ':')
}
