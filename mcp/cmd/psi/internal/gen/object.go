// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gen

import (
	"strconv"
	"strings"

	"github.com/go-psi/psi/internal/schematree"
)

// A structType is a struct with a field for each property.
type structType struct {
	name   string
	doc    []string // paragraphs
	fields []*structField
}

type structField struct {
	name, doc  string
	tag        string // a Go literal, or "" for none
	typ        goType
	isRequired bool
	inCycle    bool // the struct would otherwise contain itself
}

func (s *structType) write(to *strings.Builder) {
	to.WriteByte('\n')
	writeComment(to, "", s.doc...)
	to.WriteString("type " + s.name + " struct {\n")
	for i, f := range s.fields {
		if i > 0 && f.doc != "" {
			to.WriteByte('\n')
		}
		writeComment(to, "\t", f.doc)
		to.WriteString("\t" + f.name + " " + f.text() + " " + f.tag + "\n")
	}
	to.WriteString("}\n")
}

// text returns the field's type. If a value can be missing, it is a pointer or a type that
// has nil.
func (f *structField) text() string {
	if !f.isRequired || f.typ.nullable || f.inCycle {
		return f.typ.optional()
	}
	return f.typ.text
}

// object returns the type of an object: a struct if its properties are known, or a map.
func (r *reader) object(s *object, pointer string, name typeName) goType {
	m := members{seen: map[string]bool{}, required: map[string]bool{}, named: map[string]bool{}}
	r.collect(s, pointer, &m, map[string]bool{})
	if len(m.list) == 0 {
		return r.rest(s, &m, pointer, name)
	}
	st := &structType{name: r.g.takeType(name)}
	st.doc = []string{st.name + " is an object in " + r.origin + ".", s.text("description")}
	if pointer == "" {
		st.doc = []string{st.name + " is " + r.origin + ".", s.text("description")}
	}
	t := goType{text: st.name, strct: st}
	r.made[pointer] = t // before its fields, which can be of this type
	r.g.decls = append(r.g.decls, st)
	names := scope{}
	for _, p := range m.list {
		st.fields = append(st.fields, r.field(p, names, m.required[p.name], name))
	}
	if m.hasOthers = m.hasOthers || m.namesOthers(s); isOpen(s) || m.hasOthers {
		st.fields = append(st.fields, &structField{
			name: names.take("Extra"), doc: "Extra has the members that have no field.", tag: jsonTag(",inline,embed"), isRequired: true,
			typ: r.rest(s, &m, pointer, name),
		})
	}
	return t
}

// isOpen reports whether the schema of an object explicitly allows members other than its
// properties. The default allows them too, but servers seldom intend that.
func isOpen(s *object) bool {
	_, isSchema := s.values["additionalProperties"].(*object)
	return isSchema || s.values["additionalProperties"] == true || s.has("patternProperties")
}

// rest returns the type of the members that have no field.
func (r *reader) rest(s *object, m *members, pointer string, name typeName) goType {
	value := r.anyType("")
	if schema, ok := s.values["additionalProperties"].(*object); ok && !m.hasOthers && !s.has("patternProperties") {
		value = r.typeOf(schema, pointer+"/additionalProperties", name.with("Value"))
	}
	return goType{text: "map[string]" + value.element(), hasNil: true}
}

// A property is a property of an object and the location of its schema.
type property struct {
	name, pointer string
	schema        any
}

// members are the properties of an object and of the schemas that it combines.
type members struct {
	list      []property
	hasOthers bool // some properties cannot have a field
	seen      map[string]bool
	required  map[string]bool

	// named has the properties that an alternative or a condition names, and isOpen reports
	// whether one of them, or of the combined schemas, explicitly allows others.
	named  map[string]bool
	isOpen bool
}

// namesOthers reports whether the schema s of the object allows members without a field that
// it names, or that a part of it explicitly allows.
func (m *members) namesOthers(s *object) bool {
	if s.values["additionalProperties"] == false {
		return false
	}
	for name := range m.required {
		m.named[name] = true
	}
	for name := range m.named {
		if !m.seen[name] {
			return true
		}
	}
	return m.isOpen
}

// visitCost is the cost of visiting a schema or a property; see spend.
const visitCost = 16

// collect adds the properties of a schema, and of the schemas in its allOf and $ref.
func (r *reader) collect(s *object, pointer string, m *members, visited map[string]bool) {
	if visited[pointer] {
		return
	}
	visited[pointer] = true
	m.isOpen = m.isOpen || len(visited) > 1 && isOpen(s)
	properties := asObject(s.values["properties"])
	for _, name := range properties.names {
		switch {
		case !r.g.spend(visitCost):
			return
		case !hasTag(name):
			m.hasOthers = true
		case !m.seen[name]:
			m.seen[name] = true
			m.list = append(m.list, property{name, pointer + "/properties/" + schematree.Escape(name), properties.values[name]})
		}
	}
	for _, name := range s.strings("required") {
		m.required[name] = true
	}
	for i, sub := range s.list("allOf") {
		r.collect(asObject(sub), pointer+"/allOf/"+strconv.Itoa(i), m, visited)
	}
	r.eachAlternative(s, pointer, func(sub *object, at string) { r.collectNames(sub, at, m, visited) })
	if target, at, ok := r.target(s); ok {
		r.collect(asObject(target), at, m, visited)
	}
}

// eachAlternative calls visit for the schemas that may apply to the same value as s.
func (r *reader) eachAlternative(s *object, pointer string, visit func(sub *object, at string)) {
	for _, keyword := range []string{"anyOf", "oneOf"} {
		for i, sub := range s.list(keyword) {
			visit(asObject(sub), pointer+"/"+keyword+"/"+strconv.Itoa(i))
		}
	}
	for _, keyword := range []string{"if", "then", "else"} {
		if s.has(keyword) {
			visit(asObject(s.values[keyword]), pointer+"/"+keyword)
		}
	}
	for _, keyword := range []string{"dependentSchemas", "dependencies"} {
		schemas := asObject(s.values[keyword])
		for _, name := range schemas.names {
			visit(asObject(schemas.values[name]), pointer+"/"+keyword+"/"+schematree.Escape(name))
		}
	}
}

// collectNames adds the names that a schema, which may apply to the object, has for its
// members.
func (r *reader) collectNames(s *object, pointer string, m *members, visited map[string]bool) {
	if visited[pointer] || !r.g.spend(visitCost) {
		return
	}
	visited[pointer] = true
	m.isOpen = m.isOpen || isOpen(s)
	names := append(s.strings("required"), asObject(s.values["properties"]).names...)
	if !r.g.spend(visitCost * len(names)) {
		return
	}
	for _, name := range names {
		m.named[name] = true
	}
	for i, sub := range s.list("allOf") {
		r.collectNames(asObject(sub), pointer+"/allOf/"+strconv.Itoa(i), m, visited)
	}
	r.eachAlternative(s, pointer, func(sub *object, at string) { r.collectNames(sub, at, m, visited) })
	if target, at, ok := r.target(s); ok {
		r.collectNames(asObject(target), at, m, visited)
	}
}

func (r *reader) field(p property, names scope, isRequired bool, parent typeName) *structField {
	s := asObject(p.schema)
	title := s.text("title")
	declared := typeName{r.tool + r.suffix + exported(p.name), parent.long + exported(p.name)}
	if s.has("properties") && title != "" {
		declared = newTypeName(r.tool + exported(title))
	}
	f := &structField{name: names.take(exported(p.name)), tag: fieldTag(p.name, isRequired), typ: r.typeOf(p.schema, p.pointer, declared), isRequired: isRequired}
	f.doc = s.text("description")
	notes := f.typ.note
	if text := compact(s.values["default"]); s.has("default") && text != "" && len(text) < commentWidth {
		notes = strings.TrimSpace(notes + " The default is " + text + ".")
	}
	if f.doc != "" && notes != "" {
		f.doc = sentence(f.doc) + "\n"
	}
	f.doc += notes
	const line = 64 // besides its names
	r.g.spend(line + len(f.name) + len(f.tag) + min(len(f.doc), maxComment))
	return f
}

// breakCycles makes pointers of the fields through which structs would otherwise contain
// themselves by value.
func breakCycles(all []*structType) {
	const visiting, done = 1, 2
	state := map[*structType]int{}
	var visit func(s *structType)
	visit = func(s *structType) {
		state[s] = visiting
		for _, f := range s.fields {
			inner := f.typ.strct
			if inner == nil || f.text() != inner.name {
				continue
			}
			switch state[inner] {
			case visiting:
				f.inCycle = true
			case 0:
				visit(inner)
			}
		}
		state[s] = done
	}
	for _, s := range all {
		if state[s] == 0 {
			visit(s)
		}
	}
}
