// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// decodeText returns the text of a file as UTF-8, without a byte order mark. Redirected output
// of PowerShell is UTF-16, usually with a mark. Without one, UTF-16 is recognized by the zero
// byte in its first character, which is ASCII in every file that this package reads.
func decodeText(data []byte) []byte {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		return fromUTF16(data[2:], binary.LittleEndian)
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		return fromUTF16(data[2:], binary.BigEndian)
	case len(data) >= 2 && data[0] != 0 && data[1] == 0:
		return fromUTF16(data, binary.LittleEndian)
	case len(data) >= 2 && data[0] == 0 && data[1] != 0:
		return fromUTF16(data, binary.BigEndian)
	}
	return bytes.TrimPrefix(data, []byte("\ufeff"))
}

// fromUTF16 converts text to UTF-8. An unpaired surrogate or byte becomes a byte that is
// invalid in UTF-8, so that the text is as invalid as it was.
func fromUTF16(data []byte, order binary.ByteOrder) []byte {
	const invalid = 0xff
	out := make([]byte, 0, len(data)/2+len(data)/8)
	for ; len(data) >= 2; data = data[2:] {
		r := rune(order.Uint16(data))
		if utf16.IsSurrogate(r) {
			low := rune(0)
			if len(data) >= 4 {
				low = rune(order.Uint16(data[2:]))
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				out = append(out, invalid)
				continue
			}
			data = data[2:]
		}
		out = utf8.AppendRune(out, r)
	}
	if len(data) > 0 {
		out = append(out, invalid)
	}
	return out
}
