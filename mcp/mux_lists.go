// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/sparse"
)

// A page is a part of a list.
type page[D any] struct {
	items []D
	next  *string
	cache Cacheable
}

// A source provides a part of a list. It is a mount, or a template that lists the resources
// it matches.
type source[D any] struct {
	key    string // sort key, and identifies the source in cursors
	site   string
	public bool // whether its items are the same for all callers
	// fetch starts fetching a page and returns a function that waits for it.
	fetch func(ctx context.Context, req *Request, cursor *string) (wait func() (page[D], error))
}

// A list is one of the four lists of a mux.
type list[D any] struct {
	kind    features
	own     func(*snapshot) table
	item    func(*entry) (d D, listed bool)
	sources func(*snapshot) []source[D]
	result  func(page[D], Page) Result
}

func (l *list[D]) serve(ctx context.Context, g *registry, req *Request) (Result, error) {
	s := g.load()
	sources := l.sources(s)
	if len(sources) == 0 && g.features()&l.kind == 0 {
		return nil, NewMethodNotFoundError(req.Method)
	}
	at, err := g.sealer.cursor(req)
	if err != nil {
		return nil, err
	}
	p := page[D]{cache: g.opts.ListCache}
	for i := range sources {
		if !sources[i].public {
			p.cache.CacheScope = CachePrivate // it may contain private items, and all pages have the same scope
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

// addOwn adds the mux's own items after the cursor, at most size. It returns the cursor of
// the next page, or nil if there are no more own items.
func (l *list[D]) addOwn(p *page[D], own table, at *cursor, size int) (next *cursor) {
	if at.Source != nil {
		return nil
	}
	i, found := own.search(at.After)
	if found {
		i++
	}
	own = own[i:]
	p.items = make([]D, 0, min(size, len(own)))
	last := ""
	for _, e := range own {
		d, listed := l.item(e)
		switch {
		case !listed:
		case len(p.items) == size:
			return &cursor{After: last}
		default:
			p.items, last = append(p.items, d), e.key
		}
	}
	return nil
}

// maxInnerCursor is the maximum size in bytes of the cursor of a source. It is part of the
// mux's cursor, which clients send back in a request. If that request were too large,
// clients could not reach the sources that follow.
const maxInnerCursor = 64 << 10

// checkInnerCursor returns an error if the cursor of a source is too long or was repeated.
// Clients cannot detect a repeated cursor, because each cursor of the mux is different.
func checkInnerCursor(next string, before *string) error {
	switch {
	case len(next) > maxInnerCursor:
		return Errorf(CodeInternalError, "its cursor has %d bytes, and the limit is %d", len(next), maxInnerCursor)
	case before != nil && next == *before:
		return Errorf(CodeInternalError, "it repeats a cursor: its list has no end")
	}
	return nil
}

// addSources adds pages of the sources until p is full. Pages of a source are not split.
func (l *list[D]) addSources(ctx context.Context, g *registry, req *Request, p *page[D], sources []source[D], at *cursor) (*cursor, error) {
	if len(sources) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithCancel(ctx) // cancels prefetches that are not needed
	defer cancel()
	var ahead []func() (page[D], error) // first pages of the remaining sources
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
				return nil, err // the source rejected its cursor
			}
			if !isNoList(err) {
				p.cache.TTLMs = nil // the source may be available next time
			}
			logSkipped(ctx, g, req, src.key, src.site, err)
			continue
		}
		p.items = append(p.items, part.items...)
		p.cache = p.cache.narrowed(part.cache)
		if part.next == nil {
			continue
		}
		if err := checkInnerCursor(*part.next, inner); err != nil {
			logSkipped(ctx, g, req, src.key, src.site, err)
			continue
		}
		return &cursor{Source: &src.key, Inner: part.next}, nil
	}
	return nil, nil
}

// fetchAll starts fetching the first pages of all sources, so that their delays do not add
// up.
func fetchAll[D any](ctx context.Context, req *Request, sources []source[D]) []func() (page[D], error) {
	waits := make([]func() (page[D], error), len(sources))
	for i, src := range sources {
		waits[i] = src.fetch(ctx, req, nil)
	}
	return waits
}

// logSkipped logs that a source was skipped. The list itself does not fail.
func logSkipped(ctx context.Context, g *registry, req *Request, key, site string, err error) {
	if isNoList(err) || ctx.Err() != nil {
		return
	}
	g.opts.Logger.WarnContext(ctx, "mcp: a part is missing from a list",
		"method", req.Method, "part", key[len(mountKey):], "registered", site, "error", sparse.Excerpt(err.Error()))
}

// isNoList reports whether err, returned by a source, means that it has no such list, or
// that the caller may not see it.
func isNoList(err error) bool {
	return CodeOf(err) == CodeMethodNotFound || CodeOf(err) == CodeInsufficientScope
}

// narrowed returns the hints of a list that combines items with the hints c and other.
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

var toolsList = list[*Tool]{
	kind: featureTools,
	own:  func(s *snapshot) table { return s.tools },
	item: func(e *entry) (*Tool, bool) { return e.tool, e.tool != nil },
	sources: func(s *snapshot) []source[*Tool] {
		return mountSources(s, func(s *snapshot, m *mount, r *ListToolsResult) page[*Tool] {
			return page[*Tool]{m.outerTools(s, r.Tools), r.NextCursor, r.Cacheable}
		})
	},
	result: func(p page[*Tool], at Page) Result {
		return &ListToolsResult{Tools: p.items, Page: at, Cacheable: p.cache}
	},
}

var promptsList = list[*Prompt]{
	kind: featurePrompts,
	own:  func(s *snapshot) table { return s.prompts },
	item: func(e *entry) (*Prompt, bool) { return e.prompt, e.prompt != nil },
	sources: func(s *snapshot) []source[*Prompt] {
		return mountSources(s, func(s *snapshot, m *mount, r *ListPromptsResult) page[*Prompt] {
			return page[*Prompt]{m.outerPrompts(s, r.Prompts), r.NextCursor, r.Cacheable}
		})
	},
	result: func(p page[*Prompt], at Page) Result {
		return &ListPromptsResult{Prompts: p.items, Page: at, Cacheable: p.cache}
	},
}

var resourcesList = list[*Resource]{
	kind: featureResources,
	own:  func(s *snapshot) table { return s.resources },
	item: func(e *entry) (*Resource, bool) { return e.resource, e.resource != nil },
	sources: func(s *snapshot) []source[*Resource] {
		mounts := mountSources(s, func(s *snapshot, m *mount, r *ListResourcesResult) page[*Resource] {
			return page[*Resource]{m.outerResources(s, r.Resources), r.NextCursor, r.Cacheable}
		})
		return append(templateSources(s), mounts...)
	},
	result: func(p page[*Resource], at Page) Result {
		return &ListResourcesResult{Resources: p.items, Page: at, Cacheable: p.cache}
	},
}

var templatesList = list[*ResourceTemplate]{
	kind: featureResources,
	own:  func(s *snapshot) table { return s.templates },
	item: func(e *entry) (*ResourceTemplate, bool) { return e.listed, e.listed != nil },
	sources: func(s *snapshot) []source[*ResourceTemplate] {
		return mountSources(s, func(s *snapshot, m *mount, r *ListResourceTemplatesResult) page[*ResourceTemplate] {
			return page[*ResourceTemplate]{m.outerTemplates(s, r.ResourceTemplates), r.NextCursor, r.Cacheable}
		})
	},
	result: func(p page[*ResourceTemplate], at Page) Result {
		return &ListResourceTemplatesResult{ResourceTemplates: p.items, Page: at, Cacheable: p.cache}
	},
}

func (g *registry) listTools(ctx context.Context, req *Request) (Result, error) {
	return toolsList.serve(ctx, g, req)
}

func (g *registry) listPrompts(ctx context.Context, req *Request) (Result, error) {
	return promptsList.serve(ctx, g, req)
}

func (g *registry) listResources(ctx context.Context, req *Request) (Result, error) {
	return resourcesList.serve(ctx, g, req)
}

func (g *registry) listTemplates(ctx context.Context, req *Request) (Result, error) {
	return templatesList.serve(ctx, g, req)
}

// A lister returns a page of the resources that the template under which it is registered
// matches.
type lister func(ctx context.Context, template string, p *ListParams) (*ListResourcesResult, error)

// listerOf returns the lister of a template: that of the file server h, or the List function
// of its description. It returns nil if there is neither.
func listerOf(h Handler, d Description) lister {
	if files, ok := h.(*fileServer); ok {
		return files.list
	}
	if r, ok := d.(*Resource); ok && r.List != nil {
		return func(ctx context.Context, _ string, p *ListParams) (*ListResourcesResult, error) {
			return r.List(ctx, p)
		}
	}
	return nil
}

// Prefixes of source keys, which sort templates before mounts.
const (
	templateKey = "0"
	mountKey    = "1"
)

func templateSources(s *snapshot) []source[*Resource] {
	var sources []source[*Resource]
	for _, e := range s.templates {
		if e.lister == nil {
			continue
		}
		sources = append(sources, source[*Resource]{
			key: templateKey + e.name, site: e.site, public: e.public,
			fetch: func(ctx context.Context, req *Request, cursor *string) func() (page[*Resource], error) {
				return func() (page[*Resource], error) {
					res, err := listPage(ctx, e.handler, req, cursor)
					if err != nil {
						return page[*Resource]{}, err
					}
					r, ok := res.(*ListResourcesResult)
					if !ok {
						return page[*Resource]{}, Errorf(CodeInternalError, "%s was answered with a %T", req.Method, res)
					}
					e.warned.Do(func() { e.warnListed(ctx, s, r.Resources) })
					return page[*Resource]{r.Resources, r.NextCursor, r.Cacheable}, nil
				}
			},
		})
	}
	return sources
}

// listPage calls h for the page at cursor of the list that req requests.
func listPage(ctx context.Context, h Handler, req *Request, cursor *string) (Result, error) {
	inner, err := req.withCursor(cursor)
	if err != nil {
		return nil, err
	}
	return h.ServeMCP(contextWithRequest(ctx, inner), inner)
}

// withCursor returns a request for the page at cursor of the same list.
func (r *Request) withCursor(cursor *string) (*Request, error) {
	return r.WithParams(&ListParams{Cursor: cursor, Meta: r.Meta()})
}

// alwaysPublic reports whether the lists of h, a handler of this package, are public.
func alwaysPublic(h Handler) bool {
	files, ok := h.(*fileServer)
	return ok && files.opts.Cache.CacheScope == CachePublic
}

// mountSources returns a source for every mount. R is the type of the list's result, and
// take converts it to a page.
func mountSources[D any, R Result](s *snapshot, take func(*snapshot, *mount, R) page[D]) []source[D] {
	var sources []source[D]
	for _, m := range s.mounts {
		sources = append(sources, source[D]{
			key: mountKey + string(m.prefix), site: m.site,
			fetch: func(ctx context.Context, req *Request, cursor *string) func() (page[D], error) {
				inner, err := req.withCursor(cursor)
				if err != nil {
					return func() (page[D], error) { return page[D]{}, err }
				}
				wait := m.send(ctx, inner)
				return func() (page[D], error) {
					res, err := wait()
					if err != nil {
						return page[D]{}, err
					}
					r, ok := res.(R)
					if !ok {
						return page[D]{}, Errorf(CodeInternalError, "%s was answered with a %T", req.Method, res)
					}
					return take(s, m, r), nil
				}
			},
		})
	}
	return sources
}

// A cursor is the position at which a list continues. The mux's own items come first,
// sorted by name, then the items of its sources, each in its own order. A cursor names
// items rather than positions, so that changes to the list neither repeat nor skip
// unchanged items. Lists are sorted by name because the order of registration would differ
// between replicas.
type cursor struct {
	After  string  `json:"k,omitempty"` // last own item that was listed
	Source *string `json:"s,omitzero"`  // the source to continue with, after all own items
	Inner  *string `json:"c,omitzero"`  // cursor of that source
}

// sealCursor encodes c for the sender of req. It encrypts the cursor, which may name items
// that middleware hides.
func (s *sealer) sealCursor(req *Request, c *cursor) string {
	return s.ring.Seal(mustMarshal(c), s.listBinding(req))
}

// listBinding returns a digest of everything that must be the same for all pages of a list.
func (s *sealer) listBinding(req *Request) []byte {
	return digestParts(append(s.bindingOf(req), "cursor"))
}

// cursor returns the position at which the list that req requests continues.
func (s *sealer) cursor(req *Request) (*cursor, error) {
	c := new(cursor)
	given := jsonscan.Member(req.Params(), "cursor")
	switch {
	case given == nil || string(given) == "null":
		return c, nil
	case given[0] != '"':
		return nil, Errorf(CodeInvalidParams, "params.cursor must be a string")
	}
	raw, err := s.ring.Open(jsonscan.Text(given), s.listBinding(req))
	if err != nil || unmarshal(raw, c) != nil {
		return nil, badCursor()
	}
	return c, nil
}

func badCursor() *Error {
	return Errorf(CodeInvalidParams, "params.cursor was not issued by this server; start again without it")
}
