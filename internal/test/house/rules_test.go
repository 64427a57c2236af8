// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package house_test

import (
	"go/ast"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// rule is a rule of the repository. In its examples, it must find exactly the lines that
// contain the word WRONG.
type rule struct {
	name     string
	advice   string
	find     func([]source) []finding
	examples map[string]string
}

const (
	header = "// Copyright 2026 The psi Authors.\n// SPDX-License-Identifier: MIT\n\n"

	maxFunctionLines = 80
	maxFileLines     = 500
	maxExampleLines  = 150
)

var rules = []rule{
	{
		name:   "header",
		advice: "begin every Go file with the two lines of the copyright header and a blank line",
		find:   eachFile(wrongHeader),
		examples: map[string]string{
			"a/a.go": header + "package a\n",
			"a/b.go": "package a // WRONG\n",
			"a/c.go": "// Copyright 2026 WRONG\n// SPDX-License-Identifier: MIT\n\npackage a\n",
			"e/e.go": "// WRONG\npackage e\n",
		},
	},
	{
		name:   "package comment",
		advice: "give a package one comment, in doc.go, or in main.go if it is a program",
		find:   wrongPackageComments,
		examples: map[string]string{
			"a/doc.go":    "// Package a is right.\npackage a\n",
			"a/a_test.go": "// WRONG\npackage a_test\n",
			"b/b.go":      "// Package b: WRONG\npackage b\n",
			"c/c.go":      "package c // WRONG: there is no comment\n",
			"d/main.go":   "// Command d is right.\npackage main\n",
			"e/doc.go":    "// Package e is right.\npackage e\n",
			"e/e.go":      "// Package e again: WRONG\npackage e\n",
		},
	},
	{
		name:   "import directions",
		advice: "move what both need down to a package that both may import, or take an interface",
		find:   eachFile(wrongImports),
		examples: map[string]string{
			"mcp/a.go":                 imports("mcphttp WRONG", "mcpstdio WRONG", "middleware WRONG", "jsonschema", "internal/seal"),
			"mcp/tasks/a.go":           imports("mcphttp/auth WRONG", "mcp/store"),
			"mcp/mcptest/a.go":         imports("mcphttp", "mcpstdio", "middleware WRONG"),
			"mcp/config/a.go":          imports("mcphttp", "mcpstdio", "middleware WRONG"),
			"mcp/cmd/psi/a.go":         imports("mcphttp", "mcpstdio", "middleware", "mcp/config"),
			"mcphttp/a.go":             imports("mcp", "mcpstdio WRONG", "middleware WRONG"),
			"mcphttp/a_test.go":        imports("middleware"),
			"mcpstdio/a.go":            imports("mcp", "mcphttp WRONG", "middleware WRONG"),
			"middleware/a.go":          imports("mcp", "mcp/store", "internal/seal", "mcphttp WRONG", "jsonschema WRONG"),
			"jsonschema/a.go":          imports("internal/jsonscan", "mcp WRONG"),
			"internal/seal/a.go":       imports("internal/jsonscan", "jsonschema WRONG", "internal/test/house WRONG"),
			"internal/test/house/a.go": imports("mcp"),
			"examples/a/main.go":       imports("mcp", "mcphttp", "middleware"),
		},
	},
	{
		name:   "older revisions",
		advice: "move it to a file or a package whose name begins with legacy, all of which go with the older revisions",
		find:   eachFile(wrongLegacyImports),
		examples: map[string]string{
			"mcp/a.go":                    imports("internal/revision WRONG", "internal/legacyclient WRONG"),
			"mcp/a_test.go":               imports("internal/revision"),
			"mcp/legacy_a.go":             imports("internal/revision", "internal/legacyclient"),
			"mcpstdio/a.go":               imports("internal/legacyclient WRONG", "internal/server"),
			"mcphttp/a.go":                imports("internal/revision WRONG"),
			"internal/server/a.go":        imports("internal/revision WRONG"),
			"internal/server/legacy_a.go": imports("internal/revision"),
		},
	},
	{
		name:   "sleeping tests",
		advice: "wait for what you wait for; for time itself use testing/synctest and receive from time.After",
		find:   eachFile(sleeps),
		examples: map[string]string{
			"a/a_test.go": "package a\nimport \"time\"\nfunc f() {\n\ttime.Sleep(1) // WRONG\n}\n",
			"a/b_test.go": "package a\nimport clock \"time\"\nfunc g() {\n\tclock.Sleep(1) // WRONG\n}\n",
			"a/a.go":      "package a\nimport \"time\"\nfunc h() {\n\ttime.Sleep(1)\n}\n",
		},
	},
	{
		name:   "protocol versions",
		advice: "use mcp.LatestVersion, mcp.LegacyVersions or internal/revision; only the files that translate eras tell versions apart",
		find:   eachFile(versions),
		examples: map[string]string{
			"mcp/revision.go":                "package mcp\nconst v = \"2025-11-25\"\n",
			"mcp/a.go":                       "package mcp\nconst v = \"2025-11-25\" // WRONG\nconst w = `2024-11-05` // WRONG\nconst x = \"2025-11-26\"\n",
			"mcp/a_test.go":                  "package mcp\nconst v = \"2025-11-25\"\n",
			"examples/a/main.go":             "package main\nconst v = \"2025-11-25\"\n",
			"internal/test/conformance/a.go": "package conformance\nconst v = \"2025-11-25\"\n",
		},
	},
	{
		name:   "embedded members",
		advice: `write json:",inline,embed": the JSON package of GOEXPERIMENT=jsonv2 in Go 1.26 knows only inline, and ignores embed in silence`,
		find:   eachFile(halfEmbedded),
		examples: map[string]string{
			"a/a.go":      "package a\ntype a struct {\n\tA X `json:\",embed\"` // WRONG\n\tB X `json:\",inline,embed\"`\n\tC X\n}\n",
			"a/b.go":      "package a\ntype b struct {\n\tA X `json:\",inline\"` // WRONG\n\tB X `json:\"embed\"`\n\tC X `yaml:\",inline\"`\n}\n",
			"a/a_test.go": "package a\ntype c struct {\n\tA X `json:\",omitzero,embed\"` // WRONG\n}\n",
		},
	},
	{
		name:   "long functions",
		advice: "split it where it changes the subject; " + strconv.Itoa(maxFunctionLines) + " lines are the most",
		find:   eachFile(longFunctions),
		examples: map[string]string{
			"a/a.go":      "package a\nfunc f() { // WRONG\n" + strings.Repeat("\n", maxFunctionLines-1) + "}\n",
			"a/b.go":      "package a\nfunc g() {\n" + strings.Repeat("\n", maxFunctionLines-2) + "}\n",
			"a/a_test.go": "package a\nfunc h() {\n" + strings.Repeat("\n", maxFunctionLines) + "}\n",
		},
	},
	{
		name:   "long files",
		advice: "split it into files named after one idea each; " + strconv.Itoa(maxFileLines) + " lines are the most, " + strconv.Itoa(maxExampleLines) + " below examples",
		find:   eachFile(longFiles),
		examples: map[string]string{
			"examples/a/main.go":      "package main // WRONG\n" + strings.Repeat("\n", maxExampleLines),
			"examples/a/main_test.go": "package main\n" + strings.Repeat("\n", maxExampleLines),
			"examples/b/main.go":      "package main\n" + strings.Repeat("\n", maxExampleLines-1),

			"a/a.go":      "package a // WRONG\n" + strings.Repeat("\n", maxFileLines),
			"a/b.go":      "package a\n" + strings.Repeat("\n", maxFileLines-1),
			"a/a_test.go": "package a\n" + strings.Repeat("\n", maxFileLines),
		},
	},
	{
		name:   "examples",
		advice: "write an Example that shows how it is used",
		find:   missingExamples,
		examples: map[string]string{
			"a/a.go": "package a\nfunc NewA() {}\nfunc NewB() {} // WRONG\nfunc newC() {}\nfunc Serve() {} // WRONG\nfunc (x T) NewD() {}\n",
			"a/b.go": "package a\nfunc Log() mcp.Middleware { return nil } // WRONG\nfunc CORS() func(http.Handler) http.Handler { return nil } // WRONG\n",
			"a/c.go": "package a\nfunc Trace() Middleware { return nil }\nfunc Wrap(h mcp.Handler) mcp.Handler { return h }\n",
			"a/a_test.go": "package a_test\nfunc ExampleTrace() { h := a.Trace(); _ = func() { a.NewA() } }\n" +
				"func TestB(t *testing.T) { a.NewB() }\nfunc Example() { b.Serve() }\n",
			"d/d.go":               "package d\nfunc NewD() {}\n",
			"d/example_d_test.go":  "package d_test\nfunc help() { d.NewD() }\n",
			"internal/b/b.go":      "package b\nfunc NewB() {}\n",
			"examples/c/server.go": "package main\nfunc NewC() {}\n",
		},
	},
}

// eachFile turns a rule for single files into a rule for the tree.
func eachFile(find func(source) []finding) func([]source) []finding {
	return func(tree []source) []finding {
		var all []finding
		for _, s := range tree {
			all = append(all, find(s)...)
		}
		return all
	}
}

func wrongHeader(s source) []finding {
	if strings.HasPrefix(s.text, header) {
		return nil
	}
	return []finding{{s.path, 1, "the file does not begin with the header"}}
}

func wrongPackageComments(tree []source) []finding {
	var found []finding
	first := map[string]source{} // first non-test file of each directory
	commented := map[string]bool{}
	for _, s := range tree {
		if _, seen := first[s.dir()]; !seen && !s.isTest() {
			first[s.dir()] = s
		}
		if s.file.Doc == nil {
			continue
		}
		commented[s.dir()] = commented[s.dir()] || !s.isTest()
		home := s.dir() + "/doc.go"
		if s.file.Name.Name == "main" {
			home = s.dir() + "/main.go"
		}
		if s.path != home {
			found = append(found, s.at(s.file.Doc, "comment on package %s outside %s", s.file.Name.Name, home))
		}
	}
	for _, s := range tree {
		if first[s.dir()].path == s.path && !commented[s.dir()] {
			found = append(found, s.at(s.file.Name, "package %s has no comment", s.file.Name.Name))
		}
	}
	return found
}

func sleeps(s source) []finding {
	if !s.isTest() {
		return nil
	}
	name := ""
	for _, spec := range s.file.Imports {
		if spec.Path.Value == `"time"` {
			name = "time"
			if spec.Name != nil {
				name = spec.Name.Name
			}
		}
	}
	var found []finding
	for node := range ast.Preorder(s.file) {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok || selector.Sel.Name != "Sleep" {
			continue
		}
		if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == name {
			found = append(found, s.at(node, "time.Sleep in a test"))
		}
	}
	return found
}

var protocolVersions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

func versions(s source) []finding {
	if s.isTest() || s.path == "mcp/revision.go" || s.path == "internal/revision/revision.go" || below(s.dir(), "examples") || below(s.dir(), "internal/test/conformance") {
		return nil
	}
	var found []finding
	for node := range ast.Preorder(s.file) {
		literal, ok := node.(*ast.BasicLit)
		if !ok {
			continue
		}
		text, err := strconv.Unquote(literal.Value)
		if err == nil && slices.Contains(protocolVersions, text) {
			found = append(found, s.at(node, "protocol version %s written out", text))
		}
	}
	return found
}

// halfEmbedded finds json tags that embed a field for one of the two JSON packages only.
func halfEmbedded(s source) []finding {
	var found []finding
	for node := range ast.Preorder(s.file) {
		field, ok := node.(*ast.Field)
		if !ok || field.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(field.Tag.Value)
		if err != nil {
			continue
		}
		_, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		list := strings.Split(options, ",")
		if slices.Contains(list, "embed") != slices.Contains(list, "inline") {
			found = append(found, s.at(field.Tag, "the options of %s", field.Tag.Value))
		}
	}
	return found
}

func longFunctions(s source) []finding {
	if s.isTest() {
		return nil
	}
	var found []finding
	for _, decl := range s.file.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		lines := s.lines.Line(function.End()) - s.lines.Line(function.Pos()) + 1
		if lines > maxFunctionLines {
			found = append(found, s.at(function, "function %s has %d lines", function.Name.Name, lines))
		}
	}
	return found
}

func longFiles(s source) []finding {
	lines, most := strings.Count(s.text, "\n"), maxFileLines
	if below(s.dir(), "examples") {
		most = maxExampleLines
	}
	if s.isTest() || lines <= most {
		return nil
	}
	return []finding{{s.path, 1, "the file has " + strconv.Itoa(lines) + " lines"}}
}
