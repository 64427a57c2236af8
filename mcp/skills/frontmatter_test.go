// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package skills_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp/skills"
)

func TestParseFrontmatter(t *testing.T) {
	for text, want := range map[string]string{
		"---\nname: a\n---\n":                                          `{"name":"a"}`,
		"---\r\nname: a\r\n---\r\nbody":                                `{"name":"a"}`,
		"\ufeff---\nname: a\n---":                                      `{"name":"a"}`,
		"---\nname: a\n--- \n---\n":                                    `{"name":"a"}`,
		"---\na: yes\nb: true\nc: ~\nd: 2026-01-01\n---\n":             `{"a":"yes","b":true,"c":null,"d":"2026-01-01"}`,
		"---\na: 0x10\nb: 1.5\nc: '1'\nd: 12345678901234567890\n---\n": `{"a":16,"b":1.5,"c":"1","d":12345678901234567890}`,
		"---\na: |\n  x\n  y\nb: &r {c: 1}\nd: *r\n---\n":              `{"a":"x\ny\n","b":{"c":1},"d":{"c":1}}`,
		"---\n1: one\ntrue: two\n---\n":                                `{"1":"one","true":"two"}`,
		"---\na: [x, {y: z}]\n---\n":                                   `{"a":["x",{"y":"z"}]}`,
		// The core schema of YAML 1.2, not YAML 1.1.
		"---\na: [014, +1, -0, 0o14, 0x1F, 1e3, .5, 1., 1.50]\n---\n": `{"a":[14,1,0,12,31,1000,0.5,1,1.5]}`,
		"---\na: [1_000, 1__0, 0b11, 0O14, 0X1F, 1:30, =]\n---\n":     `{"a":["1_000","1__0","0b11","0O14","0X1F","1:30","="]}`,
		"---\na: [TRUE, tRue, no, Null, nULL, 1e, 0x, 2026]\n---\n":   `{"a":[true,"tRue","no",null,"nULL","1e","0x",2026]}`,
		"---\na: [!!str 1, !!int \"1\", !!float 1, !!null x]\n---\n":  `{"a":["1",1,1,null]}`,
	} {
		f, err := skills.ParseFrontmatter([]byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got, err := json.Marshal(f); err != nil || string(got) != want {
			t.Errorf("%q: got %s, %v, want %s", text, got, err, want)
		}
	}
}

func TestBadFrontmatter(t *testing.T) {
	bomb := "---\na: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
		"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d]\n---\n"
	for text, want := range map[string]string{
		"":                     "there is no front matter",
		"name: a\n---\n":       "there is no front matter",
		" ---\nname: a\n---\n": "there is no front matter",
		"---\nname: a\n":       "has no end",
		"---\nname: a\n----\n": "has no end",
		"---\n" + strings.Repeat("# x\n", 20_000): "longer than 65536 bytes",
		"---\n---\n":                                       "no documents",
		"---\ntext\n---\n":                                 "has no fields",
		"---\nname: a\nname: b\n---\n":                     "",
		"---\nx: {a: 1, a: 2}\n---\n":                      "",
		"---\n? [a]\n: b\n---\n":                           "the name of a field is not a text",
		"---\na: !!binary aGk=\n---\n":                     "the tag !!binary is not one of JSON's types",
		"---\na: !mine x\n---\n":                           "the tag !mine is not one of JSON's types",
		"---\na: .inf\n---\n":                              "JSON cannot represent this number",
		"---\na: 1e400\n---\n":                             "JSON cannot represent this number",
		"---\na: 1" + strings.Repeat("0", 400) + "\n---\n": "JSON cannot represent this number",
		"---\na: \xff\n---\n":                              "not valid UTF-8",
		"---\na: *b\n---\n":                                "not YAML",
		bomb:                                               "more than 10000 values",
		"---\na: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "\n---\n": "nested more than 32 levels deep",
	} {
		if f, err := skills.ParseFrontmatter([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, %v, want %q", text, f, err, want)
		}
	}
}

// For any input, the parser returns fields with JSON values or an error.
func FuzzParseFrontmatter(f *testing.F) {
	for _, text := range []string{refunds, "---\na: &a [*a]\n---\n", "---\n<<: {a: b}\n---\n", "---\n!!map {}: x\n---", "---\na: 0b1\nb: 1_000\n---\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		fields, err := skills.ParseFrontmatter(text)
		if err != nil {
			return
		}
		for field, value := range fields {
			if !json.Valid(value) {
				t.Errorf("%s: %s", field, value)
			}
		}
	})
}

// The most frequent mistake in front matter is a text with a colon that is not in quotes.
func TestFindingR6TextWithAColon(t *testing.T) {
	_, err := skills.ParseFrontmatter([]byte("---\nname: a\ndescription: Use when: asked\n---\n"))
	if err == nil || err.Error() != "line 3: put the text of description into quotes, because it contains a colon followed by a space" {
		t.Error(err)
	}
	for _, text := range []string{`"Use when: asked"`, "|\n  Use when: asked", "see https://example.com"} {
		if _, err := skills.ParseFrontmatter([]byte("---\nname: a\ndescription: " + text + "\n---\n")); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := skills.ParseFrontmatter([]byte("---\nname: [a\n---\n")); err == nil || !strings.Contains(err.Error(), "is not YAML") {
		t.Error(err)
	}
}
