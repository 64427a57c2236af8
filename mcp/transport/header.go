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
	for i := 0; plain && i < len(text); i++ {
		plain = text[i] >= 0x20 && text[i] < 0x7f
	}
	if plain {
		return text
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(text)) + encodedSuffix
}

// DecodeHeaderValue reverses [EncodeHeaderValue].
func DecodeHeaderValue(value string) (string, error) {
	inner, ok := strings.CutPrefix(value, encodedPrefix)
	if ok {
		inner, ok = strings.CutSuffix(inner, encodedSuffix)
	}
	if !ok {
		return value, nil
	}
	text, err := base64.StdEncoding.Strict().DecodeString(inner)
	if err != nil || strings.ContainsAny(inner, "\r\n") { // the decoder ignores line breaks
		return "", errors.New("the value is not valid base64")
	}
	return string(text), nil
}
