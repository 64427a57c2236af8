// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/openapi"
)

// echo answers with what it was sent.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(w, "%s %s|%s|%s|%s", r.Method, r.RequestURI, r.Header.Get("X-List"), r.Header.Get("Cookie"), body)
})

// operation returns a document with one operation named "op".
func operation(path, method, spec string) string {
	return fmt.Sprintf(`{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{%q:{%q:%s}}}`, path, method,
		strings.Replace(spec, "{", `{"operationId":"op",`, 1))
}

func TestParameterStyles(t *testing.T) {
	const list, object = `["a b","c/d"]`, `{"k":"v","n":1}`
	for _, test := range []struct{ in, style, explode, value, want string }{
		{"path", "simple", "false", list, "/x/a%20b,c%2Fd/y"},
		{"path", "simple", "false", object, "/x/k,v,n,1/y"},
		{"path", "simple", "true", object, "/x/k=v,n=1/y"},
		{"path", "label", "false", list, "/x/.a%20b,c%2Fd/y"},
		{"path", "label", "true", list, "/x/.a%20b.c%2Fd/y"},
		{"path", "label", "true", object, "/x/.k=v.n=1/y"},
		{"path", "matrix", "false", `5`, "/x/;p=5/y"},
		{"path", "matrix", "false", list, "/x/;p=a%20b,c%2Fd/y"},
		{"path", "matrix", "true", list, "/x/;p=a%20b;p=c%2Fd/y"},
		{"path", "matrix", "false", object, "/x/;p=k,v,n,1/y"},
		{"path", "matrix", "true", object, "/x/;k=v;n=1/y"},
		{"query", "form", "true", list, "/x?p=a%20b&p=c%2Fd"},
		{"query", "form", "false", list, "/x?p=a%20b,c%2Fd"},
		{"query", "form", "true", object, "/x?k=v&n=1"},
		{"query", "form", "false", object, "/x?p=k,v,n,1"},
		{"query", "form", "false", `[]`, "/x"},
		{"query", "form", "false", `"a&b=c"`, "/x?p=a%26b%3Dc"},
		{"query", "spaceDelimited", "false", list, "/x?p=a%20b%20c%2Fd"},
		{"query", "pipeDelimited", "false", list, "/x?p=a%20b%7Cc%2Fd"},
		{"query", "deepObject", "true", `{"a":{"b":"c"},"l":[1,2]}`, "/x?p%5Ba%5D%5Bb%5D=c&p%5Bl%5D%5B%5D=1&p%5Bl%5D%5B%5D=2"},
		{"query", "deepObject", "true", `{"l":[{"a":1,"b":2},{"a":3},[4]]}`, "/x?p%5Bl%5D%5B0%5D%5Ba%5D=1&p%5Bl%5D%5B0%5D%5Bb%5D=2&p%5Bl%5D%5B1%5D%5Ba%5D=3&p%5Bl%5D%5B2%5D%5B%5D=4"},
		{"query", "form", "true", `12345678901234567890`, "/x?p=12345678901234567890"},
	} {
		path := "/x"
		if test.in == "path" {
			path = "/x/{p}/y"
		}
		doc := operation(path, "get", fmt.Sprintf(`{"parameters":[{"name":"p","in":%q,"style":%q,"explode":%s,"required":true,"schema":{}}]}`, test.in, test.style, test.explode))
		mux := serve(t, doc, &openapi.Options{Handler: echo})
		if got, want := textOf(call(t, mux, "op", `{"p":`+test.value+`}`)), "GET "+test.want+"|||"; got != want {
			t.Errorf("%s %s explode=%s %s: got %s, want %s", test.in, test.style, test.explode, test.value, got, want)
		}
	}
}

// A path may have a query that is always sent, and a fragment that tells apart operations of one
// path and is not sent.
func TestPathsWithQueries(t *testing.T) {
	const param = `{"parameters":[{"name":"n","in":"query","schema":{"type":"integer"}}]}`
	for path, want := range map[string]string{
		"/x?action=read&v=2":   "GET /x?action=read&v=2&n=1|||",
		"/x#Action=Read":       "GET /x?n=1|||",
		"/x/?a#Action=Read?no": "GET /x/?a&n=1|||",
	} {
		if got := textOf(call(t, serve(t, operation(path, "get", param), &openapi.Options{Handler: echo}), "op", `{"n":1}`)); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	for _, path := range []string{"/x?a={n}", "/x?a=%zz", "/x?a b", "/x?key=1"} {
		doc := operation(path, "get", param)
		doc = doc[:len(doc)-1] + `,"components":{"securitySchemes":{"key":{"type":"apiKey","in":"query","name":"key"}}}}`
		api, err := openapi.New([]byte(doc), &openapi.Options{Handler: echo})
		if err != nil || len(api.Omitted()) != 1 {
			t.Errorf("%s: got %v, %v, want an omission", path, api.Omitted(), err)
		}
	}
}

// Integers are sent as such, as models do not always write them. Numbers that need not be integers
// are sent as they are, and so are those of a size that is no integer's.
func TestIntegers(t *testing.T) {
	doc := operation("/x/{i}", "post", `{"parameters":[{"name":"i","in":"path","schema":{"type":"integer"}},{"name":"l","in":"query","schema":{"type":"array","items":{"type":"integer"}}},
		{"name":"n","in":"query","schema":{"type":"number"}}],"requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":{"o":{}}}}}}}`)
	mux := serve(t, doc, &openapi.Options{Handler: echo})
	for args, want := range map[string]string{
		`{"i":5.0,"l":[1e2,-0,7],"n":1.0,"o":{"a":[2.0,2.5,1e400]}}`: `POST /x/5?l=100&l=0&l=7&n=1.0|||{"o":{"a":[2,2.5,1e400]}}`,
		`{"i":9007199254740993.0}`:                                   `POST /x/9007199254740993|||`,
	} {
		if got := textOf(call(t, mux, "op", args)); got != want {
			t.Errorf("%s: got %s, want %s", args, got, want)
		}
	}
}

func TestReservedCharacters(t *testing.T) {
	doc := operation("/x", "get", `{"parameters":[{"name":"p","in":"query","allowReserved":true,"schema":{"type":"string"}}]}`)
	mux := serve(t, doc, &openapi.Options{Handler: echo})
	if got, want := textOf(call(t, mux, "op", `{"p":"a/b?c&admin=1#f é"}`)), "GET /x?p=a/b?c%26admin%3D1%23f%20%C3%A9|||"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestHeadersAndCookies(t *testing.T) {
	doc := operation("/x", "get", `{"parameters":[
		{"name":"X-List","in":"header","schema":{"type":"array","items":{"type":"string"}}},
		{"name":"session","in":"cookie","schema":{"type":"string"}},
		{"name":"list","in":"cookie","explode":false,"schema":{"type":"array","items":{"type":"string"}}}]}`)
	mux := serve(t, doc, &openapi.Options{Handler: echo})
	for args, want := range map[string]string{
		`{"X-List":["a","b"],"session":"a; b=c"}`: "GET /x|a,b|session=a%3B+b%3Dc|",
		`{"list":["a","b,c"]}`:                    "GET /x||list=a,b%2Cc|",
		`{"X-List":["a\r\nX-Admin: 1"]}`:          "the argument X-List has a character that a header cannot have",
	} {
		if got := textOf(call(t, mux, "op", args)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A model cannot set what carries credentials.
func TestCredentialsAreNoArguments(t *testing.T) {
	doc := `{"openapi":"3.0.0","paths":{"/x":{"get":{"operationId":"op","parameters":[
		{"name":"Authorization","in":"header","required":true,"schema":{"type":"string"}},
		{"name":"X-Forwarded-For","in":"header","schema":{"type":"string"}},
		{"name":"api_key","in":"query","required":true,"schema":{"type":"string"}},
		{"name":"q","in":"query","schema":{"type":"string"}},
		{"name":"filter","in":"query","schema":{"type":"object"}}]}}},
		"components":{"securitySchemes":{"key":{"type":"apiKey","in":"query","name":"api_key"}}}}`
	mux := serve(t, doc, &openapi.Options{Handler: echo})
	res := call(t, mux, "op", `{"q":"1","api_key":"stolen"}`)
	if !res.IsError || !strings.Contains(textOf(res), "api_key") {
		t.Errorf("got %s", textOf(res))
	}
	if got, want := textOf(call(t, mux, "op", `{"q":"1","filter":{"a":"b","API_KEY":"stolen"}}`)), "GET /x?q=1&a=b|||"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A member of an object is no way to set another parameter, which may be hidden, or always sent.
func TestMembersAreNoOtherArguments(t *testing.T) {
	query := operation("/x?action=read", "get", `{"parameters":[{"name":"filter","in":"query","schema":{"type":"object"}},
		{"name":"page","in":"query","style":"deepObject","schema":{"type":"object"}},{"name":"tenant","in":"query","schema":{"type":"string"}}]}`)
	form := operation("/x", "post", `{"requestBody":{"content":{"application/x-www-form-urlencoded":{
		"schema":{"type":"object","properties":{"filter":{"type":"object"},"tenant":{"type":"string"}}},"encoding":{"filter":{"style":"form","explode":true}}}}}}`)
	for _, test := range []struct{ doc, args, want string }{
		{query, `{"filter":{"a":"b","c[d]":"e"},"page":{"size":5}}`, "GET /x?action=read&a=b&c%5Bd%5D=e&page%5Bsize%5D=5&tenant=acme|||"},
		{query, `{"filter":{"tenant":"evil"}}`, `the argument filter must not have a member "tenant"`},
		{query, `{"filter":{"Tenant":"evil"}}`, `the argument filter must not have a member "Tenant"`},
		{query, `{"filter":{"tenant[]":"evil"}}`, `the argument filter must not have a member "tenant[]"`},
		{query, `{"filter":{"action":"delete"}}`, `the argument filter must not have a member "action"`},
		{query, `{"filter":{"page[size]":"9"}}`, `the argument filter must not have a member "page[size]"`},
		{form, `{"filter":{"a":"b"}}`, "POST /x|||a=b&tenant=acme"},
		{form, `{"filter":{"tenant":"evil"}}`, `the argument filter must not have a member "tenant"`},
		{form, `{"filter":{"Tenant":"evil"}}`, `the argument filter must not have a member "Tenant"`},
	} {
		mux := serve(t, test.doc, &openapi.Options{Handler: echo, Select: func(op *openapi.Operation) bool {
			op.Shape = &mcp.Shape{Args: map[string]mcp.Arg{"tenant": {Preset: func(context.Context) (any, error) { return "acme", nil }}}}
			return true
		}})
		if got := textOf(call(t, mux, "op", test.args)); got != test.want {
			t.Errorf("%s: got %s, want %s", test.args, got, test.want)
		}
	}
}

func TestBodies(t *testing.T) {
	received := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := map[string]any{"type": strings.Split(r.Header.Get("Content-Type"), ";")[0]}
		if err := r.ParseMultipartForm(1 << 20); err == nil {
			for name, files := range r.MultipartForm.File {
				f, _ := files[0].Open()
				data, _ := io.ReadAll(f)
				got[name] = files[0].Filename + "=" + string(data)
			}
		} else if len(r.PostForm) == 0 {
			data, _ := io.ReadAll(r.Body)
			got["body"] = string(data)
		}
		for name, values := range r.PostForm {
			got[name] = strings.Join(values, "+")
		}
		w.Header().Set("Content-Type", "application/json")
		data, _ := json.Marshal(got) //nolint:errchkjson // strings
		_, _ = w.Write(data)
	})
	const fields = `{"type":"object","properties":{"name":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},"file":{"type":"string","format":"binary"}}}`
	for _, test := range []struct{ mediaType, schema, args, want string }{
		{"application/json", fields, `{"name":"n","tags":["a"]}`, `{"body":"{\"name\":\"n\",\"tags\":[\"a\"]}","type":"application/json"}`},
		{"application/merge-patch+json", `{"type":"array","items":{"type":"integer"}}`, `{"body":[1]}`, `{"body":"[1]","type":"application/merge-patch+json"}`},
		{"application/x-www-form-urlencoded", fields, `{"name":"a&b","tags":["c","d"]}`, `{"name":"a\u0026b","tags":"c+d","type":"application/x-www-form-urlencoded"}`},
		{"multipart/form-data", fields, `{"name":"n","file":{"name":"../../etc/a.bin","base64":"aGVsbG8="}}`, `{"file":"a.bin=hello","name":"n","type":"multipart/form-data"}`},
		{"multipart/form-data", `{"type":"object","properties":{"file":{"type":"string","contentMediaType":"image/png"},"note":{"type":"string","contentMediaType":"image/png","contentEncoding":"base64"}}}`,
			`{"file":{"name":"a.png","base64":"aGVsbG8="},"note":"aGVsbG8="}`, `{"file":"a.png=hello","note":"aGVsbG8=","type":"multipart/form-data"}`},
		{"text/plain", `{"type":"string"}`, `{"body":"hello"}`, `{"body":"hello","type":"text/plain"}`},
		{"application/octet-stream", `{"type":"string","format":"binary"}`, `{"body":{"base64":"aGVsbG8="}}`, `{"body":"hello","type":"application/octet-stream"}`},
	} {
		doc := operation("/x", "post", fmt.Sprintf(`{"requestBody":{"required":true,"content":{%q:{"schema":%s}}}}`, test.mediaType, test.schema))
		mux := serve(t, doc, &openapi.Options{Handler: received})
		if got := strings.TrimSpace(textOf(call(t, mux, "op", test.args))); got != test.want {
			t.Errorf("%s: got %s, want %s", test.mediaType, got, test.want)
		}
	}
}

// A part of a form has the type among those of the document that its content or name has.
func TestTypesOfParts(t *testing.T) {
	doc := operation("/x", "post", `{"requestBody":{"content":{"multipart/form-data":{"schema":{"type":"object","properties":{"file":{"type":"string","format":"binary"}}},
		"encoding":{"file":{"contentType":"text/csv, application/pdf, image/png, image/*"}}}}}}`)
	mux := serve(t, doc, &openapi.Options{Handler: echo})
	for args, want := range map[string]string{
		`{"name":"a.txt","text":"a,b"}`:           "Content-Type: text/csv\r\n",
		`{"name":"a","text":"%PDF-1.4"}`:          "Content-Type: application/pdf\r\n",
		`{"name":"a.png","text":"not a picture"}`: "Content-Type: image/png\r\n",
	} {
		if got := textOf(call(t, mux, "op", `{"file":`+args+`}`)); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", args, got, want)
		}
	}
	doc = operation("/x", "post", `{"requestBody":{"content":{"multipart/form-data":{"schema":{"type":"object","properties":{"file":{"type":"string","contentMediaType":"image/gif"}}}}}}}`)
	if got := textOf(call(t, serve(t, doc, &openapi.Options{Handler: echo}), "op", `{"file":{"name":"a","text":"x"}}`)); !strings.Contains(got, "Content-Type: image/gif\r\n") {
		t.Errorf("OpenAPI 3.1: got %s", got)
	}
}

// If two places have an argument of one name, the body is one argument.
func TestArgumentsOfOneName(t *testing.T) {
	doc := operation("/x/{id}", "put", `{"parameters":[{"name":"id","in":"path","schema":{"type":"string"}},{"name":"id","in":"query","schema":{"type":"string"}}],
		"requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":{"id":{"type":"integer"}}}}}}}`)
	mux := serve(t, doc, &openapi.Options{Handler: echo})
	if got, want := textOf(call(t, mux, "op", `{"id":"a","id_query":"b","body":{"id":1}}`)), `PUT /x/a?id=b|||{"id":1}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSwagger(t *testing.T) {
	doc := `{"swagger":"2.0","basePath":"/v2","consumes":["application/json"],"paths":{"/x/{id}":{
		"parameters":[{"name":"id","in":"path","required":true,"type":"integer"}],
		"get":{"operationId":"get","parameters":[{"name":"tags","in":"query","type":"array","items":{"type":"string"},"collectionFormat":"pipes"}]},
		"put":{"operationId":"put","parameters":[{"name":"pet","in":"body","required":true,"schema":{"$ref":"#/definitions/Pet"}}]},
		"post":{"operationId":"post","parameters":[{"name":"note","in":"formData","type":"string"}]}}},
		"definitions":{"Pet":{"allOf":[{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},{"properties":{"age":{"type":"integer"}}}]}}}`
	mux := serve(t, doc, &openapi.Options{Handler: echo})
	for _, test := range []struct{ tool, args, want string }{
		{"get", `{"id":1,"tags":["a","b"]}`, "GET /v2/x/1?tags=a%7Cb|||"},
		{"put", `{"id":1,"name":"n","age":2}`, `PUT /v2/x/1|||{"age":2,"name":"n"}`},
		{"post", `{"id":1,"note":"a b"}`, "POST /v2/x/1|||note=a%20b"},
	} {
		if got := textOf(call(t, mux, test.tool, test.args)); got != test.want {
			t.Errorf("%s: got %s, want %s", test.tool, got, test.want)
		}
	}
}
