// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	invopop "github.com/invopop/jsonschema"
)

// maxInferNodes bounds what inlining may produce: a type whose schema is
// larger than this could not be sent to a model anyway.
const maxInferNodes = 20_000

// maxPointers bounds a chain of pointers, which only a type such as
// "type P *P" can exceed.
const maxPointers = 16

// Enumer is implemented by a type that lists its values. [For] calls the method
// on the zero value and writes the list as the schema's "enum". An enum in a
// field's tag replaces the list for that field.
type Enumer interface {
	// JSONSchemaEnum returns every value of the type, in the order to show.
	// Each is encoded as JSON.
	JSONSchemaEnum() []any
}

// For returns the schema of T as one compact line of JSON. It is
// [ForType] of T's [reflect.Type].
func For[T any]() (json.RawMessage, error) {
	return ForType(reflect.TypeFor[T]())
}

// ForType returns the schema of t: what github.com/go-json-experiment/json
// reads into, and writes from, a value of type t. The package comment has the
// rules. Pointers around t itself are ignored.
//
// The result is compact, the same on every call, and the caller's to keep. It
// is inferred once per type. It is an error, which names the path of Go fields,
// if t holds a type with no JSON form (a channel, function, complex number or
// time.Duration), a struct that the JSON package refuses, or a map whose
// keys are not strings in JSON. ForType may be called concurrently.
func ForType(t reflect.Type) (json.RawMessage, error) {
	if t == nil {
		return nil, errors.New("jsonschema: no type to infer a schema from")
	}
	for t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	v, ok := inferred.Load(t)
	if !ok {
		v, _ = inferred.LoadOrStore(t, infer(t))
	}
	r := v.(inference)
	return slices.Clone(r.schema), r.err
}

// inferred holds an inference for every reflect.Type asked for so far.
var inferred sync.Map

type inference struct {
	schema json.RawMessage
	err    error
}

func infer(t reflect.Type) inference {
	in := &inferrer{
		root:  t,
		open:  map[reflect.Type]bool{},
		defs:  map[reflect.Type]*invopop.Schema{},
		notes: notes{},
	}
	s, _, err := in.schema(t, path(rootName(t)))
	if err != nil {
		return inference{err: err}
	}
	w := schemaWriter{notes: in.notes, defs: in.defList()}
	w.schema(s)
	return inference{schema: w.buf, err: w.err}
}

func rootName(t reflect.Type) string {
	if t.Name() == "" {
		return t.Kind().String()
	}
	return defName(t)
}

// An inferrer builds the schema of one root type. Every type is expanded where
// it occurs; only a type that contains itself becomes a definition.
type inferrer struct {
	root  reflect.Type
	open  map[reflect.Type]bool            // types being expanded, from the root down
	defs  map[reflect.Type]*invopop.Schema // recursive types; nil while still open
	names []string                         // names of definitions, in order of first reference
	types []reflect.Type                   // the types of names
	nodes int
	notes notes
}

// A note says of one schema what invopop's type has no room for.
type note struct {
	anyValue bool            // every JSON value is allowed
	null     bool            // null is allowed besides
	raw      json.RawMessage // the type supplied this itself
}

type notes map[*invopop.Schema]note

func (n notes) setNull(s *invopop.Schema) {
	o := n[s]
	o.null = true
	n[s] = o
}

// path is where in the Go type the inferrer is, for errors.
type path string

func (p path) field(name string) path { return p + path("."+name) }
func (p path) elem() path             { return p + "[]" }

func (p path) errorf(format string, args ...any) error {
	return fmt.Errorf("jsonschema: %s: %s", string(p), fmt.Sprintf(format, args...))
}

// schema returns a fresh schema for t, and whether t is a pointer, whose nil is
// written as null. Whoever refers to the schema decides whether that matters.
func (in *inferrer) schema(t reflect.Type, p path) (s *invopop.Schema, null bool, err error) {
	for range maxPointers {
		if t.Kind() != reflect.Pointer {
			break
		}
		t, null = t.Elem(), true
	}
	if t.Kind() == reflect.Pointer {
		return nil, false, p.errorf("a pointer type that points to itself has no schema")
	}
	if in.nodes++; in.nodes > maxInferNodes {
		return nil, false, p.errorf("the schema has more than %d nodes", maxInferNodes)
	}
	if s, ok, err := in.supplied(t, p); ok || err != nil {
		return s, null, err
	}
	if _, ok := in.defs[t]; ok {
		return in.reference(t), null, nil
	}
	if in.open[t] {
		in.defs[t] = nil
		return in.reference(t), null, nil
	}
	in.open[t] = true
	s, err = in.expand(t, p)
	delete(in.open, t)
	if err != nil {
		return nil, false, err
	}
	adjust(t, s)
	return in.closeType(t, s), null, nil
}

// closeType makes t a definition if something inside it referred back to it. The
// root is never a mere reference: some clients look for its "type".
func (in *inferrer) closeType(t reflect.Type, s *invopop.Schema) *invopop.Schema {
	if _, ok := in.defs[t]; !ok {
		return s
	}
	in.defs[t] = s
	if t == in.root {
		return s
	}
	return in.reference(t)
}

func (in *inferrer) reference(t reflect.Type) *invopop.Schema {
	i := slices.Index(in.types, t)
	if i < 0 {
		i = len(in.types)
		in.types = append(in.types, t)
		in.names = append(in.names, in.freeName(defName(t)))
	}
	return &invopop.Schema{Ref: "#/$defs/" + in.names[i]}
}

// freeName keeps types of one name from several packages apart.
func (in *inferrer) freeName(name string) string {
	free := name
	for n := 2; slices.Contains(in.names, free); n++ {
		free = fmt.Sprintf("%s%d", name, n)
	}
	return free
}

func (in *inferrer) defList() []definition {
	list := make([]definition, len(in.types))
	for i, t := range in.types {
		list[i] = definition{in.names[i], in.defs[t]}
	}
	return list
}
