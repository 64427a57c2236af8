// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// docs is the documentation of a package.
type docs struct {
	*doc.Package

	set *token.FileSet
}

// load parses the package in a directory.
func (r *repository) load(dir string) (*docs, error) {
	if p := r.packages[dir]; p != nil {
		return p, nil
	}
	found, err := build.Default.ImportDir(filepath.Join(r.dir, dir), 0)
	if err != nil {
		return nil, err
	}
	p := &docs{set: token.NewFileSet()}
	var files []*ast.File
	for _, name := range found.GoFiles {
		f, err := parser.ParseFile(p.set, filepath.Join(r.dir, dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if p.Package, err = doc.NewFromFiles(p.set, files, "github.com/go-psi/psi/"+dir); err != nil {
		return nil, err
	}
	r.packages[dir] = p
	return p, nil
}

// doc returns the declarations of a package with these names and their doc comments. The
// name of a method is "Type.Method". The comments of fields, and the ends of long comments,
// are left out.
func (r *repository) doc(dir string, names ...string) (string, error) {
	return r.declarations(dir, names, func(p *docs, code, comment string) string {
		return fmt.Sprintf("```go\n%s\n```\n\n%s\n", code, shortened(p.text(comment)))
	})
}

// whole is like doc, with all of the comments.
func (r *repository) whole(dir string, names ...string) (string, error) {
	return r.declarations(dir, names, func(p *docs, code, comment string) string {
		return fmt.Sprintf("```go\n%s\n```\n\n%s\n", code, p.text(comment))
	})
}

// code is like doc, in one block and without the comments.
func (r *repository) code(dir string, names ...string) (string, error) {
	code, err := r.declarations(dir, names, func(_ *docs, code, _ string) string { return code + "\n" })
	return "```go\n" + code + "\n```", err
}

// declarations returns the named declarations of a package, each as format writes it.
func (r *repository) declarations(dir string, names []string, format func(p *docs, code, comment string) string) (string, error) {
	p, err := r.load(dir)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, name := range names {
		decl, comment := p.find(name)
		if decl == nil {
			return "", fmt.Errorf("package %s has no %s", dir, name)
		}
		code, err := p.code(decl)
		if err != nil {
			return "", err
		}
		out.WriteString(format(p, code, comment))
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

// find returns an exported declaration and its comment.
func (p *docs) find(name string) (ast.Decl, string) {
	receiver, method, isMethod := strings.Cut(name, ".")
	functions := p.Funcs
	for _, c := range p.Consts {
		if slices.Contains(c.Names, name) {
			return c.Decl, c.Doc
		}
	}
	for _, t := range p.Types {
		switch {
		case isMethod && t.Name == receiver:
			return function(t.Methods, method)
		case t.Name == name:
			return t.Decl, t.Doc
		}
		functions = append(functions, t.Funcs...)
	}
	return function(functions, name)
}

func function(all []*doc.Func, name string) (ast.Decl, string) {
	for _, f := range all {
		if f.Name == name {
			return f.Decl, f.Doc
		}
	}
	return nil, ""
}

// code returns a declaration without its body and without the comments of its fields.
func (p *docs) code(decl ast.Decl) (string, error) {
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			n.Doc, n.Body = nil, nil
		case *ast.GenDecl:
			n.Doc = nil
		case *ast.Field:
			n.Doc = nil
		}
		return true
	})
	var out strings.Builder
	err := format.Node(&out, p.set, decl)
	return blankLines.Replace(out.String()), err
}

// blankLines removes what is left of comments.
var blankLines = strings.NewReplacer("\n\n", "\n")

// maxComment is the size in bytes from which on further paragraphs of a comment are left out.
const maxComment = 150

// text returns a doc comment as text, with one line for each paragraph.
func (p *docs) text(comment string) string {
	printer := p.Printer()
	printer.TextWidth = -1
	return string(printer.Text(p.Parser().Parse(comment)))
}

// shortened returns the beginning of a text.
func shortened(text string) string {
	if len(text) <= maxComment {
		return text
	}
	if end := strings.Index(text[maxComment:], "\n\n"); end >= 0 {
		text = text[:maxComment+end] + " […]\n"
	}
	return text
}
