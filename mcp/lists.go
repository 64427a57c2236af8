// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "context"

var toolsList = list[*Tool]{
	offered: func(c *ServerCapabilities) bool { return c.Tools != nil },
	own:     func(s *snapshot) []*Tool { return s.toolList },
	name:    func(t *Tool) string { return t.Name },
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
	offered: func(c *ServerCapabilities) bool { return c.Prompts != nil },
	own:     func(s *snapshot) []*Prompt { return s.promptList },
	name:    func(p *Prompt) string { return p.Name },
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
	offered: func(c *ServerCapabilities) bool { return c.Resources != nil },
	own:     func(s *snapshot) []*Resource { return s.resourceList },
	name:    func(r *Resource) string { return r.URI },
	sources: func(s *snapshot) []source[*Resource] {
		mounts := mountSources(s, func(_ *snapshot, m *mount, r *ListResourcesResult) page[*Resource] {
			return page[*Resource]{m.outerResources(r.Resources), r.NextCursor, r.Cacheable}
		})
		return append(templateSources(s), mounts...)
	},
	result: func(p page[*Resource], at Page) Result {
		return &ListResourcesResult{Resources: p.items, Page: at, Cacheable: p.cache}
	},
}

var templatesList = list[*ResourceTemplate]{
	offered: func(c *ServerCapabilities) bool { return c.Resources != nil },
	own:     func(s *snapshot) []*ResourceTemplate { return s.templateList },
	name:    func(t *ResourceTemplate) string { return t.URITemplate },
	sources: func(s *snapshot) []source[*ResourceTemplate] {
		return mountSources(s, func(_ *snapshot, m *mount, r *ListResourceTemplatesResult) page[*ResourceTemplate] {
			return page[*ResourceTemplate]{m.outerTemplates(r.ResourceTemplates), r.NextCursor, r.Cacheable}
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

// A ResourceLister is the Handler of a template that can list the resources
// which its template matches; they then stand in resources/list.
type ResourceLister interface {
	Handler
	// ListResources lists one page. The template is the one it is registered
	// under; cursor is nil for the first page, otherwise one that a page before
	// ended with, or anything else that a client made up. It is called for
	// every resources/list and must return within a bounded time.
	ListResources(ctx context.Context, template string, cursor *string) (*ListResourcesResult, error)
}

// Keys of sources sort templates before mounts.
const (
	templateKey = "0"
	mountKey    = "1"
)

func templateSources(s *snapshot) []source[*Resource] {
	var sources []source[*Resource]
	for _, e := range s.listers {
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
					return page[*Resource]{r.Resources, r.NextCursor, r.Cacheable}, nil
				}
			},
		})
	}
	return sources
}

// listPage asks h for a page of the list that req asks for.
func listPage(ctx context.Context, h Handler, req *Request, cursor *string) (Result, error) {
	inner, err := req.withCursor(cursor)
	if err != nil {
		return nil, err
	}
	return h.ServeMCP(contextWithRequest(ctx, inner), inner)
}

// withCursor returns a request for another page of the list.
func (r *Request) withCursor(cursor *string) (*Request, error) {
	return r.WithParams(&ListParams{Cursor: cursor, Meta: r.Meta()})
}

// alwaysPublic reports whether a lister is one of this package that says so.
func alwaysPublic(l ResourceLister) bool {
	known, ok := l.(interface{ cacheHints() Cacheable })
	return ok && known.cacheHints().CacheScope == CachePublic
}

// mountSources makes a source of every mount whose list is an R.
func mountSources[D any, R Result](s *snapshot, take func(*snapshot, *mount, R) page[D]) []source[D] {
	var sources []source[D]
	for _, m := range s.mounts {
		sources = append(sources, source[D]{
			key: mountKey + m.prefix, site: m.site,
			fetch: func(ctx context.Context, req *Request, cursor *string) func() (page[D], error) {
				asked, err := m.list(ctx, req, cursor)
				return func() (page[D], error) {
					if err != nil {
						return page[D]{}, err
					}
					res, err := asked.wait()
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
