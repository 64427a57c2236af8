// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redact

import (
	"net/url"
	"strings"
)

// URL returns the text of a URL without its password, for errors and logs. A text that is
// not a URL may contain a password, too: everything before its last @ is replaced. A text
// with nothing to hide is returned unchanged.
func URL(text string) string {
	u, err := url.Parse(text)
	switch at := strings.LastIndexByte(text, '@'); {
	case at < 0, err == nil && u.Opaque == "" && u.User == nil:
		return text
	case err == nil && u.User != nil:
		return u.Redacted()
	default:
		scheme, _, found := strings.Cut(text[:at], "://")
		if !found {
			return Redacted + text[at:]
		}
		return scheme + "://" + Redacted + text[at:]
	}
}
