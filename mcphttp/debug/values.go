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

// isPlain reports whether JSON in lines is not much longer than the JSON: each line of a deeply
// nested array begins with as many spaces as it is deep.
func isPlain(raw json.RawMessage) bool {
	const maxDepth, maxSize = 32, 1 << 20
	return len(raw) <= maxSize && jsonscan.Valid(raw, maxDepth) == nil
}

// pretty returns JSON in lines if it is plain, cut to a number of bytes.
func pretty(raw json.RawMessage, limit int) string {
	var out bytes.Buffer
	if !isPlain(raw) || json.Indent(&out, raw, "", "  ") != nil {
		return cut(string(raw), limit)
	}
	return cut(out.String(), limit)
}

// cut returns the beginning of a text, and says so.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + fmt.Sprintf("… (%d bytes of %d; see Options.MaxValue)", limit, len(s))
}
