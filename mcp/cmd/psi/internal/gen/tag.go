// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gen

import (
	"strconv"
	"strings"
)

// jsonTag returns the tag of a field as a Go literal.
func jsonTag(value string) string {
	tag := "json:" + strconv.Quote(value)
	if strconv.CanBackquote(tag) {
		return "`" + tag + "`"
	}
	return strconv.Quote(tag)
}

// hasTag reports whether a json tag can contain the name. Package json reserves some
// characters.
func hasTag(name string) bool { return name != "" && !strings.ContainsAny(name, ",\\'\"`") }

// fieldTag returns the tag of a field. The name must satisfy hasTag.
func fieldTag(name string, isRequired bool) string {
	switch {
	case !isRequired:
		return jsonTag(name + ",omitzero")
	case name == "-": // alone it means no member at all
		return jsonTag(name + ",case:strict")
	}
	return jsonTag(name)
}
