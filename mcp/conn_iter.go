// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"crypto/sha256"
	"errors"
	"iter"
)

// Errors that end the iteration over a list.
var (
	// ErrRepeatedCursor means that the server gave out a cursor that it gave out
	// before.
	ErrRepeatedCursor = errors.New("mcp: the server repeats a cursor: its list has no end")
	// ErrTooManyPages means that the list has more than ClientOptions.MaxPages pages.
	ErrTooManyPages = errors.New("mcp: the server's list has more pages than the client reads")
)

// Tools yields the tools of all pages. It stops after an error, which comes with a
// nil tool. Params may be nil; their cursor is where to begin.
func (c *Conn) Tools(ctx context.Context, p *ListParams) iter.Seq2[*Tool, error] {
	return c.toolPages(ctx, p, c.client.opts.MaxPages)
}

func (c *Conn) toolPages(ctx context.Context, p *ListParams, most int) iter.Seq2[*Tool, error] {
	return pages(most, p, func(p *ListParams) ([]*Tool, *string, error) {
		r, err := c.ListTools(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		return r.Tools, r.NextCursor, nil
	})
}

// Prompts yields the prompts of all pages, as [Conn.Tools] does.
func (c *Conn) Prompts(ctx context.Context, p *ListParams) iter.Seq2[*Prompt, error] {
	return pages(c.client.opts.MaxPages, p, func(p *ListParams) ([]*Prompt, *string, error) {
		r, err := c.ListPrompts(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		return r.Prompts, r.NextCursor, nil
	})
}

// Resources yields the resources of all pages, as [Conn.Tools] does.
func (c *Conn) Resources(ctx context.Context, p *ListParams) iter.Seq2[*Resource, error] {
	return pages(c.client.opts.MaxPages, p, func(p *ListParams) ([]*Resource, *string, error) {
		r, err := c.ListResources(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		return r.Resources, r.NextCursor, nil
	})
}

// ResourceTemplates yields the templates of all pages, as [Conn.Tools] does.
func (c *Conn) ResourceTemplates(ctx context.Context, p *ListParams) iter.Seq2[*ResourceTemplate, error] {
	return pages(c.client.opts.MaxPages, p, func(p *ListParams) ([]*ResourceTemplate, *string, error) {
		r, err := c.ListResourceTemplates(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		return r.ResourceTemplates, r.NextCursor, nil
	})
}

// pages yields the items of all pages, of which it reads as many as most, or any number
// if that is negative.
func pages[D any](most int, p *ListParams, fetch func(*ListParams) ([]*D, *string, error)) iter.Seq2[*D, error] {
	return func(yield func(*D, error) bool) {
		at := *orEmpty(p)
		seen := map[[sha256.Size]byte]bool{} // a cursor may be long
		for n := 1; ; n++ {
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
			sum := sha256.Sum256([]byte(*next))
			switch {
			case seen[sum]:
				yield(nil, ErrRepeatedCursor)
				return
			case n == most:
				yield(nil, ErrTooManyPages)
				return
			}
			seen[sum] = true
			at.Cursor = next
		}
	}
}
