// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	jsonv1 "encoding/json"
	"fmt"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	invopop "github.com/invopop/jsonschema"
)

// The types below make up the table of inferred schemas. Each has a golden file. The schema
// must accept every value that the JSON package writes for its type.

type color string

func (color) JSONSchemaEnum() []any { return []any{"red", "green"} }

type level int

func (l level) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "L%d", int(l)), nil }
func (l *level) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "L%d", (*int)(l))
	return err
}

// UUID resembles the types of common UUID packages.
type UUID [16]byte

func (u UUID) MarshalText() ([]byte, error)     { return fmt.Appendf(nil, "%x", u[:]), nil }
func (u *UUID) UnmarshalText(text []byte) error { return nil }

// readText implements only encoding.TextUnmarshaler.
type readText string

func (*readText) UnmarshalText([]byte) error { return nil }

type custom struct{ n int }

func (c custom) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "[%d]", c.n), nil }
func (c *custom) UnmarshalJSON(b []byte) error {
	_, err := fmt.Sscanf(string(b), "[%d]", &c.n)
	return err
}

type rawSupplied struct{}

func (rawSupplied) JSONSchema() jsonv1.RawMessage {
	return jsonv1.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema", "type":"object", "x-kept":1, "properties":{}}`)
}

type pointerSupplied struct{ N int }

func (*pointerSupplied) JSONSchema() *invopop.Schema {
	return &invopop.Schema{Type: "object", Properties: invopop.NewProperties(), Description: "from the type"}
}

type extended struct{ N int }

func (extended) JSONSchemaExtend(s *invopop.Schema) { s.Description = "extended" }

type point struct {
	X int `json:"x"`
	Y int `json:"y"`
}

type node struct {
	Value int   `json:"value"`
	Next  *node `json:"next,omitempty"`
}

type tree struct {
	Kids []tree `json:"kids"`
}

type byName struct {
	Sub map[string]byName `json:"sub"`
}

type ping struct {
	Pong *pong `json:"pong"`
}

type pong struct {
	Ping *ping `json:"ping"`
}

type page[T any] struct {
	Items []T      `json:"items"`
	Next  *page[T] `json:"next,omitempty"`
}

type pair[A, B any] struct {
	First  A `json:"first"`
	Second B `json:"second"`
}

type embeddedTime struct {
	time.Time
	Lost int
}

type taggedTime struct {
	time.Time `json:"at"`
}

type embeds struct {
	point
	*extended
	Named pair[int, string] `json:"named"`
}

type tagged struct {
	point `json:"inner"`
}

type shadows struct {
	point
	X string `json:"x"`
}

type rest struct {
	Known string         `json:"known"`
	Rest  map[string]int `json:",inline,embed"`
}

type rawRest struct {
	Known string         `json:"known"`
	Rest  jsontext.Value `json:",inline,embed"`
}

type pointers struct {
	S    *string         `json:"s"`
	O    *string         `json:"o,omitempty"`
	Z    *string         `json:"z,omitzero"`
	P    *point          `json:"p"`
	E    *color          `json:"e"`
	L    []*string       `json:"l"`
	M    map[string]*int `json:"m"`
	PP   **int           `json:"pp"`
	PL   *[]string       `json:"pl"`
	Null *any            `json:"null"`
}

type optional struct {
	Required string    `json:"required"`
	Empty    string    `json:"empty,omitempty"`
	Zero     time.Time `json:"zero,omitzero"`
	Forced   *string   `json:"forced" jsonschema:"required"`
}

type keywords struct {
	Unit   string   `json:"unit" jsonschema:"enum=celsius,enum=fahrenheit,default=celsius"`
	Name   string   `json:"name" jsonschema:"minLength=1,maxLength=5,pattern=^[a-z]+$,title=The name"`
	Count  int      `json:"count" jsonschema:"minimum=1,maximum=10,default=3,description=how many"`
	Ratio  float64  `json:"ratio" jsonschema:"exclusiveMinimum=0,exclusiveMaximum=1.5,multipleOf=0.5"`
	Many   []int    `json:"many" jsonschema:"minItems=1,maxItems=3,enum=1,enum=2,default=1,default=2"`
	Words  []string `json:"words" jsonschema:"uniqueItems=true,default=a"`
	Mail   string   `json:"mail" jsonschema:"format=email,example=a@b.example"`
	On     bool     `json:"on" jsonschema:"default=true"`
	Null   string   `json:"null" jsonschema:"nullable"`
	Text   string   `json:"text" jsonschema_description:"a text, with a comma & an <angle>"`
	Color  color    `json:"color" jsonschema:"enum=red,description=only one"`
	Where  point    `json:"where" jsonschema:"description=a place"`
	Hidden string   `json:"hidden,omitzero" jsonschema:"-"`
}

type numbers struct {
	I   int
	I8  int8
	I16 int16
	I32 int32
	I64 int64
	U   uint
	U8  uint8
	U16 uint16
	U32 uint32
	U64 uint64
	F32 float32
	F64 float64
	Big big.Int
}

type quoted struct {
	I int      `json:",string"`
	F float64  `json:",string"`
	P *uint8   `json:",string"`
	O *float32 `json:",omitzero,string"`
}

type unseen struct {
	Seen string `json:"seen"`
	//lint:ignore U1000 the schema must not show it
	hidden string
	Never  string `json:"-"`
}

// A goldenType is a type with its inferred schema in testdata; there is none if failing is set.
type goldenType struct {
	name    string
	typ     reflect.Type
	failing bool
}

// golden is the table of inferred schemas.
var golden = append([]goldenType{
	{name: "any", typ: reflect.TypeFor[struct {
		V any
		L []any
		M map[string]any
	}]()},
	{name: "bytes", typ: reflect.TypeFor[struct {
		B []byte
		A [5]byte
		P *[]byte
	}]()},
	{name: "custom", typ: reflect.TypeFor[struct {
		C custom
		P *custom
	}]()},
	{name: "embedded", typ: reflect.TypeFor[embeds]()},
	{name: "embedded-rest", typ: reflect.TypeFor[rest]()},
	{name: "embedded-rest-raw", typ: reflect.TypeFor[rawRest]()},
	{name: "embedded-shadowed", typ: reflect.TypeFor[shadows]()},
	{name: "embedded-tagged", typ: reflect.TypeFor[tagged]()},
	{name: "empty", typ: reflect.TypeFor[struct{}]()},
	{name: "enum", typ: reflect.TypeFor[struct {
		C  color
		P  *color
		L  []color
		LP []*color
		M  map[string]color
		MK map[color]int
	}]()},
	{name: "extended", typ: reflect.TypeFor[struct{ E, F extended }]()},
	{name: "generic", typ: reflect.TypeFor[pair[page[point], page[color]]]()},
	{name: "keywords", typ: reflect.TypeFor[keywords]()},
	{name: "list", typ: reflect.TypeFor[[]point]()},
	{name: "map", typ: reflect.TypeFor[struct {
		S map[string]point
		I map[int]bool
		T map[level]string
		N map[string]map[string][]int
	}]()},
	{name: "numbers", typ: reflect.TypeFor[numbers]()},
	{name: "optional", typ: reflect.TypeFor[optional]()},
	{name: "pointers", typ: reflect.TypeFor[pointers]()},
	{name: "quoted", typ: reflect.TypeFor[quoted]()},
	{name: "raw", typ: reflect.TypeFor[struct {
		R jsonv1.RawMessage
		V jsontext.Value
		P *jsonv1.RawMessage
	}]()},
	{name: "recursive", typ: reflect.TypeFor[node]()},
	{name: "recursive-elements", typ: reflect.TypeFor[struct {
		Trees []tree             `json:"trees"`
		Nodes []*node            `json:"nodes"`
		Named map[string][]*node `json:"named"`
	}]()},
	{name: "recursive-inner", typ: reflect.TypeFor[struct {
		A *node `json:"a"`
		B node  `json:"b"`
	}]()},
	{name: "recursive-map", typ: reflect.TypeFor[byName]()},
	{name: "recursive-mutual", typ: reflect.TypeFor[ping]()},
	{name: "recursive-slice", typ: reflect.TypeFor[tree]()},
	{name: "scalar", typ: reflect.TypeFor[string]()},
	{name: "supplied", typ: reflect.TypeFor[struct {
		R rawSupplied     `jsonschema:"description=added by the tag"`
		O *rawSupplied    `json:",omitzero"`
		P pointerSupplied `json:"p"`
		N *pointerSupplied
	}]()},
	{name: "supplied-root", typ: reflect.TypeFor[rawSupplied]()},
	{name: "text", typ: reflect.TypeFor[struct {
		L level
		P *level
		A netip.Addr
	}]()},
	{name: "time", typ: reflect.TypeFor[struct {
		T time.Time
		P *time.Time
		E embeddedTime
		G taggedTime
		Q *embeddedTime
	}]()},
	{name: "text-standard", typ: reflect.TypeFor[struct {
		D  time.Duration `json:"d" jsonschema:"how long to wait, at most"`
		PD *time.Duration
		U  url.URL
		PU *url.URL
		A  netip.Addr
		P  netip.AddrPort
		N  netip.Prefix
		ID UUID
		R  readText
	}]()},
	{name: "twice", typ: reflect.TypeFor[struct {
		A point
		B point
		C []point
	}]()},
	{name: "unseen", typ: reflect.TypeFor[unseen]()},

	{name: "fails-chan", typ: reflect.TypeFor[struct{ A []struct{ C chan int } }](), failing: true},
	{name: "fails-complex", typ: reflect.TypeFor[map[string]complex128](), failing: true},
	{name: "fails-func", typ: reflect.TypeFor[func()](), failing: true},
	{name: "fails-key", typ: reflect.TypeFor[struct{ M map[bool]int }](), failing: true},
	{name: "fails-quoted", typ: structOf("S", reflect.TypeFor[[]string](), `json:",string"`), failing: true},
}, dashedTypes...)

// structOf returns a struct type that linters would reject in source code.
func structOf(name string, typ reflect.Type, tag reflect.StructTag) reflect.Type {
	return reflect.StructOf([]reflect.StructField{{Name: name, Type: typ, Tag: tag}})
}
