// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/jsonschema"
)

// An invalid tag is rejected with an error that names the path of the field, the offending
// word and, if possible, the intended one.
func TestFindingU4TagsAreStrict(t *testing.T) {
	text, integer, boolean := reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[bool]()
	list, object := reflect.TypeFor[[]int](), reflect.TypeFor[point]()
	for _, tt := range []struct {
		typ  reflect.Type
		tag  string
		want string
	}{
		{integer, `min=1,max=3`, `struct.Field: the jsonschema tag has the unknown word "min"; did you mean "minimum"?`},
		{text, `min=1`, `unknown word "min"; did you mean "minLength"?`},
		{list, `min=1`, `unknown word "min"; did you mean "minItems"?`},
		{integer, `minimum=1, maximum=3`, `unknown word " maximum"; did you mean "maximum"?`},
		{integer, `minimun=1`, `unknown word "minimun"; did you mean "minimum"?`},
		{text, `color=red`, `unknown word "color"`},
		{text, `minimum=1`, `minimum in the jsonschema tag does not apply to a string, which takes default, description, enum, example, format, maxLength, minLength, nullable, pattern`},
		{boolean, `enum=true`, `enum in the jsonschema tag does not apply to a boolean, which takes default, description, nullable, required, title`},
		{object, `minLength=1`, `minLength in the jsonschema tag does not apply to an object`},
		{list, `minLength=1`, `minLength in the jsonschema tag does not apply to an array`},
		{reflect.TypeFor[any](), `minimum=1`, `minimum in the jsonschema tag does not apply to a field of any type`},
		{text, `type=integer`, `type in the jsonschema tag does not apply to a string`},
		{text, `maxLength=x`, `maxLength=x in the jsonschema tag: it must be a whole number that is not negative`},
		{text, `minLength=-1`, `minLength=-1 in the jsonschema tag: it must be`},
		{integer, `minimum=007`, `minimum=007 in the jsonschema tag: it must be a number, as in JSON`},
		{integer, `default=many`, `default=many in the jsonschema tag: it must be a number`},
		{boolean, `default=yes`, `default=yes in the jsonschema tag: it must be true or false`},
		{list, `uniqueItems=false`, `uniqueItems=false in the jsonschema tag: it must be true`},
		{text, `pattern=[a-z`, `pattern=[a-z in the jsonschema tag: error parsing regexp: missing closing ]`},
		{text, `pattern=(?=a)`, `pattern=(?=a) in the jsonschema tag: error parsing regexp: invalid or unsupported Perl syntax`},
		{text, `minLength`, `minLength needs a value, such as minLength=…`},
		{text, `minLength=1,`, `an empty word; remove the comma`},
		{text, `minLength=1,the city`, `"the city" is not a word with a value; for a description, write "description=…" at the end`},
		{text, `required,the city`, `"the city" is not a word with a value`},
		{text, `description=the city,minLength=1`, `a description runs to the end of its tag, so "minLength=1" would be a part of it`},
		{text, `description=the city,required`, `so "required" would be a part of it`},
		{text, `enum=x,enum=y,default=z`, `the default in the jsonschema tag does not fit: (root): expected one of the allowed values, got string "z"; allowed: "x", "y"`},
		{integer, `maximum=3,default=4`, `the default in the jsonschema tag does not fit: (root): expected number of at most 3`},
		{integer, `default=1.5`, `the default in the jsonschema tag does not fit: (root): expected integer`},
		{list, `maxItems=1,default=1,default=2`, `the default in the jsonschema tag does not fit: (root): expected array of at most 1 item`},
		{list, `default=1,default=x`, `default=x in the jsonschema tag: it must be a number`},
		{text, `format=date,default=today`, `the default in the jsonschema tag does not fit: (root): expected date such as`},
		{reflect.TypeFor[time.Duration](), `default=90`, `the default in the jsonschema tag does not fit`},
		{reflect.TypeFor[netip.Addr](), `default=localhost`, `the default in the jsonschema tag does not fit: ParseAddr("localhost"): unable to parse IP`},
		{reflect.TypeFor[uint8](), `default=300`, `the default in the jsonschema tag does not fit: (root): expected number of at most 255`},
		{integer, `required,default=3`, `it is required and has a default, which would never be used; remove one of the two`},
	} {
		_, err := jsonschema.ForType(structOf("Field", tt.typ, reflect.StructTag(`jsonschema:"`+tt.tag+`"`)))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v with the tag %s: got %v, want %q", tt.typ, tt.tag, err, tt.want)
		}
	}
	for _, tt := range []struct{ tags, want string }{
		{`json:"a,omitempty" jsonschema:"required"`, "it is required and has omitempty or omitzero"},
		{`jsonschema:"one" jsonschema_description:"two"`, "there are two descriptions"},
		{`jsonschema_extras:"x-order"`, `the jsonschema_extras tag has "x-order" without a value`},
	} {
		_, err := jsonschema.ForType(structOf("Field", text, reflect.StructTag(tt.tags)))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("the tags %s: got %v, want %q", tt.tags, err, tt.want)
		}
	}
}

// A tag without keywords is a description, including its commas. A description extends to
// the end of the tag.
func TestFindingU4Descriptions(t *testing.T) {
	for tag, want := range map[string]string{
		`the first number, as an integer`:          `{"type":"integer","description":"the first number, as an integer"}`,
		`description=one, two`:                     `{"type":"integer","description":"one, two"}`,
		`minimum=1,description=one, two and a=b`:   `{"type":"integer","minimum":1,"description":"one, two and a=b"}`,
		`description=one\\, two`:                   `{"type":"integer","description":"one, two"}`,
		`description=or\\,nullable`:                `{"type":"integer","description":"or,nullable"}`,
		`description=such as\\,minimum=1`:          `{"type":"integer","description":"such as,minimum=1"}`,
		`nullable`:                                 `{"type":["integer","null"]}`,
		`nullable,minimum=1,description=a, b, c`:   `{"minimum":1,"description":"a, b, c","type":["integer","null"]}`,
		`title=one\\, two,minimum=1`:               `{"type":"integer","minimum":1,"title":"one, two"}`,
		`required or not, this is the description`: `{"type":"integer","description":"required or not, this is the description"}`,
	} {
		got, err := jsonschema.ForType(structOf("F", reflect.TypeFor[int](), reflect.StructTag(`jsonschema:"`+tag+`"`)))
		if err != nil || !strings.Contains(string(got), `{"F":`+want+`}`) {
			t.Errorf("%s: got %s, %v\nwant %s", tag, got, err, want)
		}
	}
	got, err := jsonschema.ForType(structOf("F", reflect.TypeFor[string](), `jsonschema:"pattern=^a\\,nullable\\,required$"`))
	if err != nil || !strings.Contains(string(got), `{"F":{"type":"string","pattern":"^a,nullable,required$"}}`) {
		t.Errorf("got %s, %v", got, err)
	}
}

// A field with a default is optional.
func TestFindingU12DefaultsAreOptional(t *testing.T) {
	got, err := jsonschema.For[struct {
		A int    `json:"a" jsonschema:"default=3"`
		B string `json:"b" jsonschema:"default="`
		C string `json:"c"`
	}]()
	if err != nil || !strings.Contains(string(got), `"required":["c"]`) {
		t.Errorf("got %s, %v", got, err)
	}
}

// If a number is encoded as a string, its default is a string, too.
func TestDefaultOfQuotedNumber(t *testing.T) {
	raw, err := jsonschema.For[struct {
		ID    int64   `json:"id,string" jsonschema:"default=7"`
		Share float64 `json:"share,string" jsonschema:"default=0.5"`
	}]()
	if err != nil || !strings.Contains(string(raw), `"default":"7"`) || !strings.Contains(string(raw), `"default":"0.5"`) {
		t.Errorf("got %s, %v", raw, err)
	}
	_, err = jsonschema.For[struct {
		ID int8 `json:"id,string" jsonschema:"default=300"`
	}]()
	if got := errorText(err); !strings.Contains(got, "ID: the default in the jsonschema tag does not fit") {
		t.Errorf("got %q", got)
	}
}

// The keywords of a tag apply to the encoded form: a quoted number may have a pattern, but
// not a minimum.
func TestWordsOfQuotedNumber(t *testing.T) {
	raw, err := jsonschema.For[struct {
		ID int64 `json:"id,string" jsonschema:"pattern=^[0-9]+$"`
	}]()
	if err != nil || !strings.Contains(string(raw), `"pattern":"^[0-9]+$"`) {
		t.Errorf("got %s, %v", raw, err)
	}
	_, err = jsonschema.For[struct {
		ID int64 `json:"id,string" jsonschema:"minimum=1"`
	}]()
	if got := errorText(err); !strings.Contains(got, "minimum in the jsonschema tag does not apply to a string") {
		t.Errorf("got %q", got)
	}
}

// Standard library types that are usually encoded as text have schemas, and values that
// conform to them can be decoded.
func TestFindingU8TextTypes(t *testing.T) {
	type text struct {
		Wait  time.Duration            `json:"wait,omitzero" jsonschema:"default=1m30s"`
		Waits map[string]time.Duration `json:"waits,omitzero"`
		Page  *url.URL                 `json:"page,omitzero"`
		Addr  netip.Addr               `json:"addr,omitzero"`
		ID    *UUID                    `json:"id,omitzero"`
	}
	s := compileFor(t, reflect.TypeFor[text]())
	for data, problem := range map[string]string{
		`{"wait":"1m30s","waits":{"a":"-1.5h"},"page":"https://a.example/b","addr":"::1","id":"00"}`: "",
		`{"wait":"0"}`:      "",
		`{"wait":"1µs"}`:    "",
		`{"wait":90}`:       "expected string, got number 90",
		`{"wait":"1 day"}`:  "/wait: expected string that matches",
		`{"page":"a b"}`:    "/page: expected URI such as",
		`{"wait":"99999h"}`: "",
	} {
		got := errorText(s.Validate(t.Context(), []byte(data)))
		if (got == "") != (problem == "") || !strings.Contains(got, problem) {
			t.Errorf("%s: got %q, want %q", data, got, problem)
		}
		var v text
		if err := jsonschema.Unmarshal([]byte(data), &v); problem == "" && err != nil {
			t.Errorf("%s: %v", data, err)
		}
	}
	var v text
	if err := jsonschema.Unmarshal([]byte(`{"wait":"1m30s","page":"/a?b"}`), &v); err != nil || v.Wait != 90*time.Second || v.Page.Path != "/a" {
		t.Errorf("got %+v, %v", v, err)
	}
	if got, err := jsonschema.Marshal(v); err != nil || string(got) != `{"wait":"1m30s","page":"/a?b"}` {
		t.Errorf("got %s, %v", got, err)
	}
	if err := jsonschema.Unmarshal([]byte(`{"wait":null,"waits":{"a":null},"page":null}`), &v); err != nil || v.Wait != 0 || v.Waits["a"] != 0 || v.Page != nil {
		t.Errorf("null: got %+v, %v", v, err)
	}
	for _, data := range []string{`{"wait":"1 day"}`, `{"wait":1}`} {
		err := jsonschema.Unmarshal([]byte(data), &v)
		if got := errorText(err); !strings.Contains(got, `a duration such as "1m30s"`) || !strings.Contains(got, "/wait") {
			t.Errorf("%s: got %q", data, got)
		}
	}
}

// Types encoded as text are text wherever they occur.
func TestTextTypesAnywhere(t *testing.T) {
	page := url.URL{Scheme: "https", Host: "a.example"}
	for want, v := range map[string]any{
		`{"took":"1s"}`:              map[string]any{"took": time.Second},
		`{"A":"1s"}`:                 struct{ A any }{time.Second},
		`["1s","https://a.example"]`: []any{time.Second, &page},
		`{"A":["1s"]}`:               struct{ A fmt.Stringer }{durations{time.Second}},
		`{"1s":1}`:                   map[time.Duration]int{time.Second: 1},
	} {
		if got, err := jsonschema.Marshal(v); err != nil || string(got) != want {
			t.Errorf("%T: got %s, %v, want %s", v, got, err, want)
		}
	}
	var v map[time.Duration]int
	if err := jsonschema.Unmarshal([]byte(`{"1s":1}`), &v); err != nil || v[time.Second] != 1 {
		t.Errorf("got %v, %v", v, err)
	}
}

// A json.Number is encoded as a number.
func TestNumber(t *testing.T) {
	type numbers struct {
		N json.Number    `json:"n"`
		P *json.Number   `json:"p,omitempty"`
		A map[string]any `json:"a,omitempty"`
	}
	schema, err := jsonschema.For[numbers]()
	if err != nil || !strings.Contains(string(schema), `"n":{"type":"number"}`) || !strings.Contains(string(schema), `"p":{"type":"number"}`) {
		t.Errorf("the schema is %s, %v", schema, err)
	}
	const text = `{"n":12345678901234567890.5,"p":1e2}`
	var v numbers
	if err := jsonschema.Unmarshal([]byte(text), &v); err != nil || v.N != "12345678901234567890.5" || v.P.String() != "1e2" {
		t.Errorf("got %+v, %v", v, err)
	}
	v.A = map[string]any{"empty": json.Number("")}
	if got, err := jsonschema.Marshal(v); err != nil || string(got) != strings.TrimSuffix(text, "}")+`,"a":{"empty":0}}` {
		t.Errorf("got %s, %v", got, err)
	}
	for _, bad := range []json.Number{"x", "1 2", `"1"`, "null", "01"} {
		if got, err := jsonschema.Marshal(bad); err == nil {
			t.Errorf("%q was encoded as %s", bad, got)
		}
	}
	if err := jsonschema.Unmarshal([]byte(`"5"`), new(json.Number)); err == nil {
		t.Error("a string was decoded")
	}
	n := json.Number("5")
	if err := jsonschema.Unmarshal([]byte("null"), &n); err != nil || n != "" {
		t.Errorf("null: %q, %v", n, err)
	}
}

type durations []time.Duration

func (durations) String() string { return "" }

// Truncated JSON is an error, wherever it is cut off.
func TestUnmarshalTorn(t *testing.T) {
	const whole = `{"a":[1.0,"b\"c"],"d":"e"}`
	for end := range len(whole) {
		var v struct {
			A []any  `json:"a"`
			D string `json:"d"`
		}
		if jsonschema.Unmarshal([]byte(whole[:end]), &v) == nil {
			t.Errorf("%s was decoded", whole[:end])
		}
	}
}

// A json.Number can be a map key, because member names are strings.
func TestNumberKeys(t *testing.T) {
	v := map[json.Number][]json.Number{"5": {"1"}}
	raw, err := jsonschema.Marshal(v)
	if err != nil || string(raw) != `{"5":[1]}` {
		t.Errorf("got %s, %v", raw, err)
	}
	var back map[json.Number][]json.Number
	if err := jsonschema.Unmarshal(raw, &back); err != nil || !reflect.DeepEqual(back, v) {
		t.Errorf("got %v, %v", back, err)
	}
}
