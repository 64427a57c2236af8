// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/lru"
	"github.com/go-psi/psi/internal/nearest"
	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/internal/sparse"
	"github.com/go-psi/psi/jsonschema"
)

// A serverReshaper reshapes the tools of a server. shape returns the reshaping of the tool with
// an own name, and own maps the name that callers use back. Both are functions because a call
// can arrive before any list.
type serverReshaper struct {
	shape func(own string) (*reshaping, error) // nil if the tool keeps its shape
	own   func(name string) string
	names []string // own names of tools with shapes, if they are known

	schemas sentSchemas
	warned  onceEach    // tools that the shapes do not fit
	checked atomic.Bool // by warnUnlisted
}

// newShapes returns a reshaper for shapes by the tools' own names.
func newShapes(shapes map[string]Shape) (*serverReshaper, error) {
	compiled, own := make(map[string]*reshaping, len(shapes)), make(map[string]string, len(shapes))
	for _, from := range sortedKeys(shapes) {
		s := shapes[from]
		r, err := newReshaping(&s)
		if err == nil {
			_, err = r.out()
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", from, err)
		}
		if from == "" {
			return nil, errors.New("a name of a tool is empty")
		}
		if s.Name != "" {
			if other, taken := own[s.Name]; taken {
				return nil, fmt.Errorf("%q and %q are both renamed to %q", other, from, s.Name)
			}
			own[s.Name] = from
		}
		compiled[from] = r
	}
	return &serverReshaper{
		names: sortedKeys(shapes),
		shape: func(name string) (*reshaping, error) { return compiled[name], nil },
		own: func(name string) string {
			if from, ok := own[name]; ok {
				return from
			}
			return name
		},
	}, nil
}

// newShapeFuncs returns a reshaper for shapes that a function returns.
func newShapeFuncs(shape func(name string) Shape, own func(name string) string) *serverReshaper {
	return &serverReshaper{own: own, shape: func(name string) (*reshaping, error) {
		s := shape(name)
		return newReshaping(&s)
	}}
}

// around returns next with the tools in their new shapes.
func (s *serverReshaper) around(next Handler) Handler {
	return listFilter(func(ctx context.Context, req *Request) (Result, error) {
		switch req.Method {
		case MethodCallTool:
			return s.call(ctx, next, req)
		case MethodListTools:
			return s.list(ctx, next, req)
		}
		return next.ServeMCP(ctx, req)
	})
}

// A listFilter is a [HandlerFunc] that must wrap lists too.
type listFilter func(context.Context, *Request) (Result, error)

func (f listFilter) ServeMCP(ctx context.Context, req *Request) (Result, error) { return f(ctx, req) }

// FiltersLists implements [seam.ListFilter].
func (listFilter) FiltersLists(seam.Key) {}

// name returns the name that callers use for a tool with an own name.
func (r *reshaping) name(own string) string {
	if r == nil || r.Name == "" {
		return own
	}
	return r.Name
}

func (s *serverReshaper) call(ctx context.Context, next Handler, req *Request) (Result, error) {
	own := s.own(req.Name())
	r, err := s.shape(own)
	switch {
	case err != nil:
		return nil, Errorf(CodeInternalError, "the tool cannot be reshaped: %w", err)
	case r.name(own) != req.Name():
		return nil, NewUnknownNameError(KindTool, req.Name())
	case r == nil:
		return next.ServeMCP(ctx, req)
	}
	return r.serve(ctx, next, req, own, func() *jsonschema.Schema { return s.schemas.get(ctx, next, req, r, own) })
}

func (s *serverReshaper) list(ctx context.Context, next Handler, req *Request) (Result, error) {
	res, err := next.ServeMCP(ctx, req)
	list, ok := res.(*ListToolsResult)
	if err != nil || !ok || list == nil {
		return res, err
	}
	reshaped := *list
	reshaped.Tools = make([]*Tool, 0, len(list.Tools))
	for _, t := range list.Tools {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx) // servers decide how long their lists are
		}
		if t == nil {
			continue
		}
		r, err := s.shape(t.Name)
		if err == nil && s.own(r.name(t.Name)) != t.Name {
			continue // it could not be called
		}
		outer := t
		if err == nil && r != nil {
			outer, err = r.reshapeTool(t)
		}
		if err != nil {
			s.warn(ctx, req, t, err)
			continue
		}
		reshaped.Tools = append(reshaped.Tools, outer)
	}
	s.warnUnlisted(ctx, req, list)
	return &reshaped, nil
}

// warnUnlisted logs, once, the names of shapes that a complete list lacks: they are probably
// misspelled, and the tools that they are meant for keep their shape.
func (s *serverReshaper) warnUnlisted(ctx context.Context, req *Request, list *ListToolsResult) {
	if len(list.Tools) == 0 || list.NextCursor != nil || jsonscan.Member(req.Params(), "cursor") != nil || s.checked.Swap(true) {
		return
	}
	listed := map[string]bool{}
	for _, t := range list.Tools {
		if t != nil {
			listed[t.Name] = true
		}
	}
	for _, name := range s.names {
		if !listed[name] {
			req.Logger().WarnContext(ctx, "mcp: a shape is for a tool that is not listed"+nearest.Hint(name, sortedKeys(listed)), "tool", printable.Line(name))
		}
	}
}

// warn logs a tool that its shape does not fit, once, because lists are requested repeatedly.
func (s *serverReshaper) warn(ctx context.Context, req *Request, t *Tool, err error) {
	if s.warned.first(t.Name, err.Error()) {
		req.Logger().WarnContext(ctx, "mcp: a tool was left out of a list, because its shape does not fit it",
			"tool", printable.Line(sparse.Excerpt(t.Name)), "reason", printable.Line(sparse.Excerpt(err.Error())))
	}
}

// sentSchemas holds the schemas of reshaped tools as callers see them, to explain invalid
// arguments. They are bounded, because they come from servers and may differ between callers.
type sentSchemas struct {
	mu    sync.Mutex
	known *lru.Map[sentSchemaKey, *sentSchema]
}

type sentSchemaKey struct{ caller, tool string }

type sentSchema struct {
	compiled *jsonschema.Schema // nil if there is none
	size     int
	read     time.Time
}

const (
	maxSentSchemas = 8 << 20 // bytes
	// sentSchemaTTL is how long a schema is used. Only explanations depend on it.
	sentSchemaTTL = time.Minute
)

// get returns the schema of a tool as the sender of req sees it, or nil. It reads the list of
// the server if it must.
func (s *sentSchemas) get(ctx context.Context, next Handler, req *Request, r *reshaping, own string) *jsonschema.Schema {
	key := sentSchemaKey{req.Principal.Key(), own}
	s.mu.Lock()
	if s.known == nil {
		s.known = lru.NewSized[sentSchemaKey](maxSentSchemas, func(s *sentSchema) int { return s.size })
	}
	kept, ok := s.known.Get(key)
	s.mu.Unlock()
	if ok && time.Since(kept.read) < sentSchemaTTL {
		return kept.compiled
	}
	const fixed = 512 // for the place in the map
	found := &sentSchema{read: time.Now(), size: fixed + len(key.caller) + len(key.tool)}
	for t, err := range eachTool(ctx, next, req) {
		if err != nil {
			return nil
		}
		if t.Name != own {
			continue
		}
		if outer, err := r.reshapeTool(t); err == nil && outer.InputSchema != nil {
			found.compiled, _ = jsonschema.Compile(outer.InputSchema, inputOptions) // without it, there is no explanation
		}
		break
	}
	if found.compiled != nil {
		found.size += found.compiled.Size()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.Put(key, found)
	return found.compiled
}

// maxListPages bounds the pages of a list that are read on behalf of one request.
const maxListPages = 1000

// eachTool iterates over all tools that a handler lists for the sender of req, in their order.
// The iteration ends after an error, and without one after maxListPages.
func eachTool(ctx context.Context, h Handler, req *Request) iter.Seq2[*Tool, error] {
	return func(yield func(*Tool, error) bool) {
		list := req.Clone()
		list.Method = MethodListTools
		var cursor *string
		for range maxListPages {
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return
			}
			res, err := listPage(ctx, h, list, cursor)
			page, ok := res.(*ListToolsResult)
			if err == nil && (!ok || page == nil) {
				err = Errorf(CodeInternalError, "%s was answered with a %T", MethodListTools, res)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, t := range page.Tools {
				if t != nil && !yield(t, nil) {
					return
				}
			}
			if cursor = page.NextCursor; cursor == nil {
				return
			}
		}
	}
}
