// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package lint

import (
	"fmt"
	"unicode"
)

// hidden reports characters that a model reads but a user does not see: control characters,
// bidirectional controls and tag characters. Malicious servers use them to hide
// instructions in descriptions.
func (it item) hidden(pointer, text string) {
	for _, r := range text {
		if isHidden(r) {
			it.report(Error, pointer, "hidden-text", fmt.Sprintf("the text has the invisible character %U, which models read and users do not see", r),
				"remove it; do not connect a model to a server that hides text from you")
			return
		}
	}
}

func isHidden(r rune) bool {
	switch r {
	case '\n', '\r', '\t',
		'\u00ad', '\u200b', '\u200c', '\u200d', '\ufeff': // where a line may break, and joiners, which emoji and scripts need
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf)
}
