// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package uritemplate_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-psi/psi/internal/uritemplate"
)

func parse(t testing.TB, s string) *uritemplate.Template {
	t.Helper()
	tmpl, err := uritemplate.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// rfcValues are the variables used in the examples of RFC 6570; "undef" is undefined there
// and here.
var rfcValues = map[string]string{
	"var": "value", "hello": "Hello World!", "path": "/foo/bar", "empty": "",
	"x": "1024", "y": "768", "half": "50%", "base": "http://example.com/home/",
	"dub": "me/too", "who": "fred", "v": "6", "dom": "example",
}

func TestExpandRFC(t *testing.T) {
	for _, test := range []struct{ template, want string }{
		{"{var}", "value"},
		{"{hello}", "Hello%20World%21"},
		{"{half}", "50%25"},
		{"O{empty}X", "OX"},
		{"O{undef}X", "OX"},
		{"{x,y}", "1024,768"},
		{"{x,hello,y}", "1024,Hello%20World%21,768"},
		{"?{x,empty}", "?1024,"},
		{"?{x,undef}", "?1024"},
		{"?{undef,y}", "?768"},
		{"{var:3}", "val"},
		{"{var:30}", "value"},
		{"{+var}", "value"},
		{"{+hello}", "Hello%20World!"},
		{"{+half}", "50%25"},
		{"{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"},
		{"{+base}index", "http://example.com/home/index"},
		{"up{+path}{var}/here", "up/foo/barvalue/here"},
		{"{+x,hello,y}", "1024,Hello%20World!,768"},
		{"{+path,x}/here", "/foo/bar,1024/here"},
		{"{+path:6}/here", "/foo/b/here"},
		{"{#var}", "#value"},
		{"{#hello}", "#Hello%20World!"},
		{"{#half}", "#50%25"},
		{"foo{#empty}", "foo#"},
		{"foo{#undef}", "foo"},
		{"{#path,x}/here", "#/foo/bar,1024/here"},
		{"{#path:6}here", "#/foo/bhere"},
		{"{.who}", ".fred"},
		{"{.who,who}", ".fred.fred"},
		{"X{.var,undef}", "X.value"},
		{"X{.empty}", "X."},
		{"X{.var:3}", "X.val"},
		{"www{.dom}", "www.example"},
		{"{/who,dub}", "/fred/me%2Ftoo"},
		{"{/var,x}/here", "/value/1024/here"},
		{"{/var,empty}", "/value/"},
		{"{/var,undef}", "/value"},
		{"{/var:1,var}", "/v/value"},
		{"{;half}", ";half=50%25"},
		{"{;v,empty,who}", ";v=6;empty;who=fred"},
		{"{;v,undef,who}", ";v=6;who=fred"},
		{"{;hello:5}", ";hello=Hello"},
		{"{?x,y}", "?x=1024&y=768"},
		{"{?x,y,empty}", "?x=1024&y=768&empty="},
		{"{?x,y,undef}", "?x=1024&y=768"},
		{"{?var:3}", "?var=val"},
		{"?fixed=yes{&x}", "?fixed=yes&x=1024"},
		{"{&x,y,empty}", "&x=1024&y=768&empty="},
		{"{&var:3}", "&var=val"},
		{"caf\u00e9/%7e/{var*}", "caf%C3%A9/%7e/value"},
	} {
		tmpl := parse(t, test.template)
		got, err := tmpl.Expand(rfcValues)
		if err != nil || got != test.want {
			t.Errorf("Expand(%s) = %q, %v, want %q", test.template, got, err, test.want)
		}
		required := []string{"O{empty}X", "O{undef}X", "?{x,empty}", "?{x,undef}", "?{undef,y}"} // {x} needs text
		if values, ok := tmpl.Match(got); ok == slices.Contains(required, test.template) {
			t.Errorf("%s matches its expansion %q: %t", test.template, got, ok)
		} else if strings.Count(test.template, "{") == 1 && ok {
			checkRFCValues(t, test.template, values)
		}
	}
}

// checkRFCValues checks that the matched values equal the expanded ones.
func checkRFCValues(t *testing.T, template string, values uritemplate.Values) {
	t.Helper()
	for _, name := range parse(t, template).Names() {
		want := rfcValues[name]
		if strings.Contains(template, "undef") {
			continue // it is unknown which variable is missing
		}
		if strings.Contains(template, ":") && strings.HasPrefix(want, values.Get(name)) {
			continue
		}
		if got := values.Get(name); got != want {
			t.Errorf("%s: %s = %q, want %q", template, name, got, want)
		}
	}
}

func TestMatch(t *testing.T) {
	const none = "no match"
	for _, test := range []struct{ template, uri, want string }{
		{"users://{id}", "users://42", "id=42"},
		{"users://{id}", "users://", none},
		{"users://{id}", "users://a/b", none},
		{"users://{id}", "users://a%2Fb", "id=a/b"},
		{"users://{id}", "users://Zo%C3%AB", "id=Zo\u00eb"},
		{"users://{id}", "users://Zo\u00eb", "id=Zo\u00eb"},
		{"users://{id}", "users://%", none},
		{"users://{id}", "users://%4", none},
		{"users://{id}", "users://%zz", none},
		{"users://{id}", "users://%C3", none},
		{"users://{id}", "users://%C3%28", none},
		{"users://{id}", "users://\xff", none},
		{"users://{id}", "users://a b", none},
		{"users://{id}", "users://{id}", none},
		{"users://{id}", "USERS://42", none},
		{"test://template/{id}/data", "test://template/123/data", "id=123"},
		{"a/{x}-{y}", "a/1-2-3", "x=1 y=2-3"},
		{"{x}{.format}", "report.json", "x=report format=json"},
		{"{x}{.format}", "report", "x=report"},
		{"file:///{+path}", "file:///", "path="},
		{"file:///{+path}", "file:///a/b?c#d", "path=a/b?c#d"},
		{"file:///{+path}/meta", "file:///a/meta/b/meta", "path=a/meta/b"},
		{"file:///{+dir}/{name}", "file:///a/b/c", "dir=a/b name=c"},
		{"doc{#part}", "doc", ""},
		{"doc{#part}", "doc#a/b", "part=a/b"},
		{"root{/a,b}", "root", ""},
		{"root{/a,b}", "root/1", "a=1"},
		{"root{/a,b}", "root/1/2", "a=1 b=2"},
		{"root{/a,b}", "root/1/2/3", none},
		{"root{/p*}", "root/1/2/3", "p=1/2/3"},
		{"m{;a,b}", "m;b=2;a", "a= b=2"},
		{"m{;a,b}", "m;c", none},
		{"q{?a,b}", "q", ""},
		{"q{?a,b}", "q?a=1", "a=1"},
		{"q{?a,b}", "q?b=2&a=1", "a=1 b=2"},
		{"q{?a,b}", "q?b&a=", "a= b="},
		{"q{?a,b}", "q?", none},
		{"q{?a,b}", "q?a=1&", none},
		{"q{?a,b}", "q?a=1&c=3", none},
		{"q{?a,b}", "q?a=1&a=2", none},
		{"q{?a,b}", "q?ab=1", none},
		{"q{?a,ab}", "q?ab=1", "ab=1"},
		{"q{?a}", "q?a=%zz", none},
		{"q{?url}", "q?url=http://x/y?z=1+2", "url=http://x/y?z=1+2"},
		{"q{?a*}", "q?a=1&a=2", "a=1,2"},
		{"q{?a*}", "q?a=1&a", "a=1,"},
		{"q?v=1{&a}", "q?v=1&a=2", "a=2"},
		{"q{?a}&v=1", "q?a=2&v=1", "a=2"},
		{"{+p}{?a}{#f}", "x/y?a=1#z", "p=x/y a=1 f=z"},
		{"{l*}", "a,b%2Cc", "l=a,b,c"},
		{"{l}", "a,b", none},
		{"{x:2}", "ab", "x=ab"},
		{"{x:2}", "abc", none},
		{"{x:2}", "%C3%AB\u00eb", "x=\u00eb\u00eb"},
		{"{x:1}/{x}", "a/abc", "x=abc"},
		{"{x:1}/{x}", "b/abc", none},
		{"{x}/{x}", "a/a", "x=a"},
		{"{x}/{x}", "a/b", none},
		{"{b}{&x}{x}", "0ab", none}, // {&x} implies that x is absent
		{"{b}{&x}{/x}", "0&x=a/a", "b=0 x=a"},
		{"{b}{&x}{/x}", "0", "b=0"},
		{"plain://uri", "plain://uri", ""},
		{"plain://uri", "plain://uri2", none},
		{"", "", ""},
	} {
		tmpl := parse(t, test.template)
		got := none
		if values, ok := tmpl.Match(test.uri); ok {
			got = describe(tmpl, values)
		}
		if got != test.want {
			t.Errorf("%s on %q: %s, want %s", test.template, test.uri, got, test.want)
		}
	}
}

func describe(tmpl *uritemplate.Template, values uritemplate.Values) string {
	var bound []string
	for _, name := range tmpl.Names() {
		if value, ok := values.Lookup(name); ok {
			bound = append(bound, name+"="+value)
		}
	}
	return strings.Join(bound, " ")
}

func TestValuesList(t *testing.T) {
	for _, test := range []struct {
		template, uri string
		want          []string
	}{
		{"root{/x*}", "root/a/b%2Fc", []string{"a", "b/c"}},
		{"root{/x*}", "root", nil},
		{"q{?x*}", "q?x=1&x=2", []string{"1", "2"}},
		{"{x}", "1", []string{"1"}},
	} {
		values, ok := parse(t, test.template).Match(test.uri)
		if got := values.List("x"); !ok || !slices.Equal(got, test.want) {
			t.Errorf("%s on %q: %q, %t, want %q", test.template, test.uri, got, ok, test.want)
		}
	}
	var zero uritemplate.Values
	if zero.Get("x") != "" || zero.List("x") != nil {
		t.Error("the zero Values are not empty")
	}
}

func TestParseErrors(t *testing.T) {
	for _, test := range []struct {
		template string
		offset   int
	}{
		{"a{x", 1}, {"a{x{y}}", 1}, {"a}", 1}, {"{}", 1}, {"{+}", 2}, {"{x,}", 3}, {"{,x}", 1},
		{"{=x}", 1}, {"{!x}", 1}, {"{|x}", 1}, {"{x-y}", 2}, {"{x y}", 2}, {"{x..y}", 3}, {"{.x.}", 3},
		{"{x:}", 3}, {"{x:0}", 3}, {"{x:10000}", 3}, {"{x:a}", 3}, {"{x:1*}", 4}, {"{x*:1}", 3}, {"{x%4}", 2},
		{"a b", 1}, {"a%zz", 1}, {"a\xff", 1}, {"a\x00", 1}, {`a\b`, 1},
		{"{" + strings.Repeat("a,", uritemplate.MaxVariables) + "b}", 1 + 2*uritemplate.MaxVariables},
		{strings.Repeat("a", uritemplate.MaxTemplate+1), uritemplate.MaxTemplate},
	} {
		_, err := uritemplate.Parse(test.template)
		var wrong *uritemplate.ParseError
		if !errors.As(err, &wrong) || wrong.Offset != test.offset {
			t.Errorf("Parse(%.40q): %v, want an error at offset %d", test.template, err, test.offset)
		}
	}
}

func TestIsTemplate(t *testing.T) {
	for s, want := range map[string]bool{"a://b": false, "a://{b}": true, "a://{b": true, "": false} {
		if uritemplate.IsTemplate(s) != want {
			t.Errorf("IsTemplate(%q) is not %t", s, want)
		}
	}
}

func TestStringAndNames(t *testing.T) {
	const source = "x://{a,b}/{a}{?c}"
	tmpl := parse(t, source)
	if tmpl.String() != source || !slices.Equal(tmpl.Names(), []string{"a", "b", "c"}) {
		t.Errorf("String is %q and Names are %q", tmpl, tmpl.Names())
	}
}

func TestExpandRefusesInvalidUTF8(t *testing.T) {
	if got, err := parse(t, "{x}").Expand(map[string]string{"x": "\xff"}); err == nil {
		t.Errorf("expanded to %q", got)
	}
}

// TestMatchIsLinear matches texts that take backtracking matchers exponential time.
func TestMatchIsLinear(t *testing.T) {
	tmpl := parse(t, strings.Repeat("{+a}a", 20)+"b")
	if _, ok := tmpl.Match(strings.Repeat("a", uritemplate.MaxURI)); ok {
		t.Error("matched")
	}
	if _, ok := parse(t, "{+x}").Match(strings.Repeat("a", uritemplate.MaxURI+1)); ok {
		t.Error("matched a URI over the limit")
	}
}

func TestMatchAllocations(t *testing.T) {
	hit, miss := parse(t, "repo://{owner}/{name}/blob/{+path}{?ref}"), parse(t, "file:///{+path}")
	const uri = "repo://go-psi/psi/blob/internal/uritemplate/match.go?ref=main"
	if n := testing.AllocsPerRun(100, func() { hit.Match(uri) }); n > 1 {
		t.Errorf("a match makes %v allocations, want one for the values", n)
	}
	if n := testing.AllocsPerRun(100, func() { miss.Match(uri) }); n > 0 {
		t.Errorf("a mismatch makes %v allocations, want none", n)
	}
}

func BenchmarkMatch(b *testing.B) {
	tmpl := parse(b, "repo://{owner}/{name}/blob/{+path}{?ref}")
	b.ReportAllocs()
	for b.Loop() {
		tmpl.Match("repo://go-psi/psi/blob/internal/uritemplate/match.go?ref=main")
	}
}

// unambiguous lists templates for which Match returns exactly the values that were
// expanded.
var unambiguous = []string{
	"x://{a}/{b}", "x://{a}{/b}", "x://{a}{?b}", "x{/a}{?b}", "x{;a}/{b}", "x://{a}{#b}", "x{?a,b}", "x{?b,a}", "x?y{&a}{#b}",
}

func FuzzExpandMatch(f *testing.F) {
	f.Add("u://{a}/{+b}{?c}", "1", "2/3", "4")
	f.Add("{a:2}{;b*}{.c}", "\u00eb\u00eb\u00eb", "", "&")
	f.Add("{#a,b}%2f{&c}", "%41", "}", "=")
	f.Fuzz(func(t *testing.T, template, a, b, c string) {
		if a == "" || !utf8.ValidString(a) || !utf8.ValidString(b) || len(template)+3*len(a+b+c) > 500 {
			t.Skip()
		}
		for _, s := range unambiguous {
			checkRoundTrip(t, parse(t, s), map[string]string{"a": a, "b": b + "b"})
		}
		tmpl, err := uritemplate.Parse(template)
		if err != nil {
			t.Skip()
		}
		tmpl.Match(c)
		if uri, err := tmpl.Expand(map[string]string{"a": a, "b": b, "c": c}); err == nil {
			checkRewrites(t, tmpl, uri)
		}
		if got := uritemplate.Compare(tmpl, tmpl); got != uritemplate.Equivalent && got != uritemplate.Overlaps {
			t.Errorf("%s is %v to itself", template, got)
		}
	})
}

func checkRoundTrip(t *testing.T, tmpl *uritemplate.Template, want map[string]string) {
	t.Helper()
	uri, err := tmpl.Expand(want)
	if err != nil {
		t.Fatal(err)
	}
	values, ok := tmpl.Match(uri)
	got := map[string]string{}
	for _, name := range tmpl.Names() {
		got[name] = values.Get(name)
	}
	if strings.Contains(tmpl.String(), "{#") && strings.Contains(want["b"], "%") {
		return // {#x} does not escape what looks percent-encoded
	}
	if !ok || !maps.Equal(got, want) {
		t.Errorf("%s: %q became %q, then %q, %t", tmpl, want, uri, got, ok)
	}
}

// checkRewrites checks that the expansion of the values of a match matches again, with the
// same values.
func checkRewrites(t *testing.T, tmpl *uritemplate.Template, uri string) {
	t.Helper()
	values, ok := tmpl.Match(uri)
	if !ok {
		return // undefined or empty where a value is required
	}
	bound := map[string]string{}
	for _, name := range tmpl.Names() {
		if value, ok := values.Lookup(name); ok {
			bound[name] = value
		}
	}
	again, err := tmpl.Expand(bound)
	if err != nil {
		t.Fatalf("%s matched %q with values that are not UTF-8: %q", tmpl, uri, bound)
	}
	if strings.ContainsAny(tmpl.String(), "*+#:;") {
		return // lists, prefixes, empty named values and "%41" have other spellings
	}
	if again != uri && len(again) != len(uri) { // pairs may be reordered
		t.Errorf("%s matched %q with %q, which expand to %q", tmpl, uri, bound, again)
	}
}
