// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"fmt"

	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
)

var core = mcp.Internal(seam.Key{})

// Reshape changes the tools of a server in lists and calls: their names and descriptions, their
// arguments and their results; see [mcp.Shape]. The keys of shapes are the names that the server
// uses. A renamed tool is not found under its old name. If the new name of a tool is also the
// name of another tool of the server, the other tool is hidden, unless it is renamed, too.
// Tools that are not in shapes stay as they are.
//
// Use it around a server whose names clash, confuse a model, or must remain stable, or to
// decide arguments that are none of the model's business:
//
//	mux.With(middleware.Reshape(map[string]mcp.Shape{
//		"search": {Name: "search_issues", Args: map[string]mcp.Arg{
//			"q":      {Name: "query"},
//			"tenant": {Preset: tenantOfCaller},
//		}},
//	})).Mount("github_", upstream)
//
// Names are those inside the middleware: here, without the prefix of the mount. A tool that
// lacks an argument of its shape is left out of lists, and logged once, with the logger of the
// mux. If a call fails and its arguments do not fit the new schema, the model is told what is
// wrong in the names that it knows; Reshape reads the list of the server for that, at most once
// a minute for each caller and tool.
//
// Do not use Reshape on a [mcp.Conn], which validates outputs by the names that its server uses.
// For a tool of your own, use [mcp.Reshape]. Reshape panics if two tools, or two arguments of a
// tool, would have the same name, or if a default cannot be encoded.
func Reshape(shapes map[string]mcp.Shape) mcp.Middleware {
	mw, err := core.Reshape(shapes)
	if err != nil {
		panic(fmt.Sprintf("middleware.Reshape: %v", err))
	}
	return mw
}

// ReshapeFunc is like [Reshape] but takes functions: shape returns the Shape for a name that the
// server uses, and inner maps a name that callers see back to it. A tool for which inner does
// not undo Shape.Name can neither be listed nor called. The functions are called for every tool
// of a list, and concurrently. ReshapeFunc panics if either is nil.
func ReshapeFunc(shape func(name string) mcp.Shape, inner func(name string) string) mcp.Middleware {
	if shape == nil || inner == nil {
		panic("middleware.ReshapeFunc: the functions must not be nil")
	}
	return core.ReshapeFunc(shape, inner)
}
