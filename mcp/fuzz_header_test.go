// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp/transport"
)

// Every text fits into a header and comes out as it was; what is no encoding is
// taken as it is, or refused.
func FuzzHeaderValue(f *testing.F) {
	for _, text := range []string{
		"", "get_weather", "us-west 1", " padded ", "日本語", "file:///a b/ü", "line\r\nX-Injected: 1", "tab\there", "\x7f", "\xff",
		"=?base64?SGVsbG8=?=", "=?base64?", "?=", "=?base64??=", "=?base64?SGVsbG8?=", "=?base64?SGVsbG9=?=", "=?base64?SGVs bG8=?=", "=?BASE64?SGVsbG8=?=", "=?base64?SGVs\nbG8=?=",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value := transport.EncodeHeaderValue(text)
		if strings.Trim(value, " \t") != value {
			t.Errorf("%q becomes %q, which loses its spaces on the way", text, value)
		}
		for _, c := range []byte(value) {
			if c < 0x20 || c > 0x7e {
				t.Errorf("%q becomes %q, which is no header value", text, value)
			}
		}
		if back, err := transport.DecodeHeaderValue(value); err != nil || back != text {
			t.Errorf("%q becomes %q, and then %q, %v", text, value, back, err)
		}
		decoded, err := transport.DecodeHeaderValue(text)
		inner, isEncoded := strings.CutPrefix(text, "=?base64?")
		inner, ended := strings.CutSuffix(inner, "?=")
		switch {
		case !isEncoded || !ended:
			if err != nil || decoded != text {
				t.Errorf("%q, which is not encoded, is decoded as %q, %v", text, decoded, err)
			}
		case err == nil && base64.StdEncoding.EncodeToString([]byte(decoded)) != inner:
			t.Errorf("%q is decoded as %q, whose encoding it is not", text, decoded)
		}
	})
}
