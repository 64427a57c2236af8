// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/internal/sparse"
	"github.com/go-psi/psi/internal/strictjson"
)

// omissions are the parts of an answer that were left out because they could not be read.
type omissions struct {
	count int
	first []string // where the first of them were, and what was wrong
}

// maxOmissions is the number of omissions that are described in a log line.
const maxOmissions = 3

func (o *omissions) add(problem string) {
	o.count++
	if len(o.first) < maxOmissions {
		o.first = append(o.first, sparse.Excerpt(printable.Line(problem)))
	}
}

// unmarshalPruned is like unmarshal, but if data does not fit v, it leaves out the parts that
// do not fit and that the rest does not need. Its error says where the first needed part is
// that does not fit. Which members are optional is in the struct tags, so new types need no
// code. Content is not left out in part: a model must not take half a result for a whole one.
func unmarshalPruned(data []byte, v any) (omissions, error) {
	if unmarshal(data, v) == nil {
		return omissions{}, nil
	}
	p := pruner{members: map[reflect.Type]map[string]prunedMember{}}
	pruned, err := p.value("", data, reflect.TypeOf(v))
	if err != nil {
		return omissions{}, err
	}
	reflect.ValueOf(v).Elem().SetZero()
	if err := unmarshal(pruned, v); err != nil {
		return omissions{}, errors.New(strictjson.Problem(err))
	}
	return p.left, nil
}

// A pruner removes the parts of an encoded value that cannot be decoded: a member that is
// optional, or an element of a list. A required member that cannot be decoded makes its object
// unreadable, which is then removed in turn. Which members are optional is in the tags of the
// struct types. Pruning is slower than decoding, and only for values that cannot be decoded.
type pruner struct {
	left    omissions
	members map[reflect.Type]map[string]prunedMember // by name, for each struct type
}

type prunedMember struct {
	typ        reflect.Type
	isOptional bool
}

// value returns raw, a value of type t, without the parts that cannot be decoded.
func (p *pruner) value(path string, raw []byte, t reflect.Type) ([]byte, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	isList, isBlock := raw[0] == '[', t == reflect.TypeFor[wireBlock]()
	switch {
	case raw[0] == 'n' && !isBlock:
		return raw, nil // null is absence
	case t == reflect.TypeFor[Contents]() && isList:
		return p.list(path, raw, reflect.TypeFor[wireBlock]())
	case t == reflect.TypeFor[Contents](), isBlock:
		return p.block(path, raw)
	case isList && t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 && !decodesItself(t):
		return p.list(path, raw, t.Elem())
	case raw[0] == '{' && wireStruct(t) != nil:
		return p.object(path, raw, wireStruct(t))
	}
	if err := unmarshal(raw, reflect.New(t).Interface()); err != nil {
		return nil, problemAt(path, err)
	}
	return raw, nil
}

// problemAt returns an error that describes why the value at path could not be decoded.
func problemAt(path string, err error) error {
	problem := strictjson.Problem(err)
	if path != "" {
		problem = path + strings.TrimPrefix(problem, "the value itself")
	}
	return errors.New(problem)
}

// block prunes a content block.
func (p *pruner) block(path string, raw []byte) ([]byte, error) {
	kind, ok := contentTypeOf(raw)
	if !ok {
		return nil, errors.New(path + " must be a content block, an object with a type")
	}
	if block := newContent(kind); block != nil {
		return p.object(path, raw, wireStruct(reflect.TypeOf(block).Elem()))
	}
	return raw, nil
}

// list prunes the elements of a list. Content is what the caller has requested: a part of it
// that cannot be read is not left out, but makes the list unreadable.
func (p *pruner) list(path string, raw []byte, elem reflect.Type) ([]byte, error) {
	scan := jsonscan.Get(raw, 0)
	defer scan.Release()
	kept := []byte{'['}
	for i, ok := 0, scan.Array(); ok && scan.Element(); i++ {
		item, err := p.value(fmt.Sprintf("%s/%d", path, i), scan.Value(), elem)
		switch {
		case err != nil && isContent(elem):
			return nil, err
		case err != nil:
			p.left.add(err.Error())
			continue
		case len(kept) > 1:
			kept = append(kept, ',')
		}
		kept = append(kept, item...)
	}
	return append(kept, ']'), scan.Err()
}

// isContent reports whether t is the type of a part of the content of a result.
func isContent(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[wireBlock](), reflect.TypeFor[*PromptMessage](), reflect.TypeFor[*ResourceContents]():
		return true
	}
	return false
}

// object prunes the members of an object that is decoded into the struct type t.
func (p *pruner) object(path string, raw []byte, t reflect.Type) ([]byte, error) {
	members := p.membersOf(t)
	scan := jsonscan.Get(raw, 0)
	defer scan.Release()
	kept := []byte{'{'}
	for scan.Object(); scan.Member(); {
		name := string(scan.Name())
		value := scan.Value()
		if m, known := members[name]; known {
			var err error
			value, err = p.value(path+"/"+name, value, m.typ)
			switch {
			case err != nil && !m.isOptional:
				return nil, err
			case err != nil:
				p.left.add(err.Error())
				continue
			}
		}
		kept = append(appendMember(kept, name), value...)
	}
	return append(kept, '}'), scan.Err()
}

// membersOf returns the members that are decoded into the fields of a struct type.
func (p *pruner) membersOf(t reflect.Type) map[string]prunedMember {
	if members, ok := p.members[t]; ok {
		return members
	}
	members := map[string]prunedMember{}
	p.addMembers(members, t)
	p.members[t] = members
	return members
}

func (p *pruner) addMembers(members map[string]prunedMember, t reflect.Type) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name != "" && name != "-" && f.IsExported():
			members[name] = prunedMember{f.Type, strings.Contains(options, "omit") && !changesMeaning(name)}
		case inner.Kind() == reflect.Struct && (f.Anonymous && name == "" || strings.Contains(options, "embed")):
			p.addMembers(members, inner)
		}
	}
}

// changesMeaning reports whether an object without an optional member means something else, so
// that leaving the member out would be wrong.
func changesMeaning(member string) bool {
	switch member {
	case "isError", "text", "blob", "inputRequests", "requestState":
		return true
	}
	return false
}

// A wirer is a type with an UnmarshalJSON method that decodes a struct of another type.
type wirer interface{ wire() any }

// wireStruct returns the struct type that objects of type t are decoded into, or nil if t
// decodes itself in another way.
func wireStruct(t reflect.Type) reflect.Type {
	switch v := reflect.New(t).Interface().(type) {
	case plainer:
		return reflect.TypeOf(v.plain()).Elem()
	case wirer:
		return reflect.TypeOf(v.wire()).Elem()
	}
	if t.Kind() == reflect.Struct && !decodesItself(t) {
		return t
	}
	return nil
}

// A wireBlock is a member that contains one content block.
type wireBlock struct{ block Content }

// MarshalJSON implements json.Marshaler.
func (b wireBlock) MarshalJSON() ([]byte, error) { return appendContent(nil, b.block) }

// UnmarshalJSON implements json.Unmarshaler.
func (b *wireBlock) UnmarshalJSON(data []byte) (err error) {
	b.block, err = decodeContent(data)
	return err
}
