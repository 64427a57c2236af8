// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/go-psi/psi/"

// libraryAt returns the packages of the module at dir that users can import: all except
// examples and internal packages. Nested modules are excluded.
func libraryAt(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(dir, path)
		if err = errors.Join(err, relErr); err != nil || name == "." {
			return err
		}
		if entry.IsDir() {
			_, notNested := os.Stat(filepath.Join(path, "go.mod"))
			if strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"internal", "examples", "testdata"}, entry.Name()) || notNested == nil {
				return filepath.SkipDir
			}
			return nil
		}
		if pkg := filepath.ToSlash(filepath.Dir(name)); strings.HasSuffix(name, ".go") && !slices.Contains(names, pkg) {
			names = append(names, pkg)
		}
		return nil
	})
	return names, err
}

// size holds the figures of packages. Methods are exported methods of exported types;
// options are exported fields of structs whose name ends in Options.
type size struct{ files, lines, topLevel, methods, options int }

func (s size) plus(t size) size {
	return size{s.files + t.files, s.lines + t.lines, s.topLevel + t.topLevel, s.methods + t.methods, s.options + t.options}
}

// printPackages prints the size of each package of the library, of all internal packages
// imported by them, and the total. It only parses the source.
func printPackages(w io.Writer, dir string) error {
	fmt.Fprintf(w, "%-28s %7s %7s %10s %8s %8s\n", "package", "files", "lines", "top-level", "methods", "options")
	printSize := func(name string, s size) {
		fmt.Fprintf(w, "%-28s %7d %7d %10d %8d %8d\n", name, s.files, s.lines, s.topLevel, s.methods, s.options)
	}
	var internal, total size
	library, err := libraryAt(dir)
	if err != nil {
		return err
	}
	names := slices.Clone(library)
	for i := 0; i < len(names); i++ { // names grows
		s, imports, err := measurePackage(dir, names[i])
		if err != nil {
			return err
		}
		total = total.plus(s)
		if i >= len(library) {
			internal = internal.plus(s)
		} else if s.files > 0 {
			printSize(names[i], s)
		}
		for _, name := range imports {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	printSize(fmt.Sprintf("internal, linked: %d packages", len(names)-len(library)), internal)
	printSize("total", total)
	return nil
}

// measurePackage returns the size of a package and the packages of psi that it imports.
func measurePackage(dir, name string) (s size, imports []string, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, name, "*.go"))
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return s, nil, err
		}
		s.files++
		s.lines += fset.File(file.FileStart).LineCount()
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if ours, ok := strings.CutPrefix(imported, module); ok {
				imports = append(imports, ours)
			}
		}
		ast.FileExports(file)
		for _, decl := range file.Decls {
			s.addDecl(decl)
		}
	}
	return s, imports, err
}

// addDecl counts a declaration from which unexported names have been removed.
func (s *size) addDecl(decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			s.topLevel++
		} else if ast.IsExported(strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*")) {
			s.methods++
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				s.topLevel += len(spec.Names)
			case *ast.TypeSpec:
				s.topLevel++
				if structure, ok := spec.Type.(*ast.StructType); ok && strings.HasSuffix(spec.Name.Name, "Options") {
					s.options += structure.Fields.NumFields()
				}
			}
		}
	}
}
