// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package ascii

import "strings"

// IsName reports whether s has from 1 to most bytes, all of them letters and digits
// of ASCII or one of others.
func IsName(s string, most int, others string) bool {
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && strings.IndexByte(others, s[i]) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= most
}

func isAlphanumeric(c byte) bool {
	return c-'0' < 10 || (c|0x20)-'a' < 26
}
