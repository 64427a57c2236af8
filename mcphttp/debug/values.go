// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// pretty returns JSON in lines, cut to a number of bytes.
func pretty(raw json.RawMessage, limit int) string {
	var out bytes.Buffer
	if json.Indent(&out, raw, "", "  ") != nil {
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
