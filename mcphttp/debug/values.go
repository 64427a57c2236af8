// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-psi/psi/internal/jsonscan"
)

// isPlain reports whether indenting raw does not make it much longer: lines of deeply nested
// arrays are indented by their depth.
func isPlain(raw json.RawMessage) bool {
	const maxDepth, maxSize = 32, 1 << 20
	return len(raw) <= maxSize && jsonscan.Valid(raw, maxDepth) == nil
}

// pretty returns JSON, indented if it is plain, and truncated to maxValue bytes.
func pretty(raw json.RawMessage) string {
	var out bytes.Buffer
	if !isPlain(raw) || json.Indent(&out, raw, "", "  ") != nil {
		return cut(string(raw))
	}
	return cut(out.String())
}

// cut truncates a text to maxValue bytes and adds a note if it was longer.
func cut(s string) string {
	if len(s) <= maxValue {
		return s
	}
	return strings.ToValidUTF8(s[:maxValue], "") + fmt.Sprintf("… (%d bytes of %d)", maxValue, len(s))
}
