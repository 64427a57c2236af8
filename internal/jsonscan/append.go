// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonscan

import (
	"bytes"
	"slices"
)

// AppendKey begins a member of the object that dst ends in. The key must not need escaping.
func AppendKey(dst []byte, key string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, key...)
	return append(dst, `":`...)
}

// AppendMembers appends the members of the encoded object body, except the named ones, to
// the object that dst ends in, and closes that object.
func AppendMembers(dst, body []byte, except ...string) []byte {
	s := Get(body, 0)
	defer s.Release()
	s.Object()
	for s.Member() {
		if slices.Contains(except, string(s.Name())) {
			s.Skip()
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, s.Name())
		dst = append(dst, ':')
		dst = append(dst, s.Value()...)
	}
	return append(dst, '}')
}

// IsObject reports whether valid JSON is an object.
func IsObject(raw []byte) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}
