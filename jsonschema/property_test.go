// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"bytes"
	jsonv1 "encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/jsonschema"
)

// demanding lists the table entries whose tags and methods require more than the Go type,
// so that random values may be invalid.
var demanding = map[string]bool{"keywords": true, "optional": true, "text-standard": true, "supplied": true, "supplied-root": true}

// The schema of a type accepts every value of the type as encoded by the JSON package (T60:
// including nil slices, maps and pointers), and the proof agrees.
func TestSchemaAcceptsEncoding(t *testing.T) {
	for _, tt := range golden {
		if tt.failing || demanding[tt.name] {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			g := generator{rand.New(rand.NewPCG(1, 2))}
			for range 200 {
				g.check(t, tt.typ)
			}
		})
	}
}

// The schemas of random types accept the encoding of their values, too.
func TestSchemaAcceptsEncodingOfRandomTypes(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(3, 4))}
	for range 300 {
		typ := g.structType(3)
		for range 5 {
			g.check(t, typ)
		}
	}
}

// check encodes one random value of typ and validates it.
func (g generator) check(t *testing.T, typ reflect.Type) {
	t.Helper()
	v := g.value(typ, 4)
	data, err := jsonschema.Marshal(v.Interface())
	if err != nil {
		t.Fatalf("%v: %v", typ, err)
	}
	s := compileFor(t, typ)
	if err := jsonschema.ValidateTree(s, data); err != nil {
		schema, _ := jsonschema.ForType(typ)
		t.Fatalf("%s\nof type %v\ndoes not conform to %s\n%v", data, typ, schema, err)
	}
	if !jsonschema.HasProof(s) {
		t.Fatalf("%v has no proof", typ)
	}
	if !jsonschema.Proves(s, data) && !bytes.ContainsAny(data, "eE") { // exponents are left to the validator
		t.Fatalf("no proof for %s of type %v", data, typ)
	}
}

// A generator generates random values and types.
type generator struct{ *rand.Rand }

var scalars = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[uint64](),
	reflect.TypeFor[float64](), reflect.TypeFor[string](), reflect.TypeFor[[]byte](), reflect.TypeFor[[3]byte](),
	reflect.TypeFor[any](), reflect.TypeFor[time.Time](), reflect.TypeFor[color](), reflect.TypeFor[level](), reflect.TypeFor[time.Duration](),
	reflect.TypeFor[custom](), reflect.TypeFor[point](), reflect.TypeFor[node](), reflect.TypeFor[jsontext.Value](),
}

func (g generator) typ(depth int) reflect.Type {
	if depth == 0 {
		return scalars[g.IntN(len(scalars))]
	}
	switch g.IntN(8) {
	case 0:
		return reflect.SliceOf(g.typ(depth - 1))
	case 1:
		return reflect.MapOf(reflect.TypeFor[string](), g.typ(depth-1))
	case 2:
		return reflect.PointerTo(g.typ(depth - 1))
	case 3:
		return reflect.ArrayOf(g.IntN(3), g.typ(depth-1))
	case 4, 5:
		return g.structType(depth - 1)
	}
	return g.typ(0)
}

func (g generator) structType(depth int) reflect.Type {
	fields := make([]reflect.StructField, 1+g.IntN(4))
	options := []string{"", ",omitempty", ",omitzero"}
	for i := range fields {
		name := string(rune('A' + i))
		fields[i] = reflect.StructField{
			Name: name,
			Type: g.typ(depth),
			Tag:  reflect.StructTag(fmt.Sprintf(`json:"%s%s"`, strings.ToLower(name), options[g.IntN(len(options))])),
		}
	}
	return reflect.StructOf(fields)
}

// value returns a random value of type t. depth limits its nesting.
func (g generator) value(t reflect.Type, depth int) reflect.Value {
	v := reflect.New(t).Elem()
	if g.special(v) {
		return v
	}
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(g.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(g.Uint64()) >> g.IntN(64) >> (64 - t.Bits()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(g.Uint64() >> g.IntN(64) >> (64 - t.Bits()))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(float32(g.NormFloat64() * math.Pow(10, float64(g.IntN(8))))))
	case reflect.String:
		v.SetString(g.text())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := v.Field(i); f.CanSet() {
				f.Set(g.value(f.Type(), depth-1))
			}
		}
	case reflect.Pointer:
		if depth > 0 && g.IntN(3) > 0 {
			v.Set(reflect.New(t.Elem()))
			v.Elem().Set(g.value(t.Elem(), depth-1))
		}
	default:
		g.fill(v, depth)
	}
	return v
}

// fill generates lists, maps and interfaces, a third of which stay nil.
func (g generator) fill(v reflect.Value, depth int) {
	t := v.Type()
	if t.Kind() == reflect.Array {
		for i := range v.Len() {
			v.Index(i).Set(g.value(t.Elem(), depth-1))
		}
		return
	}
	if depth <= 0 || g.IntN(3) == 0 {
		return
	}
	switch t.Kind() {
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 0, 0))
		for range g.IntN(3) {
			v.Set(reflect.Append(v, g.value(t.Elem(), depth-1)))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		for range g.IntN(3) {
			v.SetMapIndex(g.value(t.Key(), 0), g.value(t.Elem(), depth-1))
		}
	case reflect.Interface:
		v.Set(g.value(scalars[g.IntN(8)], depth-1))
	}
}

// special generates values of types for which random bits are invalid.
func (g generator) special(v reflect.Value) bool {
	raw := []string{"null", `{"a":[1,"x",null]}`, "[[]]", "1.50", `"é\n"`, "true"}[g.IntN(6)]
	switch v.Type() {
	case reflect.TypeFor[jsonv1.RawMessage](), reflect.TypeFor[jsontext.Value](): // one type since Go 1.27
		v.SetBytes([]byte(raw))
		return true
	}
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = time.Unix(g.Int64N(4e9), g.Int64N(1e9)).UTC()
	case *embeddedTime:
		p.Time = time.Unix(g.Int64N(4e9), 0).UTC()
	case *taggedTime:
		p.Time = time.Unix(g.Int64N(4e9), 0).UTC()
	case *color:
		*p = color(color("").JSONSchemaEnum()[g.IntN(2)].(string))
	case *netip.Addr:
		*p = netip.AddrFrom4([4]byte{byte(g.Uint32())})
	case *big.Int:
		p.SetUint64(g.Uint64()).Mul(p, p)
	case *rawRest:
		p.Known, p.Rest = g.text(), jsontext.Value(`{"more":1}`)
	case *rest:
		p.Known, p.Rest = g.text(), map[string]int{"more": 1}
	default:
		return false
	}
	return true
}

func (g generator) text() string {
	const letters = "abcXYZ019 _\"\\\n\t/<&é世😀\u2028"
	runes := []rune(letters)
	var b strings.Builder
	for range g.IntN(8) {
		b.WriteRune(runes[g.IntN(len(runes))])
	}
	return b.String()
}
