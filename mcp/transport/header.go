// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package transport

import (
	"encoding/base64"
	"errors"
	"strings"
)

const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// EncodeHeaderValue encodes text as the value of an Mcp-Name or Mcp-Param header. Text that
// consists of visible ASCII characters and inner spaces is returned unchanged. Other text, and
// text that looks encoded, becomes base64 between markers (transports/streamable-http).
func EncodeHeaderValue(text string) string {
	plain := strings.TrimSpace(text) == text && (!strings.HasPrefix(text, encodedPrefix) || !strings.HasSuffix(text, encodedSuffix))
	if plain && isPlain(text) {
		return text
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(text)) + encodedSuffix
}

// isPlain reports whether text consists of visible ASCII characters and spaces.
func isPlain(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < 0x20 || r >= 0x7f }) < 0
}

// DecodeHeaderValue reverses [EncodeHeaderValue]. It returns an error if the value has
// characters that must be encoded, other than tabs, or base64 that is not valid.
func DecodeHeaderValue(value string) (string, error) {
	inner, ok := strings.CutPrefix(value, encodedPrefix)
	if ok {
		inner, ok = strings.CutSuffix(inner, encodedSuffix)
	}
	if !ok {
		if !isPlain(strings.ReplaceAll(value, "\t", "")) { // clients may send a tab as it is (RFC 9110, 5.5)
			return "", errors.New("the value has characters that must be encoded in base64")
		}
		return value, nil
	}
	text, err := base64.StdEncoding.Strict().DecodeString(inner)
	if err != nil || strings.ContainsAny(inner, "\r\n") { // the decoder ignores line breaks
		return "", errors.New("the value is not valid base64")
	}
	return string(text), nil
}
