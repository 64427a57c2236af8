// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"
	"fmt"
	"iter"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/go-psi/psi/mcp"
)

// send sends a request and decodes its result.
func send[R any](ctx context.Context, c *Conn, method string, params any) (*R, error) {
	raw, err := c.Request(ctx, method, params)
	if err != nil {
		return nil, err
	}
	res := new(R)
	if err := jsonv2.Unmarshal(raw, res); err != nil {
		return nil, fmt.Errorf("mcptest: the result of %s: %w", method, err)
	}
	return res, nil
}

// Discover asks the server what it offers. In the legacy era it is what the
// handshake told.
func (c *Conn) Discover(ctx context.Context) (*mcp.DiscoverResult, error) { return c.era.discover(ctx) }

// CallTool calls a tool.
func (c *Conn) CallTool(ctx context.Context, p *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	return send[mcp.CallToolResult](ctx, c, mcp.MethodCallTool, p)
}

// GetPrompt gets a prompt.
func (c *Conn) GetPrompt(ctx context.Context, p *mcp.GetPromptParams) (*mcp.GetPromptResult, error) {
	return send[mcp.GetPromptResult](ctx, c, mcp.MethodGetPrompt, p)
}

// ReadResource reads a resource.
func (c *Conn) ReadResource(ctx context.Context, p *mcp.ReadResourceParams) (*mcp.ReadResourceResult, error) {
	return send[mcp.ReadResourceResult](ctx, c, mcp.MethodReadResource, p)
}

// Complete asks for values of an argument.
func (c *Conn) Complete(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	return send[mcp.CompleteResult](ctx, c, mcp.MethodComplete, p)
}

// SetLogLevel sets the least level of log messages to come.
func (c *Conn) SetLogLevel(ctx context.Context, level mcp.LoggingLevel) error {
	return c.era.setLogLevel(ctx, level)
}

// ListTools asks for one page of tools; a nil p means the first.
func (c *Conn) ListTools(ctx context.Context, p *mcp.ListParams) (*mcp.ListToolsResult, error) {
	return send[mcp.ListToolsResult](ctx, c, mcp.MethodListTools, orFirst(p))
}

// ListPrompts asks for one page of prompts; a nil p means the first.
func (c *Conn) ListPrompts(ctx context.Context, p *mcp.ListParams) (*mcp.ListPromptsResult, error) {
	return send[mcp.ListPromptsResult](ctx, c, mcp.MethodListPrompts, orFirst(p))
}

// ListResources asks for one page of resources; a nil p means the first.
func (c *Conn) ListResources(ctx context.Context, p *mcp.ListParams) (*mcp.ListResourcesResult, error) {
	return send[mcp.ListResourcesResult](ctx, c, mcp.MethodListResources, orFirst(p))
}

// ListResourceTemplates asks for one page of templates; a nil p means the first.
func (c *Conn) ListResourceTemplates(ctx context.Context, p *mcp.ListParams) (*mcp.ListResourceTemplatesResult, error) {
	return send[mcp.ListResourceTemplatesResult](ctx, c, mcp.MethodListResourceTemplates, orFirst(p))
}

func orFirst(p *mcp.ListParams) *mcp.ListParams {
	if p == nil {
		return &mcp.ListParams{}
	}
	return p
}

// Tools iterates over the tools of all pages, from p on; a nil p means from the
// first. It ends with the first error.
func (c *Conn) Tools(ctx context.Context, p *mcp.ListParams) iter.Seq2[*mcp.Tool, error] {
	return pages(p, func(p *mcp.ListParams) ([]*mcp.Tool, *string, error) {
		r, err := c.ListTools(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		return r.Tools, r.NextCursor, nil
	})
}

// Prompts iterates over prompts as [Conn.Tools] does over tools.
func (c *Conn) Prompts(ctx context.Context, p *mcp.ListParams) iter.Seq2[*mcp.Prompt, error] {
	return pages(p, func(p *mcp.ListParams) ([]*mcp.Prompt, *string, error) {
		r, err := c.ListPrompts(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		return r.Prompts, r.NextCursor, nil
	})
}

// Resources iterates over resources as [Conn.Tools] does over tools.
func (c *Conn) Resources(ctx context.Context, p *mcp.ListParams) iter.Seq2[*mcp.Resource, error] {
	return pages(p, func(p *mcp.ListParams) ([]*mcp.Resource, *string, error) {
		r, err := c.ListResources(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		return r.Resources, r.NextCursor, nil
	})
}

// ResourceTemplates iterates over templates as [Conn.Tools] does over tools.
func (c *Conn) ResourceTemplates(ctx context.Context, p *mcp.ListParams) iter.Seq2[*mcp.ResourceTemplate, error] {
	return pages(p, func(p *mcp.ListParams) ([]*mcp.ResourceTemplate, *string, error) {
		r, err := c.ListResourceTemplates(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		return r.ResourceTemplates, r.NextCursor, nil
	})
}

// pages goes through all pages of a list. A server that gives out the cursor that
// it got would go on for ever.
func pages[D any](p *mcp.ListParams, list func(*mcp.ListParams) ([]D, *string, error)) iter.Seq2[D, error] {
	return func(yield func(D, error) bool) {
		var none D
		at := *orFirst(p)
		for {
			items, next, err := list(&at)
			if err != nil {
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == nil {
				return
			}
			if at.Cursor != nil && *next == *at.Cursor {
				yield(none, fmt.Errorf("mcptest: the server gave out the cursor %q twice in a row", *next))
				return
			}
			at.Cursor = next
		}
	}
}
