// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-psi/psi/jsonschema"
)

func TestTextFormats(t *testing.T) {
	tests := map[string]struct{ valid, invalid []string }{
		"date": {
			[]string{"2026-01-31", "2024-02-29", "0000-01-01"},
			[]string{"", "2026-02-29", "2026-13-01", "2026-00-01", "2026-01-00", "26-01-31", "2026/01/31", "2026-01-31T", "２026-1-1"},
		},
		"date-time": {
			[]string{"2026-01-31T13:00:00Z", "2026-01-31t13:00:00.123456789z", "2026-01-31T13:00:00-03:30", "2016-12-31T23:59:60Z", "2016-12-31T20:29:60-03:30"},
			[]string{"2026-01-31", "2026-01-31 13:00:00Z", "2026-01-31T13:00:00", "2026-01-31T24:00:00Z", "2026-01-31T13:60:00Z", "2026-01-31T13:00:60Z",
				"2026-01-31T13:00:00.Z", "2026-01-31T13:00:00+0100", "2026-01-31T13:00:00+24:00", "2026-01-31T13:00:61Z", "2026-02-30T13:00:00Z"},
		},
		"email": {
			[]string{"a@b", "first.last+tag@example.com", `"a b..c"@example.com`, "!#$%@xn--a.example", "a@[127.0.0.1]", "a@[IPv6:::1]"},
			[]string{"", "a", "@b", "a@", "a..b@c", ".a@b", "a.@b", "a b@c", "a@b_c", "a@-b", "a@b-", "a@b..c", "a@b.", `"a"b"@c`, `"a\"@c`, `"a@c`, "é@c", "a@é",
				"a@[::1]", "a@[IPv6:127.0.0.1]", "a@[127.0.0.1", "a@[]", strings.Repeat("a", 65) + "@b", "a@" + strings.Repeat("b", 64), "a@" + strings.Repeat("b.", 130) + "c"},
		},
		"uri": {
			[]string{"https://example.com/a?b#c", "urn:isbn:1", "mailto:a@b", "http://[::1]:80/"},
			[]string{"", "/a", "example.com", "//example.com/a", "http://a b/", "http://[::1", ":a", "%zz"},
		},
	}
	for format, tt := range tests {
		s := compile(t, `{"format":"`+format+`"}`, &jsonschema.Options{AssertFormats: true})
		check := func(text string, valid bool) {
			data, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(t.Context(), data); (err == nil) != valid {
				t.Errorf("%s %s: %v", format, data, err)
			}
		}
		for _, text := range tt.valid {
			check(text, true)
		}
		for _, text := range tt.invalid {
			check(text, false)
		}
	}
}
