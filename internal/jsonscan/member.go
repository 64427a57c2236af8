// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonscan

// Member returns the value of the named member of an encoded object, or nil if there is no
// such member, or object is empty or another JSON value.
func Member(object []byte, name string) []byte {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	s := Get(object, 0)
	defer s.Release()
	s.Object()
	for s.Member() {
		if string(s.Name()) == name {
			return s.Value()
		}
		s.Skip()
	}
	return nil
}
