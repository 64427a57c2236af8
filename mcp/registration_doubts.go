// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
)

// A doubter is a handler that may be registered, but in a way that is rarely intended. doubts
// returns what is odd, for the log.
type doubter interface{ doubts() []string }

// warnDoubts logs what is odd about a registration.
func (m *Mux) warnDoubts(e *entry, h Handler) {
	var doubts []string
	if d, ok := h.(doubter); ok {
		doubts = d.doubts()
	}
	if e.tool != nil && e.tool.Annotations.isContradictory() {
		doubts = append(doubts, "its ReadOnlyHint and its DestructiveHint are both true: clients may call it without asking the user; leave one out")
	}
	for _, doubt := range doubts {
		m.opts.Logger.Warn("mcp: a "+e.kind+" is odd: "+doubt, "name", e.name, "registered", e.site)
	}
}

func (a *ToolAnnotations) isContradictory() bool {
	isTrue := func(b *bool) bool { return b != nil && *b }
	return a != nil && isTrue(a.ReadOnlyHint) && isTrue(a.DestructiveHint)
}

// doubts implements [doubter].
func (f *toolFunc[In, Out]) doubts() []string {
	if len(f.foreign) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("its arguments have tags of other libraries, which its InputSchema ignores (%s); write jsonschema tags, such as jsonschema:\"minLength=1,description=a city\"",
		strings.Join(f.foreign[:min(len(f.foreign), maxForeignTags)], ", "))}
}

// maxForeignTags limits how many tags a warning names.
const maxForeignTags = 5

// otherTags are the tags by which other libraries describe or validate fields.
var otherTags = []string{"binding", "default", "desc", "description", "doc", "enum", "validate"}

// foreignTags returns the fields of t that have a tag of another library, but none that
// describes them to psi.
func foreignTags(t reflect.Type, path string, seen map[reflect.Type]bool) (found []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] || decodesItself(t) {
		return nil
	}
	seen[t] = true
	for f := range t.Fields() {
		if !f.IsExported() && !f.Anonymous || f.Tag.Get("json") == "-" {
			continue
		}
		name := path + f.Name
		_, ours := f.Tag.Lookup("jsonschema")
		if i := slices.IndexFunc(otherTags, func(key string) bool { _, ok := f.Tag.Lookup(key); return ok }); i >= 0 && !ours {
			found = append(found, name+" has "+otherTags[i])
		}
		found = append(found, foreignTags(f.Type, name+".", seen)...)
	}
	return found
}

// doubts implements [doubter].
func (s *fileServer) doubts() []string {
	root, _, err := s.tree.open(".")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []string{"the directory of its files does not exist"}
	case err != nil:
		return []string{"the directory of its files cannot be opened: " + err.Error()}
	}
	_ = root.Close()
	if entries, err := s.readDir("."); err == nil && len(s.served(entries)) == 0 {
		return []string{"the directory of its files has none that is served"}
	}
	return nil
}
