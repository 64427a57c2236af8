// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	invopop "github.com/invopop/jsonschema"
)

// maxInferNodes bounds the number of schemas in an inferred schema. A larger one
// could not be sent to a model anyway.
const maxInferNodes = 20_000

// maxPointers bounds a chain of pointers. Only a type such as "type P *P"
// exceeds it.
const maxPointers = 16

const errSelfPointer = "a pointer type that points to itself has no schema"

// Enumer is implemented by a type that lists its values. [For] calls the method
// on the zero value and writes the list as the schema's "enum". An enum in a
// field's tag replaces the list for that field.
type Enumer interface {
	// JSONSchemaEnum returns every value of the type, in the order in which to list them.
	// Each is encoded as JSON.
	JSONSchemaEnum() []any
}

// For returns the schema of T as one compact line of JSON. It is
// [ForType] of T's [reflect.Type].
func For[T any]() (json.RawMessage, error) {
	return ForType(reflect.TypeFor[T]())
}

// ForInput returns the schema of T for values that are only decoded, such as the arguments
// of a tool. It differs from [For] in null, which many clients reject in the input schema
// of a tool: an optional field, the value of a map and the element of a list of structs do
// not allow null for being a pointer. Validate with [Options.OptionalNull], which accepts
// null for what is optional, and decodes as an absent value does. A field with the word
// nullable, a required pointer, and a pointer in a list of anything but structs still
// allow null.
func ForInput[T any]() (json.RawMessage, error) {
	// It is a function, not an option of For, because Out and In of one type have different
	// schemas, and a type parameter is all that callers have.
	return forType(reflect.TypeFor[T](), true)
}

// ForType returns the schema of t. It describes the JSON that [Unmarshal] decodes into, and
// [Marshal] encodes from, a value of type t. See the package comment for the rules. If t is
// a pointer type, ForType describes the type that it points to.
//
// The result is compact, the same on every call, and owned by the caller. Each type is
// inferred once. ForType may be called concurrently.
//
// ForType returns an error, with the path of Go fields, if t contains a type with no JSON
// form (a channel, function or complex number), a struct that the JSON package rejects, a
// map whose keys are not encoded as strings, or an invalid tag.
func ForType(t reflect.Type) (json.RawMessage, error) { return forType(t, false) }

func forType(t reflect.Type, isInput bool) (json.RawMessage, error) {
	if t == nil {
		return nil, errors.New("jsonschema: no type to infer a schema from")
	}
	for t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	key := inferenceKey{t, isInput}
	v, ok := inferred.Load(key)
	if !ok {
		v, _ = inferred.LoadOrStore(key, infer(key))
	}
	r := v.(inference)
	return slices.Clone(r.schema), r.err
}

// inferred caches an inference for every inferenceKey.
var inferred sync.Map

type inferenceKey struct {
	reflect.Type
	isInput bool // see ForInput
}

type inference struct {
	schema json.RawMessage
	err    error
}

func infer(key inferenceKey) inference {
	schema, err := marshalRoot(key.Type, key.isInput)
	return inference{schema, err}
}

func marshalRoot(t reflect.Type, isInput bool) ([]byte, error) {
	in := &inferrer{
		isInput: isInput,

		open:  map[reflect.Type]bool{},
		names: map[reflect.Type]string{},
		defs:  invopop.Definitions{},
	}
	p := path(rootName(t))
	s, err := in.schema(t, p)
	if err != nil {
		return nil, err
	}
	s = in.complete(t, s)
	if name, ok := in.names[t]; ok { // write the root out: some clients look for its "type"
		root := *in.defs[name]
		s = &root
	}
	s.Definitions = in.defs
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, p.errorf("%v", err)
	}
	// encoding/json escapes <, > and &, which makes descriptions hard to read.
	out := jsontext.Value(raw)
	err = out.Format(jsontext.PreserveRawStrings(false), jsontext.AllowDuplicateNames(false))
	return out, err
}

func rootName(t reflect.Type) string {
	if t.Name() == "" {
		return t.Kind().String()
	}
	return defName(t)
}

// An inferrer builds the schema of one root type. Every type is expanded where
// it occurs. Only a type that contains itself becomes a definition.
type inferrer struct {
	isInput bool // see ForInput

	open  map[reflect.Type]bool   // types being expanded, from the root down
	names map[reflect.Type]string // names of the recursive types
	defs  invopop.Definitions     // their schemas; nil while still open
	nodes int
}

// A path is a position in the Go type, for error messages.
type path string

func (p path) field(name string) path { return p + path("."+name) }
func (p path) elem() path             { return p + "[]" }

func (p path) errorf(format string, args ...any) error {
	return fmt.Errorf("jsonschema: %s: %s", string(p), fmt.Sprintf(format, args...))
}

// schema returns a new schema for t or, if t is a pointer, for the type that it points to.
// The result is not complete yet: see complete.
func (in *inferrer) schema(t reflect.Type, p path) (*invopop.Schema, error) {
	t = base(t)
	if t.Kind() == reflect.Pointer {
		return nil, p.errorf(errSelfPointer)
	}
	if in.nodes++; in.nodes > maxInferNodes {
		return nil, p.errorf("the schema has more than %d nodes", maxInferNodes)
	}
	if s, err := in.suppliedSchema(t, p); s != nil || err != nil {
		return s, err
	}
	if in.open[t] || in.names[t] != "" {
		return in.reference(t), nil
	}
	in.open[t] = t.Name() != "" // every cycle has a named type, which becomes the definition
	s, err := in.expand(t, p)
	delete(in.open, t)
	if err != nil {
		return nil, err
	}
	adjust(t, s)
	name, recursive := in.names[t]
	if !recursive {
		return s, nil
	}
	in.defs[name] = in.complete(t, s)
	return in.reference(t), nil
}

// reference returns a reference to the definition of t.
func (in *inferrer) reference(t reflect.Type) *invopop.Schema {
	name, ok := in.names[t]
	if !ok {
		name = in.freeName(defName(t))
		in.names[t] = name
		in.defs[name] = nil
	}
	return &invopop.Schema{Ref: "#/$defs/" + name}
}

// freeName returns name, with a number appended if another type already has that name.
func (in *inferrer) freeName(name string) string {
	free := name
	for n := 2; ; n++ {
		if _, taken := in.defs[free]; !taken {
			return free
		}
		free = fmt.Sprintf("%s%d", name, n)
	}
}

// base removes all pointers from t. The result is a pointer only if t points to itself.
func base(t reflect.Type) reflect.Type {
	for range maxPointers {
		if t.Kind() != reflect.Pointer {
			break
		}
		t = t.Elem()
	}
	return t
}

// defName returns a short name for t that is safe in a JSON pointer and in
// every client: letters, digits and underscores. The type arguments of a generic
// type follow its name, without their packages: Page[example.com/shop.Item] is
// Page_Item.
func defName(t reflect.Type) string {
	var b strings.Builder
	word := 0 // start of the current word in b
	for _, r := range t.Name() {
		switch {
		case r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
			b.WriteRune(r)
		case r == '.' || r == '/' || r == '-': // what came before was part of a package path
			kept := b.String()[:word]
			b.Reset()
			b.WriteString(kept)
		case r == '·': // numbers a type declared inside a function
			word = b.Len()
		default:
			if s := b.String(); s != "" && !strings.HasSuffix(s, "_") {
				b.WriteByte('_')
			}
			word = b.Len()
		}
	}
	name := strings.TrimRight(b.String(), "_")
	if name == "" {
		return "Type"
	}
	return name
}
