// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package house_test

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

const module = "github.com/go-psi/psi/"

// direction restricts the imports of the packages below a directory. Tests may import
// anything.
type direction struct {
	from   string
	except []string // subdirectories with their own direction
	only   []string // if not nil, the only allowed imports
	never  []string
}

// leaf stands for the internal packages that every package may import.
const leaf = "internal leaves"

// notLeaves lists the directories of internal that are not leaves because they use psi.
var notLeaves = []string{
	"internal/tools/compare", "internal/test/conformance", "internal/test/chaos", "internal/test/cluster", "internal/tools/figures", "internal/test/house", "internal/test/interop", "internal/lint", "internal/test/model", "internal/test/schemas", "internal/test/soak", "internal/test/thirdparty", "internal/tools",
	"internal/server",                            // the server side of transports
	"internal/inflight", "internal/legacyclient", // parts of the client
}

var directions = []direction{
	{from: "mcp", except: []string{"mcp/mcptest", "mcp/config", "mcp/cmd"}, never: []string{"mcphttp", "mcpstdio", "middleware", "internal/server"}},
	{from: "mcp/mcptest", never: []string{"middleware"}},
	{from: "mcp/config", only: []string{"mcp/transport", "mcphttp", "mcpstdio", leaf}},
	{from: "mcphttp", never: []string{"mcpstdio", "middleware"}},
	{from: "mcpstdio", never: []string{"mcphttp", "middleware"}},
	{from: "middleware", only: []string{"mcp", leaf}},
	{from: "jsonschema", only: []string{leaf}},
	{from: "internal/legacyclient", only: []string{"mcp/transport", "internal/inflight", leaf}},
	{from: "internal/inflight", only: []string{"mcp/transport", leaf}},
	{from: leaf, only: []string{leaf}},
}

// below reports whether a package is dir itself or below it.
func below(pkg, dir string) bool {
	if dir == leaf {
		return below(pkg, "internal") && !belowAny(pkg, notLeaves)
	}
	return pkg == dir || strings.HasPrefix(pkg, dir+"/")
}

func belowAny(pkg string, dirs []string) bool {
	for _, dir := range dirs {
		if below(pkg, dir) {
			return true
		}
	}
	return false
}

func (d direction) covers(pkg string) bool {
	return below(pkg, d.from) && !belowAny(pkg, d.except)
}

func (d direction) allows(imported string) bool {
	if below(imported, d.from) && d.from != leaf {
		return true // packages below the same directory
	}
	return (d.only == nil || belowAny(imported, d.only)) && !belowAny(imported, d.never)
}

func wrongImports(s source) []finding {
	if s.isTest() {
		return nil
	}
	var found []finding
	for _, spec := range s.file.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		imported, ours := strings.CutPrefix(name, module)
		for _, d := range directions {
			if ours && d.covers(s.dir()) && !d.allows(imported) {
				found = append(found, s.at(spec, "package %s imports %s", s.dir(), imported))
			}
		}
	}
	return found
}

// wrongLegacyImports finds imports that would have to be edited to remove the older
// revisions.
func wrongLegacyImports(s source) []finding {
	if s.isTest() || strings.HasPrefix(path.Base(s.path), "legacy") || strings.HasPrefix(path.Base(s.dir()), "legacy") {
		return nil
	}
	var found []finding
	for _, spec := range s.file.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		imported, ours := strings.CutPrefix(name, module)
		if ours && (imported == "internal/revision" || strings.HasPrefix(path.Base(imported), "legacy")) {
			found = append(found, s.at(spec, "%s imports %s", s.path, imported))
		}
	}
	return found
}

// imports returns a Go file that imports packages of this module, each with an optional
// remark.
func imports(packages ...string) string {
	var text strings.Builder
	text.WriteString("package a\n")
	for _, p := range packages {
		name, remark, _ := strings.Cut(p, " ")
		fmt.Fprintf(&text, "import _ %q // %s\n", module+name, remark)
	}
	return text.String()
}
