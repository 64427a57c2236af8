// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mistakes_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"reflect"
	"strings"
	"testing"
)

// TestZeroValuesAreComplete checks that the lists contain every exported type and function
// of this module.
func TestZeroValuesAreComplete(t *testing.T) {
	tested := map[string]bool{}
	for _, typ := range exportedTypes {
		name, _, _ := strings.Cut(typ.Name(), "[") // of a generic type
		tested[strings.TrimPrefix(typ.PkgPath(), module)+"."+name] = true
	}
	for _, fn := range exportedFuncs {
		tested[nameOf(reflect.ValueOf(fn))] = true
	}
	declared := map[string]bool{}
	for dir, file := range sources(t) {
		for _, name := range exportedNames(file) {
			declared[dir+"."+name] = true
		}
	}
	for name := range declared {
		if !tested[name] {
			t.Errorf("%s is missing in exportedTypes or exportedFuncs: what does its zero value do?", name)
		}
	}
	if len(declared) < 300 {
		t.Errorf("found only %d exported names", len(declared))
	}
}

// sources yields the directory and syntax tree of each file in the importable packages of
// this module, except those of nested modules.
func sources(t *testing.T) func(yield func(dir string, file *ast.File) bool) {
	root := os.DirFS("../../..")
	return func(yield func(string, *ast.File) bool) {
		err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir():
				return skipped(root, name, entry.Name())
			case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			text, err := fs.ReadFile(root, name)
			if err != nil {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
			if err == nil && file.Name.Name != "main" && !yield(path.Dir(name), file) {
				return fs.SkipAll
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// skipped returns [fs.SkipDir] for directories without importable packages.
func skipped(root fs.FS, name, base string) error {
	if name == "." {
		return nil
	}
	_, err := fs.Stat(root, path.Join(name, "go.mod"))
	if isModule := err == nil; isModule || strings.HasPrefix(base, ".") || base == "internal" || name == "examples" || base == "testdata" {
		return fs.SkipDir
	}
	return nil
}

// exportedNames returns the names of the exported functions of a file, and of its exported
// types other than aliases and interfaces. It omits functions that only tests or only this
// module can call.
func exportedNames(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() && isCallable(d.Type) {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() && !s.Assign.IsValid() && !isInterface(s.Type) {
					names = append(names, s.Name.Name)
				}
			}
		}
	}
	return names
}

func isInterface(typ ast.Expr) bool {
	_, ok := typ.(*ast.InterfaceType)
	return ok
}

// isCallable reports whether a function has no parameter of the type *testing.T, *testing.B
// or seam.Key.
func isCallable(fn *ast.FuncType) bool {
	for _, p := range fn.Params.List {
		typ := p.Type
		if pointer, ok := typ.(*ast.StarExpr); ok {
			typ = pointer.X
		}
		if s, ok := typ.(*ast.SelectorExpr); ok {
			if pkg, ok := s.X.(*ast.Ident); ok && (pkg.Name == "testing" && s.Sel.Name != "TB" || pkg.Name == "seam") {
				return false
			}
		}
	}
	return true
}
