// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcphttp/oauth"
)

func TestParseChallenges(t *testing.T) {
	type params = map[string]string
	for text, want := range map[string][]oauth.Challenge{
		``:                                       nil,
		`Bearer`:                                 {{"bearer", params{}}},
		`Bearer realm="x"`:                       {{"bearer", params{"realm": "x"}}},
		`Bearer scope="a b",error=invalid_token`: {{"bearer", params{"scope": "a b", "error": "invalid_token"}}},
		`Bearer scope = "a" ,, , error = "b"`:    {{"bearer", params{"scope": "a", "error": "b"}}},
		`BEARER Scope="a, b=\"c\" \\"`:           {{"bearer", params{"scope": `a, b="c" \`}}},
		`Basic realm="x", Bearer scope=a, DPoP algs="ES256 ES384"`: {{"basic", params{"realm": "x"}}, {"bearer", params{"scope": "a"}}, {"dpop", params{"algs": "ES256 ES384"}}},
		`Negotiate YWJjZA==, Bearer scope=a`:                       {{"negotiate", params{}}, {"bearer", params{"scope": "a"}}},
		`Negotiate, Bearer`:                                        {{"negotiate", params{}}, {"bearer", params{}}},
		`Basic realm="Bearer scope=evil", DPoP`:                    {{"basic", params{"realm": "Bearer scope=evil"}}, {"dpop", params{}}},
		`Basic realm="a\", b", DPoP`:                               {{"basic", params{"realm": `a", b`}}, {"dpop", params{}}},
		`Bearer scope="a", scope="b"`:                              {{"bearer", params{"scope": "a"}}},
		`Bearer scope="never ends, error=x`:                        {{"bearer", params{}}},
		`scope="a", Bearer`:                                        {{"bearer", params{}}},
		`Bearer resource_metadata=https://mcp.example/x?y=z&a=b`:   {{"bearer", params{"resource_metadata": "https://mcp.example/x?y=z&a=b"}}},
		`"Bearer", (, Bearer`:                                      {{"bearer", params{}}},
		`Bearer a="` + strings.Repeat("x", 20<<10) + `"`:           nil,
	} {
		got := oauth.ParseChallenges(http.Header{"Www-Authenticate": {text}})
		if !slices.EqualFunc(got, want, func(a, b oauth.Challenge) bool { return a.Scheme == b.Scheme && maps.Equal(a.Params, b.Params) }) {
			t.Errorf("%.100q:\n%v, want\n%v", text, got, want)
		}
	}
	several := http.Header{"Www-Authenticate": {`Basic realm="x"`, `Bearer scope="a"`}}
	if got := oauth.ParseChallenges(several); len(got) != 2 || got[1].Params["scope"] != "a" {
		t.Errorf("two lines: %v", got)
	}
}

func FuzzParseChallenges(f *testing.F) {
	for _, s := range []string{`Bearer scope="a", DPoP algs="b"`, `Basic YQ==, Bearer x = y`, `"`, `\`, `Bearer a="\`, `,,=`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all := oauth.ParseChallenges(http.Header{"Www-Authenticate": {text}})
		if len(all) > 16 {
			t.Errorf("%d challenges", len(all))
		}
		for _, c := range all {
			if c.Scheme == "" || c.Scheme != strings.ToLower(c.Scheme) || len(c.Params) > 64 {
				t.Errorf("%v", c)
			}
		}
		// Parsing challenges that have been formatted again gives the same result.
		var b strings.Builder
		for i, c := range all {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(c.Scheme)
			sep := " "
			for _, name := range slices.Sorted(maps.Keys(c.Params)) {
				b.WriteString(sep + name + `="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(c.Params[name]) + `"`)
				sep = ", "
			}
		}
		if b.Len() > 16<<10 {
			return
		}
		again := oauth.ParseChallenges(http.Header{"Www-Authenticate": {b.String()}})
		if !slices.EqualFunc(all, again, func(a, b oauth.Challenge) bool { return a.Scheme == b.Scheme && maps.Equal(a.Params, b.Params) }) {
			t.Errorf("%q:\n%v, then as %q\n%v", text, all, b.String(), again)
		}
	})
}
