// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package lint_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/lint"
	"github.com/go-psi/psi/mcp"
)

// tool returns a tool without findings, modified by edit.
func tool(edit func(t *mcp.Tool)) *mcp.Tool {
	t := &mcp.Tool{
		Name: "search", Description: "Search the notes.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"words to find"}},"required":["query"]}`),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true)},
	}
	edit(t)
	return t
}

func named(name string) *mcp.Tool { return tool(func(t *mcp.Tool) { t.Name = name }) }

// input returns a tool with the given properties in its input schema.
func input(properties string) *mcp.Tool {
	return tool(func(t *mcp.Tool) {
		t.InputSchema = json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)
	})
}

// brief returns the parts of findings that tests compare.
func brief(found []lint.Finding) []string {
	var list []string
	for _, f := range found {
		list = append(list, fmt.Sprintf("%s %s %s", f.Severity, f.Rule, f.Pointer))
	}
	return list
}

func check(t *testing.T, found []lint.Finding, want ...string) {
	t.Helper()
	if got := brief(found); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	for _, f := range found {
		if f.Message == "" || f.Advice == "" || f.Kind == "" {
			t.Errorf("%+v does not say what is wrong, where and what to do", f)
		}
	}
}

func TestToolNames(t *testing.T) {
	long := strings.Repeat("n", 61)
	for _, test := range []struct {
		name, prefix string
		want         []string
	}{
		{name: "aZ0_-"},
		{name: "_a"},
		{name: strings.Repeat("n", 60)},
		{name: "", want: []string{"error tool-name /name"}},
		{name: "a.b", want: []string{"error tool-name /name"}},
		{name: "ä", want: []string{"error tool-name /name"}},
		{name: "1a", want: []string{"warning tool-name /name"}},
		{name: "1a", prefix: "x_"},
		{name: long, want: []string{"warning tool-name /name"}},
		{name: long + "nnn", want: []string{"warning tool-name /name"}},
		{name: long + "nnnn", want: []string{"error tool-name /name"}},
		{name: long, prefix: "git_", want: []string{"error tool-name /name"}},
	} {
		t.Run(test.prefix+test.name, func(t *testing.T) {
			check(t, lint.Tools([]*mcp.Tool{named(test.name)}, test.prefix), test.want...)
		})
	}
}

func TestToolNamesThatCollide(t *testing.T) {
	check(t, lint.Tools([]*mcp.Tool{named("a"), nil, named("a")}, ""), "error tool-name-twice /name")
	check(t, lint.Tools([]*mcp.Tool{named("a_b"), named("a.b")}, ""), "error tool-name /name", "warning tool-name-twice /name")
	check(t, lint.Tools([]*mcp.Tool{named("a"), named("A")}, ""))
}

func TestToolCount(t *testing.T) {
	var tools []*mcp.Tool
	for i := range 128 {
		tools = append(tools, named(fmt.Sprintf("t%d", i)))
	}
	check(t, lint.Tools(tools, ""))
	check(t, lint.Tools(append(tools, named("last")), ""), "warning tool-count ")
}

func TestToolTexts(t *testing.T) {
	describe := func(text string) *mcp.Tool { return tool(func(t *mcp.Tool) { t.Description = text }) }
	for name, test := range map[string]struct {
		tool *mcp.Tool
		want []string
	}{
		"none":           {describe(" \n"), []string{"warning description-missing /description"}},
		"of 1024":        {describe(strings.Repeat("ü", 1024)), nil},
		"of 1025":        {describe(strings.Repeat("ü", 1025)), []string{"warning description-long /description"}},
		"of 2049":        {describe(strings.Repeat("ü", 2049)), []string{"warning description-long /description"}},
		"emoji":          {describe("a family 👩‍👧, two\n\tlines"), nil},
		"tag characters": {describe("harmless\U000e0041"), []string{"error hidden-text /description"}},
		"escapes":        {describe("\x1b[8mhidden"), []string{"error hidden-text /description"}},
		"reordered":      {describe("\u202eevil"), []string{"error hidden-text /description"}},
		"title":          {tool(func(t *mcp.Tool) { t.Title = "\x07" }), []string{"error hidden-text /title"}},
		"argument":       {input(`"a":{"type":"string","description":"\u202e"}`), []string{"error hidden-text /inputSchema/properties/a/description"}},
		"no description": {input(`"a/b":{"type":"string"}`), []string{"error property-name /inputSchema/properties/a~1b", "note argument-description /inputSchema/properties/a~1b"}},
	} {
		t.Run(name, func(t *testing.T) { check(t, lint.Tools([]*mcp.Tool{test.tool}, ""), test.want...) })
	}
}

func TestAnnotations(t *testing.T) {
	for name, test := range map[string]struct {
		annotations *mcp.ToolAnnotations
		want        []string
	}{
		"none":          {nil, []string{"note read-only-hint /annotations"}},
		"empty":         {&mcp.ToolAnnotations{}, []string{"note read-only-hint /annotations"}},
		"writes":        {&mcp.ToolAnnotations{ReadOnlyHint: new(false), DestructiveHint: new(true)}, nil},
		"contradiction": {&mcp.ToolAnnotations{ReadOnlyHint: new(true), DestructiveHint: new(true)}, []string{"warning contradicting-hints /annotations/destructiveHint"}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, lint.Tools([]*mcp.Tool{tool(func(t *mcp.Tool) { t.Annotations = test.annotations })}, ""), test.want...)
		})
	}
}

func TestInputSchemas(t *testing.T) {
	schema := func(raw string) *mcp.Tool {
		return tool(func(t *mcp.Tool) { t.InputSchema = json.RawMessage(raw) })
	}
	const text = `"description":"d"`
	for name, test := range map[string]struct {
		tool *mcp.Tool
		want []string
	}{
		"none":           {schema(``), []string{"error input-schema-missing /inputSchema"}},
		"no JSON":        {schema(`{`), []string{"error invalid /inputSchema"}},
		"no schema":      {schema(`{"type":7}`), []string{"error invalid /inputSchema"}},
		"no object":      {schema(`{"type":"array","items":{"type":"string"}}`), []string{"error root-object /inputSchema"}},
		"no properties":  {schema(`{"type":"object"}`), []string{"error object-properties /inputSchema"}},
		"nested":         {input(`"a":{"type":"object",` + text + `}`), []string{"warning object-properties /inputSchema/properties/a"}},
		"root anyOf":     {schema(`{"type":"object","properties":{},"anyOf":[{"required":[]}]}`), []string{"error root-combinator /inputSchema/anyOf", "warning untyped /inputSchema/anyOf/0"}},
		"elsewhere":      {input(`"a":{"$ref":"https://json-schema.org/draft/2020-12/schema",` + text + `}`), []string{"error reference-place /inputSchema/properties/a/$ref"}},
		"lookahead":      {input(`"a":{"type":"string","pattern":"(?=x)",` + text + `}`), []string{"warning regexp /inputSchema/properties/a/pattern"}},
		"oneOf":          {input(`"a":{"oneOf":[{"type":"string"}],` + text + `}`), []string{"warning unsupported-keyword /inputSchema/properties/a/oneOf"}},
		"keyword's name": {input(`"oneOf":{"type":"string",` + text + `}`), nil},
		"format":         {input(`"a":{"type":"string","format":"uri",` + text + `},"b":{"type":"string","format":"date-time",` + text + `}`), []string{"note format /inputSchema/properties/a/format"}},
		"numbers":        {input(`"a":{"type":"integer","enum":[1],` + text + `}`), []string{"warning enum-value /inputSchema/properties/a/enum"}},
		"empty string":   {input(`"a":{"type":"string","enum":[""],` + text + `}`), []string{"warning enum-value /inputSchema/properties/a/enum"}},
	} {
		t.Run(name, func(t *testing.T) { check(t, lint.Tools([]*mcp.Tool{test.tool}, ""), test.want...) })
	}
}

// A model also reads what a reference to an unusual place names.
func TestFindingR1HiddenTextBehindAnyReference(t *testing.T) {
	found := lint.Tools([]*mcp.Tool{tool(func(t *mcp.Tool) {
		t.InputSchema = json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/components/schemas/A","description":"d"}},
			"components":{"schemas":{"A":{"type":"string","description":"\u202e"}}}}`)
	})}, "")
	check(t, found, "error reference-place /inputSchema/properties/a/$ref", "error hidden-text /inputSchema/components/schemas/A/description")
}

// Gemini refuses a whole request for a keyword that its Schema does not have.
func TestFindingR17KeywordsThatGeminiRefuses(t *testing.T) {
	const at = "warning unsupported-keyword /inputSchema/properties/a/"
	for properties, want := range map[string]string{
		`"type":"integer","exclusiveMinimum":0`:                                      at + "exclusiveMinimum",
		`"type":"number","exclusiveMaximum":1`:                                       at + "exclusiveMaximum",
		`"type":"integer","multipleOf":5`:                                            at + "multipleOf",
		`"type":"string","const":"x"`:                                                at + "const",
		`"type":"array","items":{"type":"string"},"uniqueItems":true`:                at + "uniqueItems",
		`"type":"array","items":{"type":"string"},"prefixItems":[{"type":"string"}]`: at + "prefixItems",
		`"type":"array","items":{"type":"string"},"enum":[["x"]]`:                    "warning enum-value /inputSchema/properties/a/enum",
	} {
		found := lint.Tools([]*mcp.Tool{input(`"a":{"description":"d",` + properties + `}`)}, "")
		check(t, found, want)
		if len(found) == 1 && !slices.Equal(found[0].Clients, []string{"Gemini"}) {
			t.Errorf("%s: the clients are %q", properties, found[0].Clients)
		}
	}
}

// An input schema with several types for an argument is refused by some clients. In an
// output schema, it is not.
func TestFindingR24ArgumentsWithSeveralTypes(t *testing.T) {
	const warning = "warning several-types /inputSchema/properties/a"
	for properties, want := range map[string][]string{
		`"type":["string","null"]`: {warning + "/type"},
		`"type":["string"]`:        nil,
		`"type":"array","items":{"type":["object","null"],"properties":{}}`: {warning + "/items/type"},
		`"anyOf":[{"type":"string"},{"type":"null"}]`:                       {warning + "/anyOf"},
		`"anyOf":[{"type":"string"},{"type":"integer"}]`:                    nil,
	} {
		check(t, lint.Tools([]*mcp.Tool{input(`"a":{"description":"d",` + properties + `}`)}, ""), want...)
	}
}

func TestClients(t *testing.T) {
	found := lint.Tools([]*mcp.Tool{input(`"a":{"description":"any"}`)}, "")
	if len(found) != 1 || !slices.Equal(found[0].Clients, []string{"Anthropic"}) {
		t.Errorf("found %+v, want a finding of Anthropic", found)
	}
	found = lint.Tools([]*mcp.Tool{tool(func(t *mcp.Tool) { t.InputSchema = json.RawMessage(`{}`) })}, "")
	if len(found) == 0 || found[0].Clients != nil {
		t.Errorf("found %+v, want a finding of everyone", found)
	}
}

func TestSizes(t *testing.T) {
	const warning = "warning schema-size /inputSchema"
	nested := func(n int) string {
		return strings.Repeat(`"a":{"type":"object","description":"d","properties":{`, n) + strings.Repeat(`}}`, n)
	}
	values := func(n, length int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("%q", fmt.Sprintf("%0*d", length, i)))
		}
		return `"type":"string","description":"d","enum":[` + strings.Join(list, ",") + `]`
	}
	for name, test := range map[string]struct {
		properties string
		want       []string
	}{
		"depth 10":         {nested(9), nil},
		"depth 11":         {nested(10), []string{warning}},
		"1000 values":      {`"a":{` + values(1000, 4) + `}`, nil},
		"1001 values":      {`"a":{` + values(1001, 4) + `}`, []string{warning}},
		"250 long values":  {`"a":{` + values(250, 100) + `}`, nil},
		"251 long values":  {`"a":{` + values(251, 60) + `}`, []string{warning + "/properties/a/enum"}},
		"long enum values": {`"a":{` + values(200, 700) + `}`, []string{warning}},
	} {
		t.Run(name, func(t *testing.T) { check(t, lint.Tools([]*mcp.Tool{input(test.properties)}, ""), test.want...) })
	}
}

func TestOutputSchemas(t *testing.T) {
	output := func(raw string) *mcp.Tool {
		return tool(func(t *mcp.Tool) { t.OutputSchema = json.RawMessage(raw) })
	}
	for name, test := range map[string]struct {
		tool *mcp.Tool
		want []string
	}{
		"object":   {output(`{"type":"object"}`), nil},
		"array":    {output(`{"type":"array"}`), []string{"warning output-root-object /outputSchema"}},
		"invalid":  {output(`{"type":"text"}`), []string{"error invalid /outputSchema"}},
		"nullable": {output(`{"type":"object","properties":{"a":{"type":["string","null"]}}}`), []string{"note nullable /outputSchema/properties/a/type"}},
		"hidden":   {output(`{"type":"object","title":"\u202e"}`), []string{"error hidden-text /outputSchema/title"}},
	} {
		t.Run(name, func(t *testing.T) { check(t, lint.Tools([]*mcp.Tool{test.tool}, ""), test.want...) })
	}
}

func TestInferredSchemasAreAccepted(t *testing.T) {
	type in struct {
		Query string   `json:"query" jsonschema:"description=words to find"`
		Tags  []string `json:"tags,omitempty" jsonschema:"description=only these"`
	}
	mux := mcp.NewMux("notes", "v1", nil)
	mux.Tool("search", mcp.ToolFunc(func(_ context.Context, in in) (in, error) { return in, nil }, &mcp.Tool{
		Description: "Search the notes.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true)},
	}))
	list, err := mcp.NewRequest(mcp.MethodListTools, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := mux.ServeMCP(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	check(t, lint.Tools(res.(*mcp.ListToolsResult).Tools, ""))
}

func TestPrompts(t *testing.T) {
	good := &mcp.Prompt{Name: "review", Description: "Review code.", Arguments: []*mcp.PromptArgument{{Name: "code", Description: "what to review"}}}
	check(t, lint.Prompts([]*mcp.Prompt{nil, good}))
	check(t, lint.Prompts([]*mcp.Prompt{good, good}), "error twice /name")
	check(t, lint.Prompts([]*mcp.Prompt{{Name: "a b", Arguments: []*mcp.PromptArgument{{Name: "x", Title: "\x1b"}, nil, {Name: "x"}, {}}}}),
		"error hidden-text /arguments/0/title", "error twice /arguments/2/name", "error missing /arguments/3/name",
		"note prompt-name /name", "note description-missing /description",
		"note description-missing /arguments/0/description", "note description-missing /arguments/2/description", "note description-missing /arguments/3/description")
}

func TestResources(t *testing.T) {
	good := &mcp.Resource{URI: "notes://1", Name: "first", Description: "The first note.", MIMEType: "text/plain"}
	template := &mcp.ResourceTemplate{URITemplate: "notes://{id}", Name: "note", Description: "A note."}
	check(t, lint.Resources([]*mcp.Resource{nil, good}, []*mcp.ResourceTemplate{nil, template}))
	check(t, lint.Resources([]*mcp.Resource{{URI: "notes/1", Name: "first", Description: "d"}, good, good}, nil),
		"error resource-uri /uri", "note mime-type /mimeType", "error twice /uri")
	check(t, lint.Resources(nil, []*mcp.ResourceTemplate{{URITemplate: "notes://{id", Description: "d"}, template, template}),
		"error resource-uri /uriTemplate", "error missing /name", "error twice /uriTemplate")
	check(t, lint.Resources([]*mcp.Resource{{}}, nil), "error missing /uri", "error missing /name", "note description-missing /description", "note mime-type /mimeType")
}

func TestInstructions(t *testing.T) {
	check(t, lint.Instructions(strings.Repeat("i", 2048)))
	check(t, lint.Instructions(strings.Repeat("i", 2049)), "warning instructions-long /instructions")
	check(t, lint.Instructions("\u2066"), "error hidden-text /instructions")
}

func TestFindingIsOneSafeLine(t *testing.T) {
	found := lint.Tools([]*mcp.Tool{named("a\x1b]0;title\x07\n")}, "")
	const want = `error: tool "a\x1b]0;title\a\n" at /name: the name has '\x1b'; only A-Z, a-z, 0-9, '_' and '-' are accepted (Anthropic, OpenAI); rename the tool [tool-name]`
	if got := found[0].String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	raw := lint.Finding{Severity: lint.Note, Kind: lint.KindServer, Message: "m\x1b", Advice: "a", Rule: "r"}
	if got := raw.String(); got != `note: server: m\x1b; a [r]` {
		t.Errorf("got %s", got)
	}
}
