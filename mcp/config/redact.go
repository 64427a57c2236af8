// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import (
	"bytes"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/internal/redact"
)

// Redact returns the contents of a file for people to read, without secrets: the values of
// environments, headers and logins, those of members and arguments whose names are those of
// secrets, and what looks like one. The lines are those of data. Redact returns nil if data
// is not a JSON object in UTF-8, or empty but for white space.
func Redact(data []byte) []byte {
	if len(bytes.TrimSpace(data)) == 0 {
		return bytes.Clone(data)
	}
	start := len(data) - len(bytes.TrimPrefix(data, []byte("\ufeff")))
	if _, err := parseFile(data[start:]); err != nil {
		return nil
	}
	r := redactor{d: jsontext.NewDecoder(bytes.NewReader(withoutComments(data)[start:]), lenient)}
	out, last := []byte(nil), 0
	for r.d.PeekKind() != 0 {
		secret, raw, err := r.next()
		if err != nil {
			return nil
		}
		if end := start + int(r.d.InputOffset()); secret {
			out = append(append(out, data[last:end-len(raw)]...), `"`+redact.Redacted+`"`...)
			last = end
		}
	}
	lines := strings.SplitAfter(string(append(out, data[last:]...)), "\n")
	for i, line := range lines {
		lines[i] = redact.Text(line)
	}
	return []byte(strings.Join(lines, ""))
}

// A redactor reads a file token by token.
type redactor struct {
	d     *jsontext.Decoder
	stack []bool // whether the objects and arrays around the next token are secret
	name  string // of the member, or the element before, that the next value belongs to
}

// next reads a token. It reports whether it is a value to be replaced.
func (r *redactor) next() (secret bool, raw jsontext.Value, err error) {
	switch kind := r.d.PeekKind(); kind {
	case '{', '[':
		r.stack = append(r.stack, r.inSecret() || hasSecrets(r.name))
		r.name = ""
	case '}', ']':
		r.stack = r.stack[:len(r.stack)-1]
		r.name = ""
	case '"', '0':
		return r.scalar(kind)
	default:
		r.name = ""
	}
	_, err = r.d.ReadToken()
	return false, nil, err
}

// scalar reads a string or a number, which may be the name of a member.
func (r *redactor) scalar(kind jsontext.Kind) (secret bool, raw jsontext.Value, err error) {
	container, length := r.d.StackIndex(r.d.StackDepth())
	if raw, err = r.d.ReadValue(); err != nil {
		return false, nil, err
	}
	text := ""
	if kind == '"' {
		_ = jsonv2.Unmarshal(raw, &text, lenient) // the decoder has checked it
	}
	if isName := container == '{' && length%2 == 0; isName {
		r.name = text
		return false, raw, nil
	}
	secret = r.inSecret() || hasSecrets(r.name)
	if r.name = ""; container == '[' && strings.HasPrefix(text, "-") && !strings.Contains(text, "=") {
		r.name = text // an option, whose value may be the next argument
	}
	return secret && len(raw) > 2, raw, nil
}

func (r *redactor) inSecret() bool { return len(r.stack) > 0 && r.stack[len(r.stack)-1] }

// hasSecrets reports whether a member or an option contains secrets.
func hasSecrets(name string) bool {
	return slices.Contains([]string{"env", "environment", "headers", "oauth"}, name) || redact.IsSecret(name)
}
