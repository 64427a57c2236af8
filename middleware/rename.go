// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-psi/psi/mcp"
)

// Rename renames tools in lists and calls. The keys of names are the names that the server
// uses, the values are the names that callers see. A renamed tool is not found under its
// old name. If the new name of a tool is also the name of another tool of the server, the
// other tool is hidden, unless it is renamed, too. Tools that are not in names keep their
// names.
//
// Use it around a server whose names clash, confuse a model, or must remain stable:
//
//	mux.With(middleware.Rename(map[string]string{"search": "search_issues"})).Mount("github_", conn)
//
// Names are those inside the middleware: here, without the prefix of the mount. Do not use
// Rename on a [mcp.Conn], which validates outputs by the names that its server uses. Rename
// panics if a name is empty or if two tools would have the same name.
func Rename(names map[string]string) mcp.Middleware {
	outer, inner := make(map[string]string, len(names)), make(map[string]string, len(names))
	for from, to := range names {
		if from == "" || to == "" {
			panic(fmt.Sprintf("middleware.Rename: %q is renamed to %q: a name must not be empty", from, to))
		}
		if other, taken := inner[to]; taken {
			panic(fmt.Sprintf("middleware.Rename: %q and %q are both renamed to %q", min(from, other), max(from, other), to))
		}
		outer[from], inner[to] = to, from
	}
	return RenameFunc(lookUp(outer), lookUp(inner))
}

// lookUp returns a function that returns the value for a name, or the name itself if it has
// no value.
func lookUp(names map[string]string) func(string) string {
	return func(name string) string {
		if other, ok := names[name]; ok {
			return other
		}
		return name
	}
}

// RenameFunc is like [Rename] but takes functions: outer maps a name that the server uses
// to the name that callers see, and inner maps it back. A tool for which inner does not
// undo outer can neither be listed nor called. The functions are called for every tool of a
// list, and concurrently. RenameFunc panics if either is nil.
func RenameFunc(outer, inner func(name string) string) mcp.Middleware {
	if outer == nil || inner == nil {
		panic("middleware.RenameFunc: the functions must not be nil")
	}
	r := renamer{outer, inner}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			switch req.Method {
			case mcp.MethodCallTool:
				return r.call(ctx, next, req)
			case mcp.MethodListTools:
				return r.list(ctx, next, req)
			}
			return next.ServeMCP(ctx, req)
		})
	}
}

// A renamer maps names in both directions by functions, because a call can arrive before any
// list.
type renamer struct{ outer, inner func(string) string }

func (r renamer) call(ctx context.Context, next mcp.Handler, req *mcp.Request) (mcp.Result, error) {
	name := r.inner(req.Name())
	if name == req.Name() && r.outer(name) == name {
		return next.ServeMCP(ctx, req)
	}
	unknown := mcp.NewUnknownNameError(mcp.KindTool, req.Name())
	if r.outer(name) != req.Name() {
		return nil, unknown
	}
	var p mcp.CallToolParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	p.Name = name
	renamed, err := req.WithParams(&p)
	if err != nil {
		return nil, err
	}
	res, err := next.ServeMCP(ctx, renamed)
	if isUnknown(err, name) {
		return nil, unknown
	}
	return res, err
}

// isUnknown reports whether err means that there is no tool with the given name.
func isUnknown(err error, name string) bool {
	e, ok := errors.AsType[*mcp.Error](err)
	unknown := mcp.NewUnknownNameError(mcp.KindTool, name)
	return ok && e.Code == unknown.Code && e.Message == unknown.Message
}

func (r renamer) list(ctx context.Context, next mcp.Handler, req *mcp.Request) (mcp.Result, error) {
	res, err := next.ServeMCP(ctx, req)
	list, ok := res.(*mcp.ListToolsResult)
	if err != nil || !ok || list == nil {
		return res, err
	}
	renamed := *list
	renamed.Tools = make([]*mcp.Tool, 0, len(list.Tools))
	for _, t := range list.Tools {
		if t == nil {
			continue
		}
		name := r.outer(t.Name)
		if r.inner(name) != t.Name {
			continue // it could not be called
		}
		if name != t.Name {
			c := *t
			c.Name = name
			t = &c
		}
		renamed.Tools = append(renamed.Tools, t)
	}
	return &renamed, nil
}
