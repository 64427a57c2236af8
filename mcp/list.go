// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"slices"
	"strings"
)

// page is a part of a list.
type page[D any] struct {
	items []D
	next  *string
	cache Cacheable
}

// A source is a part of a list that somebody else keeps: a mount, or a template
// that can list what it matches.
type source[D any] struct {
	key    string // sorts the sources, and names them in cursors
	site   string
	public bool // all that it gives may be cached for everybody
	// fetch begins to fetch a page, and returns what waits for it.
	fetch func(ctx context.Context, req *Request, cursor *string) (wait func() (page[D], error))
}

// list is what differs between the four lists of a mux.
type list[D any] struct {
	offered func(*ServerCapabilities) bool
	own     func(*snapshot) []D
	name    func(D) string
	sources func(*snapshot) []source[D]
	result  func(page[D], Page) Result
}

func (l *list[D]) serve(ctx context.Context, g *registry, req *Request) (Result, error) {
	s := g.load()
	sources := l.sources(s)
	if !l.offered(s.capabilities) && len(sources) == 0 {
		return nil, MethodNotFound(req.Method)
	}
	at, err := g.sealer.cursor(req)
	if err != nil {
		return nil, err
	}
	p := page[D]{cache: g.opts.ListCache}
	for i := range sources {
		if !sources[i].public {
			p.cache.CacheScope = CachePrivate // it may have private parts, and all pages of a list are alike
		}
	}
	next := l.addOwn(&p, l.own(s), at, g.opts.PageSize)
	if next == nil {
		if next, err = l.addSources(ctx, g, req, &p, sources, at); err != nil {
			return nil, err
		}
	}
	var cursor Page
	if next != nil {
		text := g.sealer.sealCursor(req, next)
		cursor.NextCursor = &text
	}
	return l.result(p, cursor), nil
}

// addOwn takes the mux's own items after the cursor.
func (l *list[D]) addOwn(p *page[D], sorted []D, at *cursor, size int) (next *cursor) {
	if at.Source != nil {
		return nil
	}
	i := 0
	if at.After != "" {
		var found bool
		i, found = slices.BinarySearchFunc(sorted, at.After, func(d D, after string) int { return strings.Compare(l.name(d), after) })
		if found {
			i++
		}
	}
	end := min(i+size, len(sorted))
	p.items = append(make([]D, 0, end-i), sorted[i:end]...)
	if end < len(sorted) {
		return &cursor{After: l.name(sorted[end-1])}
	}
	return nil
}

// maxInnerCursor bounds the cursor of a source, which travels in that of the mux, and
// comes back in a request. Without a bound one source could keep clients from those
// after it.
const maxInnerCursor = 64 << 10

// addSources goes on with the sources until the page is full. What a source
// gives as a page is taken whole.
func (l *list[D]) addSources(ctx context.Context, g *registry, req *Request, p *page[D], sources []source[D], at *cursor) (*cursor, error) {
	if len(sources) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithCancel(ctx) // of those that were asked ahead and not needed
	defer cancel()
	var ahead []func() (page[D], error) // of the sources from here on
	for i, src := range sources {
		if at.Source != nil && src.key < *at.Source {
			continue
		}
		if len(p.items) >= g.opts.PageSize {
			return &cursor{Source: &src.key}, nil
		}
		var inner *string
		if at.Source != nil && src.key == *at.Source {
			inner = at.Inner
		}
		var part page[D]
		var err error
		if inner != nil {
			part, err = src.fetch(ctx, req, inner)()
		} else {
			if ahead == nil {
				ahead = fetchAll(ctx, req, sources[i:])
			}
			part, err = ahead[0]()
			ahead = ahead[1:]
		}
		if err != nil {
			if inner != nil && CodeOf(err) == CodeInvalidParams {
				return nil, err // the cursor is no good
			}
			logSkipped(ctx, g, req, src.key, src.site, err)
			continue
		}
		p.items = append(p.items, part.items...)
		p.cache = p.cache.narrowed(part.cache)
		if part.next == nil {
			continue
		}
		if n := len(*part.next); n > maxInnerCursor {
			logSkipped(ctx, g, req, src.key, src.site, Errorf(CodeInternalError, "its cursor has %d bytes, and the limit is %d", n, maxInnerCursor))
			continue
		}
		return &cursor{Source: &src.key, Inner: part.next}, nil
	}
	return nil, nil
}

// fetchAll begins to fetch the first pages of all sources at once: they may be far
// away, and none is to wait for another.
func fetchAll[D any](ctx context.Context, req *Request, sources []source[D]) []func() (page[D], error) {
	waits := make([]func() (page[D], error), len(sources))
	for i, src := range sources {
		waits[i] = src.fetch(ctx, req, nil)
	}
	return waits
}

// logSkipped tells the operator that a source is missing from a list, rather
// than to fail the whole list for it.
func logSkipped(ctx context.Context, g *registry, req *Request, key, site string, err error) {
	if code := CodeOf(err); code == CodeMethodNotFound || code == CodeInsufficientScope || ctx.Err() != nil {
		return // there is no such list, or none for this caller
	}
	g.opts.Logger.WarnContext(ctx, "mcp: a part is missing from a list",
		"method", req.Method, "part", key, "registered", site, "error", err)
}

// narrowed is the hints of a list that holds something with other hints.
func (c Cacheable) narrowed(other Cacheable) Cacheable {
	if other.CacheScope != CachePublic {
		c.CacheScope = CachePrivate
	}
	switch {
	case c.TTLMs == nil || other.TTLMs == nil:
		c.TTLMs = nil
	case *other.TTLMs < *c.TTLMs:
		c.TTLMs = other.TTLMs
	}
	return c
}
