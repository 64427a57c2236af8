// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gen_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/cmd/psi/internal/gen"
)

var comment = regexp.MustCompile(`(?m)^\s*//.*$`)

// TestFieldTypes checks the Go types of an optional argument and of an optional member of
// the output.
func TestFieldTypes(t *testing.T) {
	for schema, want := range map[string]struct{ in, out string }{
		`{"type":"string"}`:                      {"*string", "*string"},
		`{"type":"integer"}`:                     {"*int64", "*int64"},
		`{"type":"number"}`:                      {"*float64", "*float64"},
		`{"type":"boolean"}`:                     {"*bool", "*bool"},
		`{"type":["boolean","null"]}`:            {"*bool", "*bool"},
		`{"type":"null"}`:                        {"any", "json.RawMessage"},
		`{"type":["boolean","string"]}`:          {"any", "json.RawMessage"},
		`{}`:                                     {"any", "json.RawMessage"},
		`true`:                                   {"any", "json.RawMessage"},
		`{"type":"string","format":"date-time"}`: {"*time.Time", "*string"},
		`{"type":"string","format":"date-time","pattern":"Z"}`:             {"*string", "*string"},
		`{"type":"string","format":"date"}`:                                {"*string", "*string"},
		`{"type":"string","contentEncoding":"base64"}`:                     {"[]byte", "*string"},
		`{"type":"array"}`:                                                 {"[]any", "[]json.RawMessage"},
		`{"type":"array","items":{"type":"string"}}`:                       {"[]string", "[]string"},
		`{"type":"array","items":{"type":["string","null"]}}`:              {"[]*string", "[]*string"},
		`{"type":"array","prefixItems":[{}],"items":false}`:                {"[]any", "[]json.RawMessage"},
		`{"items":{"type":"integer"}}`:                                     {"[]int64", "[]int64"},
		`{"type":"object"}`:                                                {"map[string]any", "map[string]json.RawMessage"},
		`{"type":"object","additionalProperties":{"type":"integer"}}`:      {"map[string]int64", "map[string]int64"},
		`{"type":"object","properties":{"x":{}}}`:                          {"*TInputA", "*TOutputA"},
		`{"properties":{"x":{}}}`:                                          {"*TInputA", "*TOutputA"},
		`{"title":"My thing","properties":{"x":{}}}`:                       {"*TMyThing", "*TMyThing2"},
		`{"type":"string","enum":["a","b"]}`:                               {"*TInputA", "*TOutputA"},
		`{"oneOf":[{"const":"a"},{"const":"b"}]}`:                          {"*TInputA", "*TOutputA"},
		`{"enum":[1,2]}`:                                                   {"*int64", "*int64"},
		`{"enum":[1,2.5]}`:                                                 {"*float64", "*float64"},
		`{"enum":[1,"a"]}`:                                                 {"any", "json.RawMessage"},
		`{"const":true}`:                                                   {"*bool", "*bool"},
		`{"anyOf":[{"type":"string"},{"type":"null"}]}`:                    {"*string", "*string"},
		`{"anyOf":[{"type":"string"},{"type":"integer"}]}`:                 {"any", "json.RawMessage"},
		`{"allOf":[{"properties":{"x":{}}},{"$ref":"#/$defs/D"}]}`:         {"*TInputA", "*TOutputA"},
		`{"$ref":"#/$defs/D"}`:                                             {"*TD", "*TD2"},
		`{"$ref":"#/$defs/List"}`:                                          {"[]any", "[]json.RawMessage"}, // contains itself
		`{"$ref":"#"}`:                                                     {"*TInput", "*TOutput"},
		`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`:          {"any", "json.RawMessage"},
		`{"$dynamicRef":"#"}`:                                              {"any", "json.RawMessage"},
		`{"type":"array","items":{"type":"object","properties":{"x":{}}}}`: {"[]TInputAItem", "[]TOutputAItem"},
	} {
		t.Run(schema, func(t *testing.T) {
			whole := `{"type":"object","properties":{"a":` + schema + `},"$defs":{"D":{"type":"object","properties":{"y":{}}},"List":{"type":"array","items":{"$ref":"#/$defs/List"}}}}`
			source := comment.ReplaceAllString(one(t, whole, whole), "")
			contains(t, source, "type TInput struct { A "+want.in+" `json:\"a,omitzero\"` }", "type TOutput struct { A "+want.out+" `json:\"a,omitzero\"` }")
		})
	}
}

func TestRequiredFields(t *testing.T) {
	source := one(t, `{"type":"object","required":["a","b","c","d"],"properties":{
		"a":{"type":"string"},"b":{"type":["string","null"]},"c":{"type":"array","items":{}},"d":{"properties":{"x":{}}}}}`, "")
	contains(t, source, "A string `json:\"a\"`", "B *string `json:\"b\"`", "C []any `json:\"c\"`", "D TInputD `json:\"d\"`")
}

func TestStructsThatContainThemselves(t *testing.T) {
	source := one(t, `{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{
		"A":{"required":["b"],"properties":{"b":{"$ref":"#/$defs/B"}}},
		"B":{"required":["a"],"properties":{"a":{"$ref":"#/$defs/A"}}}}}`, "")
	contains(t, source, "type TInput struct { A TA `json:\"a\"` }", "type TA struct { B TB `json:\"b\"` }", "type TB struct { A *TA `json:\"a\"` }")
}

func TestRoots(t *testing.T) {
	for input, want := range map[string]string{
		`{"type":"object"}`:                                          "T(ctx context.Context) (",
		`{"type":"object","properties":{}}`:                          "T(ctx context.Context) (",
		`{"type":"object","additionalProperties":false}`:             "T(ctx context.Context) (",
		`{"type":"object","additionalProperties":true}`:              "T(ctx context.Context, in map[string]any) (",
		`{"type":"object","additionalProperties":{"type":"string"}}`: "T(ctx context.Context, in map[string]string) (",
		`{"type":"object","anyOf":[{"required":["a"]}]}`:             "T(ctx context.Context, in map[string]any) (",
		`{"type":"object","properties":{"a,b":{}}}`:                  "T(ctx context.Context, in map[string]any) (",
		`{"type":"object","allOf":[{"properties":{"a":{}}}]}`:        "T(ctx context.Context, in TInput) (",
		`{"$ref":"#/$defs/A","$defs":{"A":{"properties":{"a":{}}}}}`: "T(ctx context.Context, in TA) (",
		`{"type":"string"}`:                                          "T(ctx context.Context) (",
		`no schema`:                                                  "T(ctx context.Context, in map[string]any) (",
		`{"type":7}`:                                                 "T(ctx context.Context, in map[string]any) (",
	} {
		contains(t, one(t, input, ""), "func (c *Client) "+want)
	}
	for output, want := range map[string]string{
		`{"type":"array","items":{"type":"integer"}}`: "([]int64, error)",
		`{"type":"string"}`:                           "(string, error)",
		`{"type":["string","null"]}`:                  "(*string, error)",
		`{"enum":["a","b"]}`:                          "(TOutput, error)",
		`{"type":7}`:                                  "(json.RawMessage, error)",
	} {
		contains(t, one(t, `{"type":"object"}`, output), "func (c *Client) T(ctx context.Context) "+want)
	}
}

func TestNames(t *testing.T) {
	properties := map[string]string{
		"user_id": "UserID", "userId": "UserID2", "HTTPServer": "HTTPServer", "api-url": "APIURL", "ids": "IDs", "2fa": "X2fa",
		"名前": "X名前", "ünï": "Ünï", "$ref": "Ref", "type": "Type", "GET": "Get", "a b": "AB", "İ": "İ", "-": "X",
	}
	var members []string
	for _, name := range []string{"user_id", "userId", "HTTPServer", "api-url", "ids", "2fa", "名前", "ünï", "$ref", "type", "GET", "a b", "İ", "-"} {
		members = append(members, `"`+name+`":{"type":"boolean"}`)
	}
	source := one(t, `{"type":"object","properties":{`+strings.Join(members, ",")+`}}`, "")
	for name, field := range properties {
		contains(t, source, " "+field+" *bool `json:\""+name+",omitzero\"`")
	}
}

func TestNamesThatCollide(t *testing.T) {
	object := json.RawMessage(`{"type":"object","properties":{"a":{}}}`)
	source, err := gen.Generate(&gen.Server{
		Name: "My MCP Server!", Tools: []*mcp.Tool{
			{Name: "get-it", InputSchema: object}, {Name: "get_it", InputSchema: object}, nil,
			{Name: "client", InputSchema: object}, {Name: "", InputSchema: object}, {Name: "help-prompt", InputSchema: object},
		},
		Prompts: []*mcp.Prompt{{Name: "help"}, nil, {Name: "simple_prompt"}, {Name: "prompt"}},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	typeCheck(t, source)
	contains(t, string(source), "package my ",
		`GetIt(ctx context.Context, in GetItInput) (*mcp.CallToolResult, error) { return c.call(ctx, "get-it", in) }`,
		`GetIt2(ctx context.Context, in GetIt2Input) (*mcp.CallToolResult, error) { return c.call(ctx, "get_it", in) }`,
		`X(ctx context.Context, in XInput) (*mcp.CallToolResult, error) { return c.call(ctx, "", in) }`,
		"HelpPrompt(ctx context.Context, in HelpPromptInput)", "HelpPrompt2(ctx context.Context) (*mcp.GetPromptResult, error)",
		"SimplePrompt(ctx context.Context) (", "Prompt(ctx context.Context) (",
	)
}

func TestPackageNames(t *testing.T) {
	for server, want := range map[string]string{
		"Notes": "notes", "mcp-servers/everything": "serverseverything", "": "client", "名": "client", "1": "client", "func": "client",
		"secure-filesystem-server": "securefilesystem", "main": "client",
	} {
		source, err := gen.Generate(&gen.Server{Name: server}, "")
		if err != nil {
			t.Fatal(err)
		}
		contains(t, string(source), "package "+want+" ")
		typeCheck(t, source)
	}
	for _, bad := range []string{"Notes", "a-b", "func", "main", "_", "1", "a b", "é"} {
		if source, err := gen.Generate(&gen.Server{}, bad); err == nil {
			t.Errorf("generated the package %s:\n%s", bad, source)
		}
	}
}

func TestComments(t *testing.T) {
	long := strings.Repeat("word ", 40)
	source := one(t, `{"type":"object","properties":{"a":{"type":"string","default":"x","description":"`+long+`"},
		"b":{"enum":[1,2],"description":"A number."},"c":{"type":"string","description":"\u202e*/\n\n\n//go:embed x\u2028"}}}`, "")
	for line := range strings.Lines(source) {
		if strings.Contains(line, "word") && len(line) > 100 {
			t.Errorf("a long line: %s", line)
		}
	}
	contains(t, source, `word. // The default is "x". A *string`, "// A number. // It is one of 1, 2. B *int64", `// \u202e*/ // // //go:embed x C`)
}

// A build constraint in a description is escaped. Otherwise, it would be moved to the top
// of the file, which would then be ignored.
func TestBuildConstraintInDescription(t *testing.T) {
	source := one(t, `{"type":"object","description":"Finds.\n+build ignore","properties":{"a":{"description":" +build ignore"}}}`, "")
	if !strings.HasPrefix(source, "// Code generated by psi gen; DO NOT EDIT.\n\n// Package p") {
		t.Errorf("the file begins with %.100s", source)
	}
	contains(t, source, `// Finds. // \+build ignore`)
}

func TestNestedTypesHaveShortNames(t *testing.T) {
	object := func(properties string) string { return `{"type":"object","properties":{` + properties + `}}` }
	source := one(t, object(`"a":`+object(`"b":`+object(`"x":{}`)+`,"c":{"type":"array","items":`+object(`"b":`+object(`"y":{}`))+`}`)), "")
	contains(t, source, "B *TInputB `", "C []TInputCItem `", "type TInputCItem struct { B *TInputACItemB `")
}

// A schema that allows null allows it wherever it is referenced.
func TestNullableReferences(t *testing.T) {
	source := one(t, `{"type":"object","required":["a","b","c","d","e","f"],
		"properties":{"a":{"$ref":"#/$defs/E"},"b":{"$ref":"#/$defs/E"},"c":{"$ref":"#/$defs/O"},"d":{"$ref":"#/$defs/O"},"e":{"$ref":"#/$defs/C"},"f":{"$ref":"#/$defs/C"}},
		"$defs":{"E":{"enum":["x","y",null]},"O":{"type":["object","null"],"properties":{"x":{}}},"C":{"oneOf":[{"const":"x"},{"const":"y"},{"type":"null"}]}}}`, "")
	contains(t, source, "A *TE `json:\"a\"`", "B *TE `json:\"b\"`", "C *TO `json:\"c\"`", "D *TO `json:\"d\"`", "E *TC `json:\"e\"`", "F *TC `json:\"f\"`")
}
