// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gen_test

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/cmd/psi/internal/gen"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares the client generated for a server with the file
// testdata/<name>/<name>.go.
func golden(t *testing.T, name string, s *gen.Server) {
	t.Helper()
	got, err := gen.Generate(s, name)
	if err != nil {
		t.Fatal(err)
	}
	typeCheck(t, got)
	path := filepath.Join("testdata", name, name+".go")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not what is generated; run the test with -update and read the difference. Generated:\n%s", path, got)
	}
}

// one generates the client for a server with one tool.
func one(t *testing.T, input, output string) string {
	t.Helper()
	tool := &mcp.Tool{Name: "t", InputSchema: json.RawMessage(input)}
	if output != "" {
		tool.OutputSchema = json.RawMessage(output)
	}
	source, err := gen.Generate(&gen.Server{Name: "s", Tools: []*mcp.Tool{tool}}, "p")
	if err != nil {
		t.Fatal(err)
	}
	typeCheck(t, source)
	return string(source)
}

func contains(t *testing.T, source string, want ...string) {
	t.Helper()
	flat := strings.Join(strings.Fields(source), " ")
	for _, w := range want {
		if !strings.Contains(flat, strings.Join(strings.Fields(w), " ")) {
			t.Errorf("no %q in\n%s", w, source)
		}
	}
}

// stubs contains the parts of the imported packages that generated code uses, so that
// type-checking it is fast.
var stubs = map[string]string{
	"context":                          `package context; type Context interface{ Err() error }`,
	"encoding/json":                    `package json; type RawMessage []byte`,
	"strings":                          `package strings; type Builder struct{}; func (*Builder) WriteString(string) (int, error) { return 0, nil }; func (*Builder) String() string { return "" }`,
	"time":                             `package time; type Time struct{ ns int64 }`,
	"github.com/go-psi/psi/jsonschema": `package jsonschema; func Marshal(v any) ([]byte, error) { return nil, nil }`,
	"github.com/go-psi/psi/mcp": `package mcp
import ("context"; "encoding/json")
type Conn struct{}
type Content interface{ content() }
type TextContent struct{ Text string }
func (*TextContent) content() {}
type CallToolParams struct{ Name string; Arguments json.RawMessage }
type CallToolResult struct{ Content []Content; IsError bool }
type GetPromptParams struct{ Name string; Arguments map[string]string }
type GetPromptResult struct{}
type ToolError struct{ Tool string; Result *CallToolResult }
func (*ToolError) Error() string { return "" }
func (*Conn) CallTool(context.Context, *CallToolParams) (*CallToolResult, error) { return nil, nil }
func (*Conn) GetPrompt(context.Context, *GetPromptParams) (*GetPromptResult, error) { return nil, nil }
func Call[Out any](ctx context.Context, c *Conn, tool string, args any) (Out, error) { var out Out; return out, nil }`,
}

// stubImporter imports the stubs. It is not safe for concurrent use.
type stubImporter map[string]*types.Package

func (i stubImporter) Import(path string) (*types.Package, error) {
	if p := i[path]; p != nil {
		return p, nil
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, stubs[path], 0)
	if err != nil {
		return nil, err
	}
	p, err := (&types.Config{Importer: i}).Check(path, fset, []*ast.File{file}, nil)
	i[path] = p
	return p, err
}

// typeCheck fails the test if the file does not compile.
func typeCheck(t *testing.T, source []byte) *ast.File {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "client.go", source, parser.ParseComments)
	if err != nil {
		t.Fatalf("%v in\n%s", err, source)
	}
	if _, err := (&types.Config{Importer: stubImporter{}}).Check("client", fset, []*ast.File{file}, nil); err != nil {
		t.Fatalf("%v in\n%s", err, source)
	}
	return file
}
