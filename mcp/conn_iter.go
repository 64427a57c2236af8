// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"iter"
)

// ErrRepeatedCursor ends the iteration over a list whose server gives out a cursor
// that it gave out before.
var ErrRepeatedCursor = errors.New("mcp: the server repeats a cursor: its list has no end")

// Tools yields the tools of all pages. It stops after an error, which comes with a
// nil tool. Params may be nil; their cursor is where to begin.
func (c *Conn) Tools(ctx context.Context, p *ListParams) iter.Seq2[*Tool, error] {
	return pages(p, func(p *ListParams) ([]*Tool, *string, error) {
		r, err := c.ListTools(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		return r.Tools, r.NextCursor, nil
	})
}

// Prompts yields the prompts of all pages, as [Conn.Tools] does.
func (c *Conn) Prompts(ctx context.Context, p *ListParams) iter.Seq2[*Prompt, error] {
	return pages(p, func(p *ListParams) ([]*Prompt, *string, error) {
		r, err := c.ListPrompts(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		return r.Prompts, r.NextCursor, nil
	})
}

// Resources yields the resources of all pages, as [Conn.Tools] does.
func (c *Conn) Resources(ctx context.Context, p *ListParams) iter.Seq2[*Resource, error] {
	return pages(p, func(p *ListParams) ([]*Resource, *string, error) {
		r, err := c.ListResources(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		return r.Resources, r.NextCursor, nil
	})
}

// ResourceTemplates yields the templates of all pages, as [Conn.Tools] does.
func (c *Conn) ResourceTemplates(ctx context.Context, p *ListParams) iter.Seq2[*ResourceTemplate, error] {
	return pages(p, func(p *ListParams) ([]*ResourceTemplate, *string, error) {
		r, err := c.ListResourceTemplates(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		return r.ResourceTemplates, r.NextCursor, nil
	})
}

func pages[D any](p *ListParams, fetch func(*ListParams) ([]*D, *string, error)) iter.Seq2[*D, error] {
	return func(yield func(*D, error) bool) {
		at := *orEmpty(p)
		seen := map[string]bool{}
		for {
			items, next, err := fetch(&at)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, d := range items {
				if !yield(d, nil) {
					return
				}
			}
			if next == nil {
				return
			}
			if seen[*next] {
				yield(nil, ErrRepeatedCursor)
				return
			}
			seen[*next] = true
			at.Cursor = next
		}
	}
}
