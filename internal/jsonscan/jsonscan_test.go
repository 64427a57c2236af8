// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonscan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/internal/jsonscan"
)

func TestValid(t *testing.T) {
	valid := []string{
		`{}`, `[]`, ` {"a" : [ 1 , -0.5e+10, "x\u00e9\ud83d\ude00\n", null, true, false ] } `, `0`, `"é"`,
		`{"a":{"a":1},"b":{"a":2}}`,
	}
	for _, in := range valid {
		if err := jsonscan.Valid([]byte(in), 0); err != nil {
			t.Errorf("Valid(%s) = %v, want nil", in, err)
		}
	}
	invalid := map[string]string{
		``:                               "end of input",
		`{`:                              "end of input",
		`{"a":1,}`:                       "value after ','",
		`[1,]`:                           "value after ','",
		`{"a":1,"a":2}`:                  `"a" appears twice`,
		`{"a":1,"\u0061":2}`:             `"a" appears twice`,
		`{"x":[{"b":1,"b":2}]}`:          `"b" appears twice`,
		`{} {}`:                          "after the JSON value",
		`{}}`:                            "after the JSON value",
		`01`:                             "after the JSON value",
		`-`:                              "digit",
		`1.`:                             "digit",
		`1e`:                             "digit",
		`"a` + "\n" + `"`:                "control character",
		`"` + "\xff" + `"`:               "UTF-8",
		`"\ud800"`:                       "surrogate",
		`"\ud800\u0041"`:                 "surrogate",
		`"\x"`:                           "escape",
		`"\u12"`:                         "hex",
		`nul`:                            "null",
		`{a:1}`:                          "member name",
		`{"a" 1}`:                        "':'",
		`[1 2]`:                          "','",
		strings.Repeat("[", 129):         "deeper than 128",
		`{"a":` + "\x00" + `1}`:          "value",
		`"unterminated`:                  "in a string",
		`{"0123456789abcdef0123\\`:       "in a string",
		`"0123456789abcdef0123` + "\x01": "control",
	}
	for in, want := range invalid {
		err := jsonscan.Valid([]byte(in), 0)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Valid(%q) = %v, want an error with %q", in, err, want)
		}
	}
}

func TestManyMembers(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `"k%d":{"k":%d},`, i, i)
	}
	if err := jsonscan.Valid([]byte("{"+b.String()+`"z":1}`), 0); err != nil {
		t.Fatal(err)
	}
	if err := jsonscan.Valid([]byte("{"+b.String()+`"k500":1}`), 0); err == nil {
		t.Fatal("a duplicate among 1,000 members was not seen")
	}
}

func TestPull(t *testing.T) {
	var s jsonscan.Scanner
	s.Reset([]byte(`{"id": 7, "params":{"na\u006de":"x","list":[1,[2]]} , "z":{}}`), 0)
	var got []string
	s.Object()
	for s.Member() {
		if string(s.Name()) != "params" {
			got = append(got, fmt.Sprintf("%s=%s", s.Name(), s.Value()))
			continue
		}
		s.Object()
		for s.Member() {
			got = append(got, fmt.Sprintf("params.%s=%s", s.Name(), s.Value()))
		}
	}
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	want := `[id=7 params.name="x" params.list=[1,[2]] z={}]`
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestNoAllocations(t *testing.T) {
	data := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":[2,{"c":"d"}]}}}`)
	if n := testing.AllocsPerRun(100, func() {
		if err := jsonscan.Valid(data, 0); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Valid allocates %v times, want 0", n)
	}
}

// FuzzValid compares the scanner with jsontext, which is equally strict.
func FuzzValid(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `[1,"\ud83d\ude00"]`, `{"a":{},"a":1}`, "\"\xff\"", `1e5`, `"0123456789\u0000"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := jsonscan.Valid(data, 1000) == nil
		want := jsontext.Value(data).IsValid()
		if got != want && len(data) < 900 {
			t.Fatalf("Valid(%q) = %v, jsontext says %v", data, got, want)
		}
		if got && data[0] == '"' && data[len(data)-1] == '"' {
			text := jsonscan.Unquote(data)
			plain, err := jsontext.AppendUnquote(nil, data)
			if err != nil || string(text) != string(plain) {
				t.Fatalf("Unquote(%q) = %q, want %q (%v)", data, text, plain, err)
			}
			back := jsonscan.AppendString(nil, text)
			if again := jsonscan.Unquote(back); string(again) != string(text) {
				t.Fatalf("AppendString(%q) = %q does not come back", text, back)
			}
		}
	})
}

func BenchmarkValid(b *testing.B) {
	data := []byte(`{"text":"` + strings.Repeat("all work and no play ", 50000) + `"}`)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := jsonscan.Valid(data, 0); err != nil {
			b.Fatal(err)
		}
	}
}
