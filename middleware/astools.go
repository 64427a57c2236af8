// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"slices"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

// An addedTool is a tool that middleware adds to a server.
type addedTool struct {
	*mcp.Tool
	check mcp.Handler // validates the arguments
	serve func(ctx context.Context, req *mcp.Request) (mcp.Result, error)
}

// newAddedTool returns a tool whose arguments are an In. serve is called with valid ones.
func newAddedTool[In any](t *mcp.Tool, serve func(ctx context.Context, req *mcp.Request) (mcp.Result, error)) addedTool {
	name := t.Name
	t.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: new(true)}
	h := mcp.ToolFunc(func(context.Context, In) (*mcp.CallToolResult, error) { return nil, nil }, t)
	described, _ := mcp.DescriptionOf(h).(*mcp.Tool)
	listed := *described
	listed.Name = name
	return addedTool{&listed, h, serve}
}

// addTools returns middleware that adds tools to lists and calls.
func addTools(toolsOf func(next mcp.Handler) []addedTool) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		tools := toolsOf(next)
		find := func(name string) int {
			return slices.IndexFunc(tools, func(t addedTool) bool { return t.Name == name })
		}
		return hiding(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			switch req.Method {
			case mcp.MethodDiscover:
				return discoverTools(ctx, next, req)
			case mcp.MethodListTools:
				return listAdded(ctx, next, req, tools, find)
			case mcp.MethodCallTool:
				i := find(req.Name())
				if i < 0 {
					break
				}
				if invalid := core.CheckArguments(ctx, tools[i].check, req); invalid != nil {
					return invalid, nil
				}
				return tools[i].serve(ctx, req)
			}
			return next.ServeMCP(ctx, req)
		})
	}
}

// discoverTools declares that a server has tools, even if it has none of its own.
func discoverTools(ctx context.Context, next mcp.Handler, req *mcp.Request) (mcp.Result, error) {
	res, err := next.ServeMCP(ctx, req)
	found, ok := res.(*mcp.DiscoverResult)
	if err != nil || !ok || found.Capabilities == nil || found.Capabilities.Tools != nil {
		return res, err
	}
	caps := *found.Capabilities
	caps.Tools = &mcp.ListCapability{}
	c := *found
	c.Capabilities = &caps
	return &c, nil
}

// listAdded adds tools to the first page of a list.
func listAdded(ctx context.Context, next mcp.Handler, req *mcp.Request, tools []addedTool, find func(name string) int) (mcp.Result, error) {
	var p mcp.ListParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	res, err := next.ServeMCP(ctx, req)
	if mcp.CodeOf(err) == mcp.CodeMethodNotFound && p.Cursor == nil {
		res, err = &mcp.ListToolsResult{}, nil // the server has none of its own
	}
	list, ok := res.(*mcp.ListToolsResult)
	if err != nil || !ok || list == nil {
		return res, err
	}
	c := *list
	c.Tools = nil
	if p.Cursor == nil {
		for _, t := range tools {
			c.Tools = append(c.Tools, t.Tool)
		}
	}
	for _, t := range list.Tools {
		if t != nil && find(t.Name) < 0 {
			c.Tools = append(c.Tools, t)
		}
	}
	return &c, nil
}

// ask sends a request on behalf of a call, and returns its result, or the result of the call
// if the model can correct what it has asked for.
func ask(ctx context.Context, next mcp.Handler, call *mcp.Request, method string, params any) (res, failed mcp.Result, err error) {
	raw, err := strictjson.Marshal(params)
	if err != nil {
		return nil, nil, err
	}
	req, err := core.Instead(call, method, raw)
	if err != nil {
		return nil, nil, err
	}
	res, err = next.ServeMCP(core.ContextWithRequest(ctx, req), req)
	if code := mcp.CodeOf(err); code == mcp.CodeInvalidParams || code == mcp.CodeMethodNotFound {
		text := core.AsError(err).Message
		if code == mcp.CodeMethodNotFound {
			text = "the server has none"
		}
		r := mcp.TextResult(text)
		r.IsError = true
		return nil, r, nil
	}
	return res, nil, err
}

// cursorArgs are the arguments of a list.
type cursorArgs struct {
	Cursor string `json:"cursor,omitempty" jsonschema:"description=The nextCursor of the page before; leave it out for the first page"`
}

// args decodes the arguments of a call, which are valid.
func args[In any](req *mcp.Request) (in In, err error) {
	if req.Arguments() == nil {
		return in, nil
	}
	err = strictjson.Unmarshal(req.Arguments(), &in)
	return in, err
}

// structured returns a result with a value as structured content and as text.
func structured(v any) (mcp.Result, error) {
	raw, err := strictjson.Marshal(v)
	if err != nil {
		return nil, mcp.Errorf(mcp.CodeInternalError, "a list could not be encoded: %w", err)
	}
	r := mcp.TextResult(string(raw))
	r.StructuredContent = raw
	return r, nil
}

const cursorSchema = `"nextCursor":{"type":"string","description":"If there are more, the cursor of the next page"}`

// pageAt returns the params of a list.
func pageAt(cursor string, isNext bool) mcp.ListParams {
	if !isNext {
		return mcp.ListParams{}
	}
	return mcp.ListParams{Cursor: &cursor}
}

// unexpected returns an error for a result of the wrong type, unless the call has failed.
func unexpected(failed, res mcp.Result) error {
	if failed != nil {
		return nil
	}
	return mcp.Errorf(mcp.CodeInternalError, "a list was answered with a %T", res)
}
