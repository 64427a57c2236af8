// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package transport

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/strictjson"
)

// An ID is a JSON-RPC id or a progress token: a string or an integer. It preserves the bytes
// written by the sender, so 1, 1.0 and "1" are different under == and integers do not lose
// digits. A peer may write the same ID differently; compare the results of [ID.Canonical] to
// match a response with its request. The zero ID means no ID.
type ID struct{ token string }

// StringID returns an ID with the value s.
func StringID(s string) ID { return ID{string(jsonscan.AppendString(nil, s))} }

// IntID returns an ID with the value n.
func IntID(n int64) ID { return ID{strconv.FormatInt(n, 10)} }

// IsZero reports whether id is the zero ID.
func (id ID) IsZero() bool { return id.token == "" }

// String returns the id as JSON, or "" for the zero ID.
func (id ID) String() string { return id.token }

// MarshalJSON implements [json.Marshaler]. The zero ID is encoded as null.
func (id ID) MarshalJSON() ([]byte, error) {
	if id.IsZero() {
		return []byte("null"), nil
	}
	return []byte(id.token), nil
}

// UnmarshalJSON implements [json.Unmarshaler]. Null becomes the zero ID; anything else
// that is neither a string nor an integer is an error.
func (id *ID) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*id = ID{}
		return nil
	}
	parsed, ok := ParseID(data)
	if !ok {
		return fmt.Errorf("mcp: %.40s is neither a string nor an integer", data)
	}
	*id = parsed
	return nil
}

// Canonical returns the canonical form of id, which is the same for all IDs with the same
// value: 1 for 1.0, "a" for "\u0061".
func (id ID) Canonical() ID {
	switch {
	case id.token == "":
		return id
	case id.token[0] == '"':
		if !strings.Contains(id.token, `\`) {
			return id
		}
		return StringID(jsonscan.Text([]byte(id.token)))
	case id.token != "-0" && !strings.ContainsAny(id.token, ".eE"):
		return id
	}
	n, _ := strictjson.ParseDecimal(id.token)
	return ID{n.String()}
}

// ParseID parses an ID from raw, a valid JSON value. It reports false if raw is neither a
// string nor an integer.
func ParseID(raw []byte) (ID, bool) {
	if len(raw) == 0 {
		return ID{}, false
	}
	if raw[0] == '"' || isInteger(raw) {
		return ID{string(raw)}, true
	}
	return ID{}, false
}

func isInteger(raw []byte) bool {
	digits := raw
	if digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || digits[0] < '0' || digits[0] > '9' {
		return false
	}
	if !bytes.ContainsAny(raw, ".eE") {
		return true
	}
	number := string(raw)
	if len(number) > 40 {
		return false
	}
	n, ok := strictjson.ParseDecimal(number)
	return ok && n.IsInteger()
}
