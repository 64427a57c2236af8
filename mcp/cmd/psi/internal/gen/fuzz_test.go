// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gen_test

import (
	"encoding/json"
	"go/ast"
	"go/build/constraint"
	"go/format"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/cmd/psi/internal/gen"
)

// FuzzGenerate checks that the file generated for any server compiles, is formatted, is
// deterministic, and contains nothing unexpected.
func FuzzGenerate(f *testing.F) {
	f.Add("add", "Add two.", "a", `{"type":"object","properties":{"a":{"type":"integer"}}}`, `{"type":"array","items":{"$ref":"#"}}`)
	f.Add("x\n}\nfunc init() {}", "*/\n//go:generate rm\r\u2028import \"C\"", "`\"',\\", `{"type":"object","properties":{"-":{},"":true,"A":{"enum":["a","A",""]},"a":{"const":null}}}`, `{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}}}`)
	f.Add("İß", "// +build ignore", "1", `{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"},"b":{"$ref":"#/properties/a"}}}`, `{"allOf":[{"$ref":"#/definitions/a"},{"properties":{"b":{"type":["string","null"]}}}],"definitions":{"a":{"properties":{"b":{"$ref":"#/definitions/a"}},"required":["b"]}}}`)
	f.Add("Text", "", "Extra", `{"type":"object","properties":{"Extra":{"type":"string","format":"date-time"}},"additionalProperties":{"type":"object","properties":{"x":{"contentEncoding":"base64","type":"string"}}}}`, `{"items":{"items":{"enum":[1,"a",true,null]}},"type":["array","null"]}`)
	f.Add("json.RawMessage", "time.Time", "in", `{"type":"object","oneOf":[{"const":"a"},{"const":"b"}]}`, `{"oneOf":[{"const":"a"},{"const":"b"},{"type":"null"}]}`)
	f.Fuzz(func(t *testing.T, name, description, property, input, output string) {
		properties, _ := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{
			property: map[string]string{"type": "string", "description": description, "default": name},
		}})
		s := &gen.Server{
			Name: name, Version: description,
			Tools: []*mcp.Tool{
				{Name: name, Description: description, InputSchema: json.RawMessage(input), OutputSchema: json.RawMessage(output)},
				{Name: property, Description: input, InputSchema: properties},
				{Name: name, InputSchema: json.RawMessage(output)},
			},
			Prompts: []*mcp.Prompt{
				{Name: name, Description: description, Arguments: []*mcp.PromptArgument{{Name: property, Description: input, Required: true}, {Name: name}}},
				{Name: property},
			},
		}
		source, err := gen.Generate(s, "")
		if err != nil {
			t.Fatal(err)
		}
		file := typeCheck(t, source)
		checkDeclarations(t, file)
		if again, err := gen.Generate(s, ""); err != nil || string(again) != string(source) {
			t.Fatalf("the second time, %v:\n%s\nThe first time:\n%s", err, again, source)
		}
		if formatted, err := format.Source(source); err != nil || string(formatted) != string(source) {
			t.Fatalf("not formatted, %v:\n%s", err, source)
		}
		checkTag(t, file, property)
	})
}

// checkDeclarations checks that a file declares only types, constants, functions and
// methods of Client, and has no comments with a meaning for tools.
func checkDeclarations(t *testing.T, file *ast.File) {
	t.Helper()
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			if d.Tok == token.VAR {
				t.Fatal("it declares a variable")
			}
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.Name != "New" && d.Name.Name != "Text" {
				t.Fatalf("it declares the function %s", d.Name.Name)
			}
		}
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if constraint.IsPlusBuild(c.Text) {
				t.Fatalf("it has the build constraint %q", c.Text)
			}
			if c.Text != "//" && !strings.HasPrefix(c.Text, "// ") && !strings.HasPrefix(c.Text, "//\t") {
				t.Fatalf("it has the comment %q", c.Text)
			}
		}
	}
	for _, i := range file.Imports {
		if path, _ := strconv.Unquote(i.Path.Value); stubs[path] == "" {
			t.Fatalf("it imports %s", path)
		}
	}
}

// checkTag checks that a field in the file has property as its JSON name.
func checkTag(t *testing.T, file *ast.File, property string) {
	t.Helper()
	property = string([]rune(property)) // JSON replaces invalid UTF-8 in the same way
	var names []string
	for node := range ast.Preorder(file) {
		field, ok := node.(*ast.Field)
		if !ok || field.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(field.Tag.Value)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(tag, ",embed") {
			continue
		}
		value := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "F", Type: reflect.TypeFor[string](), Tag: reflect.StructTag(tag)}}))
		value.Elem().Field(0).SetString("v")
		data, err := jsonschema.Marshal(value.Interface())
		if err != nil {
			t.Fatalf("the tag %s: %v", tag, err)
		}
		var object map[string]string
		if err := json.Unmarshal(data, &object); err != nil || len(object) != 1 {
			t.Fatalf("the tag %s encodes %s", tag, data)
		}
		for name := range object {
			names = append(names, name)
		}
	}
	if !slices.Contains(names, property) && property != "" && !strings.ContainsAny(property, ",'\\\"`") {
		t.Fatalf("no field is called %q in JSON, but %q", property, names)
	}
}
