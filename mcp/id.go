// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-psi/psi/internal/decimal"
	"github.com/go-psi/psi/internal/jsonscan"
)

// An ID is a JSON-RPC id or a progress token: a string or an integer, kept
// byte for byte as its sender wrote it, so that 1, 1.0 and "1" stay different
// and no integer loses a digit. What refers to an ID may write it in another way: the
// ID of a response is the same as that of its request if they have the same value.
// IDs are comparable. The zero ID means that there is none: a Request with a zero ID
// is a notification.
type ID struct{ token string }

// StringID is the id "s".
func StringID(s string) ID { return ID{string(jsonscan.AppendString(nil, s))} }

// IntID is the id n.
func IntID(n int64) ID { return ID{strconv.FormatInt(n, 10)} }

// IsZero reports whether there is no id.
func (id ID) IsZero() bool { return id.token == "" }

// String is the id as JSON, or "" if there is none.
func (id ID) String() string { return id.token }

// MarshalJSON implements json.Marshaler. The zero ID is null.
func (id ID) MarshalJSON() ([]byte, error) { return []byte(id.orNull()), nil }

// UnmarshalJSON implements json.Unmarshaler. It refuses what the specification
// does not allow as an id, except null, which makes the zero ID.
func (id *ID) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*id = ID{}
		return nil
	}
	parsed, ok := parseID(data)
	if !ok {
		return fmt.Errorf("mcp: %.40s is neither a string nor an integer", data)
	}
	*id = parsed
	return nil
}

func (id ID) orNull() string {
	if id.token == "" {
		return "null"
	}
	return id.token
}

// byValue is the plain way to write an id, which is the same for all ids of one value.
func (id ID) byValue() ID {
	switch {
	case id.token == "":
		return id
	case id.token[0] == '"':
		if !strings.Contains(id.token, `\`) {
			return id
		}
		return StringID(string(jsonscan.Unquote([]byte(id.token))))
	case id.token != "-0" && !strings.ContainsAny(id.token, ".eE"):
		return id
	}
	n, _ := decimal.Parse(id.token)
	return ID{n.String()}
}

// parseID takes a valid JSON value.
func parseID(raw []byte) (ID, bool) {
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
	n, ok := decimal.Parse(number)
	return ok && n.IsInteger()
}
