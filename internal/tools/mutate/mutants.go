// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A mutant replaces one part of a source file.
type mutant struct {
	pkg, file  string
	start, end int    // offsets of the replaced source
	with       string // the replacement
	kind       string
	line       int
	covered    int    // line whose coverage counts; 0 for any line of the package
	source     string // replaced source, shortened to one line

	form     form // how it is compiled with others; zero if built alone
	from, to int  // offsets of the node replaced by the form
	lastLine int
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d: %s: %s => %s", path.Join(m.pkg, filepath.Base(m.file)), m.line, m.kind, m.source, shorten(m.with))
}

// place returns the place whose coverage tells whether the mutant is executed.
func (m mutant) place() place {
	if m.covered == 0 {
		return place{m.pkg, 0}
	}
	return place{m.pkg + "/" + filepath.Base(m.file), m.covered}
}

// apply returns the changed file.
func (m mutant) apply(source []byte) []byte {
	return slices.Concat(source[:m.start], []byte(m.with), source[m.end:])
}

// mutantsOf returns all mutants of a file, in source order.
func mutantsOf(pkg, file string) ([]mutant, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	c := &collector{pkg: pkg, file: file, source: source, at: fset.File(tree.Pos())}
	ast.PreorderStack(tree, nil, func(n ast.Node, stack []ast.Node) bool {
		c.covered, c.isConstant = c.coveredLine(n, stack), isConstant(stack)
		c.visit(n, stack)
		return true
	})
	slices.SortStableFunc(c.found, func(a, b mutant) int { return cmp.Compare(a.start, b.start) })
	return c.found, nil
}

type collector struct {
	pkg, file string
	source    []byte
	at        *token.File
	found     []mutant

	// State of the visited node:
	covered    int
	isConstant bool // inside a constant declaration
}

// coveredLine returns the line whose coverage applies to a node: the line of its statement,
// because profiles lack lines after a function literal in a statement. It is 0 outside of
// functions. The conditions of a switch use the line of the switch, because the block of
// their own case may not be executed when they are evaluated.
func (c *collector) coveredLine(n ast.Node, stack []ast.Node) int {
	if n == nil {
		return 0
	}
	at := n
	for i, parent := range slices.Backward(stack) {
		switch parent := parent.(type) {
		case *ast.AssignStmt, *ast.DeclStmt, *ast.DeferStmt, *ast.ExprStmt, *ast.GoStmt, *ast.ReturnStmt, *ast.SendStmt:
			at = parent
		case *ast.CaseClause:
			if n.Pos() < parent.Colon {
				at = stack[i-2]
			}
		case *ast.FuncDecl, *ast.FuncLit:
			return c.at.Line(at.Pos())
		}
	}
	return 0
}

func isConstant(stack []ast.Node) bool {
	return slices.ContainsFunc(stack, func(n ast.Node) bool {
		decl, ok := n.(*ast.GenDecl)
		return ok && decl.Tok == token.CONST
	})
}

func (c *collector) visit(n ast.Node, stack []ast.Node) {
	switch n := n.(type) {
	case *ast.IfStmt:
		c.covered = c.at.Line(n.Pos())
		c.wrap("condition", n.Cond, "!(", ")", negation)
	case *ast.BinaryExpr:
		if n.Op != token.SUB || !isHint(n, stack) {
			c.operator(n, stack)
		}
	case *ast.BlockStmt:
		c.statements(n.List)
	case *ast.CaseClause:
		c.statements(n.Body)
	case *ast.CommClause:
		c.statements(n.Body)
	case *ast.ReturnStmt:
		c.returned(n, stack)
	case *ast.BasicLit:
		if !isHint(n, stack) {
			c.constant(n)
		}
	case *ast.Ident:
		if other, ok := map[string]string{"true": "false", "false": "true"}[n.Name]; ok {
			c.surround(c.add("constant", n.Pos(), n.End(), other), n, negation)
		}
	}
}

// add adds a mutant to be built alone.
func (c *collector) add(kind string, from, to token.Pos, with string) *mutant {
	start, end := c.at.Offset(from), c.at.Offset(to)
	c.found = append(c.found, mutant{
		pkg: c.pkg, file: c.file, start: start, end: end, with: with, kind: kind,
		line: c.at.Line(from), covered: c.covered, source: shorten(string(c.source[start:end])),
	})
	return &c.found[len(c.found)-1]
}

// surround marks a mutant to be compiled together with others, except inside constant
// declarations.
func (c *collector) surround(m *mutant, n ast.Node, form form) {
	if !c.isConstant {
		m.form, m.from, m.to, m.lastLine = form, c.at.Offset(n.Pos()), c.at.Offset(n.End()), c.at.Line(n.End())
		m.line = min(m.line, c.at.Line(n.Pos()))
	}
}

// wrap adds a mutant that surrounds a node with text.
func (c *collector) wrap(kind string, n ast.Node, before, after string, form form) {
	text := string(c.source[c.at.Offset(n.Pos()):c.at.Offset(n.End())])
	c.surround(c.add(kind, n.Pos(), n.End(), before+text+after), n, form)
}

// operators maps operators to their replacements.
var operators = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD,
}

func (c *collector) operator(n *ast.BinaryExpr, stack []ast.Node) {
	if n.Op == token.ADD && isText(n) {
		return // strings support no other operator
	}
	other, ok := operators[n.Op]
	if parent, isIf := stack[len(stack)-1].(*ast.IfStmt); !ok || isIf && parent.Cond == n && (n.Op == token.EQL || n.Op == token.NEQ) {
		return // equivalent to the negated condition
	}
	m := c.add("operator", n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other.String())
	c.surround(m, n, exchange[n.Op.String()])
}

// isText reports whether an expression is recognizably a string, by its literals.
func isText(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.BasicLit:
		return x.Kind == token.STRING
	case *ast.BinaryExpr:
		return x.Op == token.ADD && (isText(x.X) || isText(x.Y))
	case *ast.ParenExpr:
		return isText(x.X)
	}
	return false
}

// statements removes statements but keeps the names in them used.
func (c *collector) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if isDebugging(s.X) {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt:
		default:
			continue
		}
		c.covered = c.at.Line(s.Pos())
		c.wrap("statement", s, "if false { ", " }", omission)
	}
}

// isDebugging reports whether an expression only writes a debug log.
func isDebugging(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (strings.HasPrefix(name.Sel.Name, "Debug") || slices.ContainsFunc(call.Args, isLevelDebug))
}

// isLevelDebug reports whether an argument is slog.LevelDebug.
func isLevelDebug(x ast.Expr) bool {
	level, ok := x.(*ast.SelectorExpr)
	return ok && level.Sel.Name == "LevelDebug"
}

// returned replaces returned errors with nil.
func (c *collector) returned(n *ast.ReturnStmt, stack []ast.Node) {
	results := resultsOf(stack)
	if len(results) == 0 || len(n.Results) != len(results) {
		return
	}
	last := n.Results[len(n.Results)-1]
	if kind, ok := results[len(results)-1].(*ast.Ident); !ok || kind.Name != "error" {
		return
	}
	if value, ok := last.(*ast.Ident); !ok || value.Name != "nil" {
		c.surround(c.add("error", last.Pos(), last.End(), "nil"), last, nilReturn)
	}
}

// resultsOf returns the types of the results of the innermost function.
func resultsOf(stack []ast.Node) (types []ast.Expr) {
	for _, n := range slices.Backward(stack) {
		var of *ast.FuncType
		switch f := n.(type) {
		case *ast.FuncDecl:
			of = f.Type
		case *ast.FuncLit:
			of = f.Type
		default:
			continue
		}
		if of.Results == nil {
			return nil
		}
		for _, field := range of.Results.List {
			for range max(1, len(field.Names)) {
				types = append(types, field.Type)
			}
		}
		return types
	}
	return nil
}

// isHint reports whether an expression is only a capacity hint: the capacity of an empty
// slice, the size of a map, or the argument of Grow. A larger value makes no difference
// that a test of behavior could notice.
func isHint(n ast.Node, stack []ast.Node) bool {
	for _, parent := range stack {
		if call, ok := parent.(*ast.CallExpr); ok {
			if hint := hintOf(call); hint != nil && hint.Pos() <= n.Pos() && n.End() <= hint.End() {
				return true
			}
		}
	}
	return false
}

// hintOf returns the argument of a call that is a capacity hint, or nil.
func hintOf(call *ast.CallExpr) ast.Expr {
	switch fn := call.Fun.(type) {
	case *ast.Ident:
		if fn.Name != "make" || len(call.Args) < 2 {
			return nil
		}
		if isMap(call.Args[0]) {
			return call.Args[1]
		}
		if length, ok := call.Args[1].(*ast.BasicLit); ok && length.Value == "0" && len(call.Args) == 3 {
			return call.Args[2]
		}
	case *ast.SelectorExpr:
		if fn.Sel.Name == "Grow" && len(call.Args) > 0 {
			return call.Args[len(call.Args)-1]
		}
	}
	return nil
}

// isMap reports whether a type is recognizably a map: a map type, or a type named Header or
// Values.
func isMap(t ast.Expr) bool {
	switch t := t.(type) {
	case *ast.MapType:
		return true
	case *ast.SelectorExpr:
		return t.Sel.Name == "Header" || t.Sel.Name == "Values"
	}
	return false
}

func (c *collector) constant(n *ast.BasicLit) {
	if n.Kind != token.INT {
		return
	}
	if v, err := strconv.ParseInt(n.Value, 0, 32); err == nil {
		c.add("constant", n.Pos(), n.End(), strconv.FormatInt(v+1, 10))
	}
}

// shorten returns source as one line of limited length.
func shorten(source string) string {
	line := strings.Join(strings.Fields(source), " ")
	if len(line) > 100 {
		line = line[:97] + "..."
	}
	return line
}
