// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gen

import (
	"cmp"
	"fmt"
	"go/format"
	"go/token"
	"slices"
	"strings"

	"github.com/go-psi/psi/mcp"
)

// A Server holds what a server lists. Nil tools and prompts are ignored.
type Server struct {
	Name, Version string
	Tools         []*mcp.Tool
	Prompts       []*mcp.Prompt
}

// Generate returns a Go file of the package pkg. If pkg is empty, the package is named
// after the server. Generate returns an error if pkg is not a valid package name, which
// consists of lower-case letters, digits and '_', and if the types of the server's schemas
// would take more than maxSource bytes.
func Generate(s *Server, pkg string) ([]byte, error) {
	if pkg == "" {
		pkg = packageName(s.Name)
	} else if !isPackageName(pkg) {
		return nil, fmt.Errorf("%q is not a name for a package: use lower-case letters, digits and '_'", pkg)
	}
	g := &generator{names: scope{"Client": 1, "New": 1, "Text": 1}, methodNames: scope{}, left: maxSource}
	for _, t := range sortedByName(s.Tools, func(t *mcp.Tool) string { return t.Name }) {
		if g.tool(t); g.left < 0 {
			return nil, fmt.Errorf("the types would take more than %d bytes of Go at the tool %s: its schemas use large definitions in many places; write this client by hand", maxSource, quote(t.Name, ""))
		}
	}
	for _, p := range sortedByName(s.Prompts, func(p *mcp.Prompt) string { return p.Name }) {
		g.prompt(p)
	}
	breakCycles(g.structs())
	source, err := g.file(s, pkg)
	if err != nil {
		return nil, fmt.Errorf("generated invalid Go, which is a defect of psi: %w", err)
	}
	return format.Source([]byte(source))
}

// packageName derives a package name from the name of a server.
func packageName(server string) string {
	var name strings.Builder
	for _, word := range words(server) {
		if word = strings.ToLower(word); word != "mcp" && word != "server" && isPackageName("p"+word) {
			name.WriteString(word)
		}
	}
	if short := name.String()[:min(name.Len(), 30)]; isPackageName(short) {
		return short
	}
	return "client"
}

func isPackageName(name string) bool {
	return token.IsIdentifier(name) && name != "_" && name != "main" &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// sortedByName returns the non-nil items sorted by name. Items with the same name keep
// their order.
func sortedByName[D any](items []*D, name func(*D) string) []*D {
	sorted := slices.DeleteFunc(slices.Clone(items), func(d *D) bool { return d == nil })
	slices.SortStableFunc(sorted, func(a, b *D) int { return cmp.Compare(name(a), name(b)) })
	return sorted
}

// A generator collects the contents of the file. Tools do not share types, even equal ones: a
// type's name would then depend on the other tools. Resources have no methods; servers list
// too many, and they come and go.
type generator struct {
	names       scope // of types, constants and functions
	methodNames scope // of Client
	decls       []decl
	methods     strings.Builder // of Client
	usesCall    bool            // whether a tool has no output schema
	left        int             // bytes that more types may have; negative if they are too large
}

// maxSource bounds the types of a file in bytes, approximately. A definition is written out
// wherever allOf takes it over, so that a small schema can describe a very large file. Files
// for large servers have a tenth of this.
const maxSource = 4 << 20

// spend accounts for n bytes of the file, or for work that takes as long as writing them. It
// returns false if the file has become too large. The types no longer matter then.
func (g *generator) spend(n int) bool {
	g.left -= n
	return g.left >= 0
}

// A decl is the declaration of a type.
type decl interface{ write(to *strings.Builder) }

func (g *generator) structs() (all []*structType) {
	for _, d := range g.decls {
		if s, ok := d.(*structType); ok {
			all = append(all, s)
		}
	}
	return all
}
