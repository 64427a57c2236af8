// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package toolsearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
)

// core has the functions of package mcp that are only for this module.
var core = mcp.Internal(seam.Key{})

// The tools that lists show. Tools of the server with these names are hidden.
const (
	searchTool = "search_tools"
	callTool   = "call_tool"
)

// Options configure [New]. Nil means the zero Options.
type Options struct {
	// Pinned are names of tools that lists show as well, in this order, if the caller may see
	// them.
	Pinned []string
	// Rank orders the tools that a search finds. Nil means [BM25].
	Rank Ranker
}

// New returns middleware that replaces the tools of a server, in lists, by tools that search
// and call them. Use it around a whole mux, a mount, or a connection; registering a single
// tool with it panics. It panics if a pinned name is empty, search_tools or call_tool.
func New(opts *Options) mcp.Middleware {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Pinned = slices.Clone(o.Pinned)
	for _, name := range o.Pinned {
		if name == "" || isOwn(name) {
			panic(fmt.Sprintf("toolsearch.New: the tool %q cannot be pinned", name))
		}
	}
	if o.Rank == nil {
		o.Rank = BM25()
	}
	return func(next mcp.Handler) mcp.Handler {
		s := &searcher{next: next, opts: o}
		s.search = mcp.ToolFunc(s.find, searchTools())
		s.toCall = mcp.ToolFunc(func(context.Context, callArguments) (*mcp.CallToolResult, error) { return nil, nil }, callTools())
		s.own = []*mcp.Tool{describe(searchTool, s.search), describe(callTool, s.toCall)}
		return s
	}
}

// isOwn reports whether name is one of the two tools of this package.
func isOwn(name string) bool { return name == searchTool || name == callTool }

func describe(name string, h mcp.Handler) *mcp.Tool {
	t, _ := mcp.DescriptionOf(h).(*mcp.Tool)
	named := *t
	named.Name = name
	return &named
}

// A searcher is a server whose tools are searched.
type searcher struct {
	next   mcp.Handler
	opts   Options
	search mcp.Handler // search_tools
	toCall mcp.Handler // call_tool, whose function is not called
	own    []*mcp.Tool
}

// FiltersLists implements [seam.ListFilter].
func (*searcher) FiltersLists(seam.Key) {}

// ServeMCP implements [mcp.Handler].
func (s *searcher) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	switch {
	case req.Method == mcp.MethodListTools:
		return s.list(ctx, req)
	case req.Method == mcp.MethodCallTool && req.Name() == searchTool:
		return s.search.ServeMCP(core.ContextWithRequest(ctx, req), req)
	case req.Method == mcp.MethodCallTool && req.Name() == callTool:
		return s.call(ctx, req)
	}
	return s.next.ServeMCP(ctx, req)
}

// list returns the one page of the list that callers see.
func (s *searcher) list(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	var p mcp.ListParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	if p.Cursor != nil {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "params.cursor was not issued by this server; start again without it")
	}
	pinned := make([]*mcp.Tool, len(s.opts.Pinned))
	missing := len(pinned)
	if missing > 0 {
		for t, err := range core.Tools(ctx, s.next, req) {
			if mcp.CodeOf(err) == mcp.CodeMethodNotFound {
				break // the server has no tools
			}
			if err != nil {
				return nil, err
			}
			if i := slices.Index(s.opts.Pinned, t.Name); i >= 0 && pinned[i] == nil {
				pinned[i] = t
				missing--
			}
			if missing == 0 {
				break
			}
		}
	}
	pinned = slices.DeleteFunc(pinned, func(t *mcp.Tool) bool { return t == nil })
	return &mcp.ListToolsResult{Tools: slices.Concat(s.own, pinned)}, nil
}

// callArguments are the arguments of call_tool.
type callArguments struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func callTools() *mcp.Tool {
	return &mcp.Tool{
		Title:       "Call a tool",
		Description: "Call a tool that " + searchTool + " found. Returns what the tool returns.",
		InputSchema: json.RawMessage(`{"type":"object","required":["name"],"additionalProperties":false,"properties":{` +
			`"name":{"type":"string","minLength":1,"description":"The name of the tool, as search_tools returns it"},` +
			`"arguments":{"type":"object","description":"The arguments of the tool, which must match its inputSchema"}}}`),
	}
}

// call serves call_tool: the request of the client becomes a call of the tool.
func (s *searcher) call(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if invalid := core.CheckArguments(ctx, s.toCall, req); invalid != nil {
		return invalid, nil
	}
	name := jsonscan.Text(jsonscan.Member(req.Arguments(), "name"))
	if isOwn(name) {
		return failed("%s is called by itself, not through %s", name, callTool), nil
	}
	inner, err := core.CallOf(req, name, jsonscan.Member(req.Arguments(), "arguments"))
	if err != nil {
		return nil, err
	}
	res, err := s.next.ServeMCP(core.ContextWithRequest(ctx, inner), inner)
	if isUnknown(err, name) {
		return failed("there is no tool %.200q; %s finds the names of tools", name, searchTool), nil
	}
	return res, err
}

// failed returns the result of a call that the model can correct.
func failed(format string, args ...any) *mcp.CallToolResult {
	r := mcp.TextResult(fmt.Sprintf(format, args...))
	r.IsError = true
	return r
}

// isUnknown reports whether err means that there is no tool with the given name.
func isUnknown(err error, name string) bool {
	e, ok := errors.AsType[*mcp.Error](err)
	unknown := mcp.NewUnknownNameError(mcp.KindTool, name)
	return ok && e.Code == unknown.Code && e.Message == unknown.Message
}
