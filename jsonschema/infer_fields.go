// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/internal/strictjson"
)

// A field is a Go field that becomes a JSON member, or the embedded fallback that holds
// all other members.
type field struct {
	reflect.StructField
	name      string
	tagged    bool  // the name comes from the tag
	index     []int // from the outermost struct
	omits     bool  // omitempty or omitzero
	omitempty bool
	quoted    bool // the "string" option
	viaNil    bool // reached through an embedded pointer, which may be nil
	about     *tag // the parsed jsonschema tag
}

// jsonFields returns the fields of struct type t that the JSON package reads and
// writes, in the order in which it writes them, and the embedded fallback, if any.
//
// Structs are searched breadth first. Of several fields with the same name, the shallowest
// wins. If several are equally shallow, the only one with a tag wins, or otherwise none.
func jsonFields(t reflect.Type) (fields []*field, rest *field) {
	type entry struct {
		typ    reflect.Type
		index  []int
		viaNil bool
	}
	var all, rests []*field
	seen := map[reflect.Type]bool{t: true}
	for queue := []entry{{typ: t}}; len(queue) > 0; queue = queue[1:] {
		e := queue[0]
		for i := range e.typ.NumField() {
			f, embed, ok := readField(e.typ.Field(i))
			if !ok {
				continue
			}
			f.index = append(slices.Clone(e.index), i)
			f.viaNil = e.viaNil
			inner := indirect(f.Type)
			switch {
			case !embed:
				all = append(all, f)
			case inner.Kind() != reflect.Struct:
				rests = append(rests, f)
			case !seen[inner]:
				seen[inner] = true
				queue = append(queue, entry{inner, f.index, e.viaNil || inner != f.Type})
			}
		}
	}
	if len(rests) == 1 || len(rests) > 1 && len(rests[0].index) != len(rests[1].index) {
		rest = rests[0]
	}
	return dominant(all), rest
}

// readField parses the json tag of f. It returns false for a field that is not in JSON.
// The JSON package has already accepted the tag.
func readField(f reflect.StructField) (out *field, embed, ok bool) {
	tag := f.Tag.Get("json")
	if tag == "-" || !f.IsExported() && !f.Anonymous {
		return nil, false, false
	}
	name, options, _ := strings.Cut(tag, ",")
	out = &field{StructField: f, name: cmp.Or(name, f.Name), tagged: name != ""}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			out.omits, out.omitempty = true, true
		case "omitzero":
			out.omits = true
		case "string":
			out.quoted = true
		case strictjson.EmbedOption:
			embed = true
		}
	}
	return out, embed || f.Anonymous && !out.tagged, true
}

// dominant returns the winning field for each name, sorted by position in the struct.
func dominant(all []*field) []*field {
	slices.SortStableFunc(all, func(a, b *field) int {
		return cmp.Or(
			strings.Compare(a.name, b.name),
			cmp.Compare(len(a.index), len(b.index)),
			compareTrueFirst(a.tagged, b.tagged))
	})
	var kept []*field
	for len(all) > 0 {
		n := 1 // number of fields with the first name
		for n < len(all) && all[n].name == all[0].name {
			n++
		}
		if n == 1 || len(all[0].index) != len(all[1].index) || all[0].tagged != all[1].tagged {
			kept = append(kept, all[0])
		}
		all = all[n:]
	}
	slices.SortFunc(kept, func(a, b *field) int { return slices.Compare(a.index, b.index) })
	return kept
}

func compareTrueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return +1
}

// optional reports whether the JSON package may omit the member, or the field is a
// pointer.
func (f *field) optional() bool {
	return f.omits || f.viaNil || f.Type.Kind() == reflect.Pointer
}

// writesNull reports whether a nil pointer in the field is written as null rather than
// omitted.
func (f *field) writesNull() bool {
	if f.Type.Kind() != reflect.Pointer || f.omitempty {
		return false
	}
	return !f.omits || f.Type.Elem().Kind() == reflect.Pointer
}

// isRawObject reports whether the fallback field is uninterpreted JSON.
func (f *field) isRawObject() bool { return indirect(f.Type) == reflect.TypeFor[jsontext.Value]() }
