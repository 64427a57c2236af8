// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package house_test

import (
	"go/ast"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestOptionsAreShown checks that an example sets each field of an options struct, or that a
// page says when to set it, and that the pages name no other fields.
func TestOptionsAreShown(t *testing.T) {
	for _, finding := range checkOptions(t, os.DirFS(root(t))) {
		t.Error(finding)
	}
}

// TestCheckOptions checks that checkOptions finds the fields that are not shown.
func TestCheckOptions(t *testing.T) {
	const options = "package a\ntype Options struct {\n\tOne, Two int\n\tThree int\n\tFour int\n\tFive int\n\tsix int\n}\ntype ReadOptions struct { Seven int; Eight int }\n"
	got := checkOptions(t, fstest.MapFS{
		"b/a/a.go":           {Data: []byte(options)},
		"b/a/a_test.go":      {Data: []byte("package a_test\nfunc Example() { a.New(&a.Options{One: 1}) }\nfunc TestX() { a.New(&a.Options{Five: 1}) }\n")},
		"examples/x/main.go": {Data: []byte("package main\nvar _ = a.New(&a.Options{Two: 1})\n")},
		"docs/a.md":          {Data: []byte("Set `a.Options.Three`, or `ReadOptions.Seven`. `Options.Eight` is a mistake, and `a.Options.Nine` and `a.ReadOptions.Two` are.\n")},
		"docs/guide/b.md":    {Data: []byte("```go\na.New(&a.Options{\n\tFour: []int{1},\n})\n```\n")},
	})
	want := []string{
		"a.Options.Five is in no example, and no page says when to set it",
		"a.ReadOptions.Eight is in no example, and no page says when to set it",
		"docs/a.md: there is no a.Options.Nine",
		"docs/a.md: there is no a.ReadOptions.Two",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// optionsField matches the name of a field in text. The name of the package may be omitted
// unless the struct is named Options, as many are.
var optionsField = regexp.MustCompile(`\b(?:[a-z]+\.)?[A-Z]\w*Options\.[A-Z]\w*|\b[a-z]+\.Options\.[A-Z]\w*`)

// optionsLiteral matches the beginning of a composite literal of options in Go code.
var optionsLiteral = regexp.MustCompile(`\b([a-z]+)\.(\w*Options)\{`)

// checkOptions returns the fields of exported options that are not shown, and those that a
// page names and that do not exist.
func checkOptions(t *testing.T, files fs.FS) (findings []string) {
	t.Helper()
	tree, err := readTree(files)
	if err != nil {
		t.Fatal(err)
	}
	fields := optionFields(tree)
	shown := map[string]bool{}
	for _, s := range tree {
		isExample := strings.HasPrefix(s.path, "examples/") || strings.HasPrefix(path.Base(s.path), "example_")
		for _, d := range s.file.Decls {
			if fn, ok := d.(*ast.FuncDecl); isExample || ok && s.isTest() && strings.HasPrefix(fn.Name.Name, "Example") {
				markFields(shown, d)
			}
		}
	}
	var wrong []string
	for name, text := range pages(t, files) {
		for _, field := range optionsField.FindAllString(text, -1) {
			i := slices.IndexFunc(fields, func(f string) bool { return strings.HasSuffix("."+f, "."+field) })
			if i < 0 {
				wrong = append(wrong, name+": there is no "+field)
				continue
			}
			shown[fields[i]] = true
		}
		for _, at := range optionsLiteral.FindAllStringSubmatchIndex(text, -1) {
			markText(shown, text[at[2]:at[3]]+"."+text[at[4]:at[5]], text[at[1]:])
		}
	}
	for _, f := range fields {
		if !shown[f] {
			findings = append(findings, f+" is in no example, and no page says when to set it")
		}
	}
	slices.Sort(findings)
	slices.Sort(wrong)
	return append(findings, wrong...)
}

// optionFields returns the fields of the options structs of all packages for users, as
// "package.Struct.Field".
func optionFields(tree []source) (fields []string) {
	for _, s := range tree {
		if s.isTest() || s.file.Name.Name == "main" || strings.Contains("/"+s.dir()+"/", "/internal/") || strings.HasPrefix(s.path, "examples/") {
			continue
		}
		for node := range ast.Preorder(s.file) {
			spec, ok := node.(*ast.TypeSpec)
			if !ok || !strings.HasSuffix(spec.Name.Name, "Options") || !spec.Name.IsExported() {
				continue
			}
			if st, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range st.Fields.List {
					for _, name := range f.Names {
						if name.IsExported() {
							fields = append(fields, s.file.Name.Name+"."+spec.Name.Name+"."+name.Name)
						}
					}
				}
			}
		}
	}
	return fields
}

// markFields marks the fields of options that Go code sets in composite literals.
func markFields(shown map[string]bool, code ast.Node) {
	for node := range ast.Preorder(code) {
		lit, ok := node.(*ast.CompositeLit)
		if !ok {
			continue
		}
		typ, ok := lit.Type.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		pkg, ok := typ.X.(*ast.Ident)
		for _, e := range lit.Elts {
			if pair, isPair := e.(*ast.KeyValueExpr); ok && isPair {
				if key, isName := pair.Key.(*ast.Ident); isName {
					shown[pkg.Name+"."+typ.Sel.Name+"."+key.Name] = true
				}
			}
		}
	}
}

// fieldKey matches the key of a field in a composite literal.
var fieldKey = regexp.MustCompile(`(?:^|[,\s])([A-Z]\w*):`)

// markText marks the fields of a composite literal in text, which begins after its brace.
func markText(shown map[string]bool, name, text string) {
	var own strings.Builder // without what is in inner brackets
	depth := 1
	for _, r := range text {
		switch r {
		case '{', '(':
			depth++
		case '}', ')':
			depth--
		}
		if depth == 0 {
			break
		}
		if depth == 1 {
			own.WriteRune(r)
		}
	}
	for _, m := range fieldKey.FindAllStringSubmatch(own.String(), -1) {
		shown[name+"."+m[1]] = true
	}
}

// pages returns the text of the pages for users, by name.
func pages(t *testing.T, files fs.FS) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/guide/*.md"} {
		names, err := fs.Glob(files, pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := fs.ReadFile(files, name)
			if err != nil {
				t.Fatal(err)
			}
			if name != "docs/decisions.md" && name != "docs/architecture.md" { // for readers of the code
				all[name] = string(text)
			}
		}
	}
	return all
}
