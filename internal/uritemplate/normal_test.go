// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package uritemplate_test

import (
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/uritemplate"
)

// Spellings of one URI have one normal form.
func TestFindingR23NormalForms(t *testing.T) {
	forms := map[string][]string{
		"kbinfo://Summary":               {"KBInfo://Summary", "kbinfo://Summary"},
		"https://example.com/":           {"https://example.com", "HTTPS://Example.COM", "https://EXAMPLE.com/"},
		"https://example.com:8080/?q=A":  {"https://Example.com:8080?q=A"},
		"https://example.com/#Top":       {"https://example.com#Top"},
		"https://User:Pass@example.com/": {"https://User:Pass@EXAMPLE.com"},
		"https://b%C3%BCcher.example/A":  {"https://bücher.example/A", "https://b%c3%bccher.example/A"},
		"http://[::1]/x":                 {"http://[::1]/x"},
		"notes://caf%C3%A9/menu":         {"notes://café/menu", "notes://caf%c3%a9/menu", "Notes://caf%C3%A9/menu"},
		"repo://a%20b/c":                 {"repo://a b/c", "repo://a%20b/c"},
		"x:%7B%7D%22%3C%3E%5C%5E%60%7C":  {`x:{}"<>\^` + "`|"},
		"mount:github_:kbinfo://a%20b":   {"MOUNT:github_:KBInfo://a b", "mount:github_:kbinfo://a%20b"},
		"mount:a_:mount:b_:https://h/":   {"mount:a_:Mount:b_:HTTPS://H"},
		"mount:a_:ui://Seats":            {"mount:a_:UI://Seats"},
		"ui://mount/air_/Seats":          {"UI://mount/air_/Seats"},
	}
	for want, spellings := range forms {
		for _, uri := range spellings {
			if got := uritemplate.Normal(uri); got != want {
				t.Errorf("Normal(%q) is %q, want %q", uri, got, want)
			}
		}
	}
}

// Everything that may be significant is kept, and so is what is not a URI.
func TestFindingR23SignificantSpellings(t *testing.T) {
	for _, uri := range []string{
		"", ":", "relative/Path", "1x://A", "notes://A/../b/./%2F%41//", "file:///C:/x", "custom://Host", "x:100%", "x:%4", "x:%zz%", "x:\x00\t\n\x7f",
		"https:", "https:Example", "https://", "https:///Path", "mount:a_", "mount:a_:", "urn:ISBN:1",
	} {
		if got := uritemplate.Normal(uri); got != uri {
			t.Errorf("Normal(%.40q) is %.40q", uri, got)
		}
	}
}

// The URI of a mounted server's resource is shorter inside the mount, and may match there.
func TestNormalFormOfLongURIs(t *testing.T) {
	rest := strings.Repeat("a", uritemplate.MaxURI)
	if got, want := uritemplate.Normal("MOUNT:a_:KBInfo://café?"+rest), "mount:a_:kbinfo://caf%C3%A9?"+rest; got != want {
		t.Errorf("got %.40q, want %.40q", got, want)
	}
}

// The text of a template is normalized and its expressions are not, so that the spellings of
// a URI match the spellings of a template.
func TestFindingR23NormalPatterns(t *testing.T) {
	for pattern, want := range map[string]string{
		"KBInfo://{Name}":                 "kbinfo://{Name}",
		"notes://café/{+path}":            "notes://caf%C3%A9/{+path}",
		"{+Scheme}://x":                   "{+Scheme}://x",
		"https://Example.com{?q}":         "https://example.com/{?q}",
		"https://example.com{#Part}":      "https://example.com/{#Part}",
		"https://{Host}":                  "https://{Host}/",
		"https://{host}.Example.com:{p}":  "https://{host}.example.com:{p}/",
		"https://example.com{/path*}{?q}": "https://example.com{/path*}{?q}",
		"https://{+rest}":                 "https://{+rest}",
		"https://A@{Host}/{X}":            "https://A@{Host}/{X}",
		"https://example.com":             "https://example.com/",
		"x:{broken é":                     "x:{broken é",
	} {
		if got := uritemplate.NormalPattern(pattern); got != want {
			t.Errorf("NormalPattern(%q) is %q, want %q", pattern, got, want)
		}
	}
}

func TestFindingR23TemplatesMatchSpellings(t *testing.T) {
	for _, test := range []struct{ pattern, uri, name, value string }{
		{"KBInfo://{id}", "kbinfo://5", "id", "5"},
		{"kbinfo://{id}", "KBINFO://5", "id", "5"},
		{"notes://café/items/{id}", "notes://café/items/5", "id", "5"},
		{"notes://café/items/{id}", "notes://caf%C3%A9/items/5", "id", "5"},
		{"notes://caf%c3%a9/items/{id}", "notes://café/items/5", "id", "5"},
		{"repo://{owner}/{repo}", "repo://a b/c", "owner", "a b"},
		{"x:{v:2}", "x:éß", "v", "éß"},
		{"https://example.com{?q}", "https://EXAMPLE.com?q=1", "q", "1"},
		{"https://example.com{?q}", "https://example.com/?q=1", "q", "1"},
		{"https://{host}", "https://Example.com", "host", "example.com"},
	} {
		template, err := uritemplate.Parse(uritemplate.NormalPattern(test.pattern))
		if err != nil {
			t.Fatal(err)
		}
		values, ok := template.Match(uritemplate.Normal(test.uri))
		if got := values.Get(test.name); !ok || got != test.value {
			t.Errorf("%s matches %s: %v, with %s=%q", test.pattern, test.uri, ok, test.name, got)
		}
	}
}

// A normal form is its own normal form, and is a URI if the percent signs of s are in order.
func FuzzNormal(f *testing.F) {
	for _, seed := range []string{"KBInfo://café", "https://A@B?é", "mount:a:MOUNT:b:HTTP://X", "x:%%41%é", "http://{a}{?b}", "x:\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if once := uritemplate.Normal(s); uritemplate.Normal(once) != once {
			t.Errorf("%q becomes %q and then %q", s, once, uritemplate.Normal(once))
		}
		if _, err := uritemplate.Parse(s); err == nil {
			once := uritemplate.NormalPattern(s)
			if _, err := uritemplate.Parse(once); len(once) <= uritemplate.MaxTemplate && (err != nil || uritemplate.NormalPattern(once) != once) {
				t.Errorf("the template %q becomes %q and then %q, %v", s, once, uritemplate.NormalPattern(once), err)
			}
		}
		for _, c := range []byte(uritemplate.Normal(s)) {
			if c == ' ' || c > 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
				t.Errorf("the normal form of %q contains %q", s, c)
			}
		}
	})
}

func BenchmarkNormal(b *testing.B) {
	for name, uri := range map[string]string{"plain": "notes://ada/2026/09/shopping-list", "web": "https://example.com/notes/shopping-list", "mount": "mount:notes_:notes://ada/shopping-list"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				uritemplate.Normal(uri)
			}
		})
	}
}
