// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/jsonscan"
)

// Redacted replaces a secret string.
const Redacted = "(redacted)"

// Rules are applied in addition to the names that [JSON] knows. Nil means none.
type Rules struct {
	// Name reports whether the value of the named member is a secret. Nil means no further names.
	Name func(name string) bool
	// Text returns a text without the secrets in it. It is called for every string that is
	// not in a secret value and does not contain JSON. Nil changes nothing.
	Text func(text string) string
}

// JSON returns JSON without the values of members whose names indicate secrets, including
// in strings that contain JSON. Everything in such a value is replaced: strings with
// "(redacted)", numbers with 0 and booleans with false. Names in the schemas of tools and
// questions are ignored, because they only describe secrets. Malformed JSON is replaced by
// a string that says so.
func JSON(raw json.RawMessage, rules *Rules) json.RawMessage {
	// Redacted values keep their type, and names in schemas are not secrets: otherwise
	// schemas would be invalid, results would not match them, and a replay would fail.
	if len(raw) == 0 {
		return raw
	}
	if rules == nil {
		rules = &Rules{}
	}
	out, err := rules.appendJSON(make([]byte, 0, len(raw)), raw)
	if err != nil {
		return json.RawMessage(`"(malformed)"`)
	}
	return out
}

func (r *Rules) appendJSON(dst []byte, raw []byte) ([]byte, error) {
	s := jsonscan.Get(raw, 0)
	defer s.Release()
	w := writer{r, s, dst}
	w.value(nothingKnown)
	return w.dst, s.End()
}

// A place is what is known about a value from the names around it.
type place int

const (
	nothingKnown place = iota
	inSecret           // all strings and numbers in it are secrets
	inSchema           // its names do not belong to values
)

// schemas are the names of members whose values are JSON Schemas.
var schemas = []string{"inputSchema", "outputSchema", "requestedSchema"}

// A writer copies JSON from a scanner.
type writer struct {
	rules *Rules
	from  *jsonscan.Scanner
	dst   []byte
}

func (w *writer) value(p place) {
	switch kind := w.from.Kind(); {
	case kind == '{':
		w.object(p)
	case kind == '[':
		w.array(p)
	case kind == 0 || kind == 'n' || p != inSecret && kind != '"':
		w.dst = append(w.dst, w.from.Value()...)
	case kind == '"' && p != inSecret:
		w.text(w.from.Value())
	case kind == '"':
		w.replace(`"` + Redacted + `"`)
	case kind == '0':
		w.replace("0")
	default:
		w.replace("false")
	}
}

// replace appends a value in the place of the next one.
func (w *writer) replace(value string) {
	w.from.Skip()
	w.dst = append(w.dst, value...)
}

func (w *writer) object(p place) {
	w.dst = append(w.dst, '{')
	w.from.Object()
	for first := true; w.from.Member(); first = false {
		if !first {
			w.dst = append(w.dst, ',')
		}
		name := string(w.from.Name())
		w.dst = append(jsonscan.AppendString(w.dst, name), ':')
		w.value(w.within(p, name))
	}
	w.dst = append(w.dst, '}')
}

// within returns the place of the next member.
func (w *writer) within(p place, name string) place {
	switch {
	case p != nothingKnown:
		return p
	case slices.Contains(schemas, name) && w.from.Kind() == '{':
		return inSchema
	case isSecret(name, w.from.Kind()) || w.rules.Name != nil && w.rules.Name(name):
		return inSecret
	}
	return nothingKnown
}

func (w *writer) array(p place) {
	w.dst = append(w.dst, '[')
	w.from.Array()
	for first := true; w.from.Element(); first = false {
		if !first {
			w.dst = append(w.dst, ',')
		}
		w.value(p)
	}
	w.dst = append(w.dst, ']')
}

// text appends a string. If it contains a JSON object or array, secrets in that are
// redacted. The recursion is not deep, because escaping doubles the length with each level.
func (w *writer) text(value json.RawMessage) {
	if len(value) < len(`""`) || isBinary(value) {
		w.dst = append(w.dst, value...)
		return
	}
	unquoted := jsonscan.Unquote(value)
	if text := bytes.TrimSpace(unquoted); len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		if inner, err := w.rules.appendJSON(make([]byte, 0, len(text)), text); err == nil {
			w.dst = jsonscan.AppendString(w.dst, inner)
			return
		}
	}
	if w.rules.Text == nil {
		w.dst = append(w.dst, value...)
		return
	}
	w.dst = jsonscan.AppendString(w.dst, w.rules.Text(string(unquoted)))
}

// isBinary reports whether a string looks like base64 data, such as an image. Searching it
// for secrets is slow and finds none.
func isBinary(value []byte) bool {
	const least = 1 << 10
	if len(value) < least {
		return false
	}
	for _, c := range value[1 : len(value)-1] {
		isLetter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !isLetter && c != '+' && c != '/' && c != '=' && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// secretNames are names of secrets, and secretEnds are suffixes of such names, in lower
// case, without separators and in the singular.
var (
	secretNames = []string{"requeststate", "authorization", "cookie", "clientassertion", "codeverifier", "bearer", "jwt", "pwd", "pin", "otp"}
	secretEnds  = []string{"password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "privatekey", "secretkey", "credential", "cookie", "authorization"}
)

// IsSecret reports whether a name is that of a secret, such as "apiKey", "--token" or
// "SERVICE_PASSWORD".
func IsSecret(name string) bool { return isSecret(name, '"') }

// isSecret reports whether to redact a member. kind is the first byte of its value.
func isSecret(name string, kind byte) bool {
	plain := plainName(name)
	switch isText := kind == '"' || kind == '[' || kind == '{'; {
	case plain == "progresstoken": // defined by MCP, not a secret
		return false
	case !isText && strings.HasSuffix(plain, "tokens"): // a number, such as maxTokens
		return false
	}
	plain = strings.TrimSuffix(plain, "s")
	return slices.Contains(secretNames, plain) ||
		slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(plain, end) })
}

// plainName returns a name in lower case, without separators.
func plainName(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			return c
		case 'A' <= c && c <= 'Z':
			return c - 'A' + 'a'
		}
		return -1
	}, name)
}
