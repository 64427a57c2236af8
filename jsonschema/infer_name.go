// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"reflect"
	"strings"
)

// defName returns a short name for t that is safe in a JSON pointer and in
// every client: letters, digits and underscores. A generic type's arguments
// follow its name, without their packages: Page[example.com/shop.Item] is
// Page_Item.
func defName(t reflect.Type) string {
	var b strings.Builder
	word := 0 // where the current word begins in b
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
