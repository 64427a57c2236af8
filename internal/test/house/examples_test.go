// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package house_test

import (
	"go/ast"
	"path"
	"strings"
)

// missingExamples finds the entry points of a package that none of its Examples calls:
// New…, Serve…, and constructors of middleware. Other declarations in files named
// example_… count as part of the Examples.
func missingExamples(tree []source) []finding {
	shown := map[string]bool{}
	for _, s := range tree {
		if strings.HasPrefix(path.Base(s.path), "example_") {
			mark(shown, s.dir(), s.file)
			continue
		}
		for _, fn := range functions(s) {
			if s.isTest() && strings.HasPrefix(fn.Name.Name, "Example") {
				mark(shown, s.dir(), fn.Body)
			}
		}
	}
	var found []finding
	for _, s := range tree {
		if s.isTest() || s.file.Name.Name == "main" || strings.Contains("/"+s.dir()+"/", "/internal/") {
			continue
		}
		for _, fn := range functions(s) {
			if isEntry(fn) && !shown[s.dir()+"."+fn.Name.Name] {
				found = append(found, s.at(fn, "no Example of %s calls %s", s.dir(), fn.Name.Name))
			}
		}
	}
	return found
}

// functions returns the functions of a file, without methods.
func functions(s source) []*ast.FuncDecl {
	var all []*ast.FuncDecl
	for _, d := range s.file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
			all = append(all, fn)
		}
	}
	return all
}

// mark records every name of the directory's package used in code, as "directory.Name".
func mark(names map[string]bool, dir string, code ast.Node) {
	for node := range ast.Preorder(code) {
		if s, ok := node.(*ast.SelectorExpr); ok {
			if pkg, ok := s.X.(*ast.Ident); ok && strings.HasSuffix("/"+dir, "/"+pkg.Name) {
				names[dir+"."+s.Sel.Name] = true
			}
		}
	}
}

// isEntry reports whether a function is an entry point for users.
func isEntry(fn *ast.FuncDecl) bool {
	if !fn.Name.IsExported() {
		return false
	}
	return strings.HasPrefix(fn.Name.Name, "New") || strings.HasPrefix(fn.Name.Name, "Serve") || makesMiddleware(fn.Type.Results)
}

// makesMiddleware reports whether the only result is an mcp.Middleware, or a function from
// an MCP or HTTP handler to a handler.
func makesMiddleware(results *ast.FieldList) bool {
	if results.NumFields() != 1 {
		return false
	}
	switch t := results.List[0].Type.(type) {
	case *ast.Ident:
		return t.Name == "Middleware"
	case *ast.SelectorExpr:
		return t.Sel.Name == "Middleware"
	case *ast.FuncType:
		return t.Params.NumFields() == 1 && isHandler(t.Params.List[0].Type) && t.Results.NumFields() == 1 && isHandler(t.Results.List[0].Type)
	}
	return false
}

func isHandler(t ast.Expr) bool {
	s, ok := t.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Handler"
}
