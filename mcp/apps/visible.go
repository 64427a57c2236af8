// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package apps

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-psi/psi/internal/mark"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
)

var core = mcp.Internal(seam.Key{})

// Client returns the extension of a host, for [mcp.ClientOptions].Extensions. It declares
// that the client shows pages, and separates the tools of the model and of apps. Requests
// are made on behalf of the model, which can list and call only the tools for models,
// unless their context comes from [AsApp].
//
// Client is not for the client of a gateway, which must pass on all tools: a client with
// Forward passes on what its callers declare.
func Client() *mcp.ClientExtension {
	return &mcp.ClientExtension{ID: Extension, Settings: clientSettings, Middleware: forModels}
}

// forModels returns the middleware that hides tools that are only for apps, except from apps.
func forModels(*mcp.Conn) mcp.Middleware {
	return newVisibilityFilter(func(ctx context.Context, _ *mcp.Request) Visibility {
		if mark.IsApp(ctx) {
			return ForApp
		}
		return ForModel
	})
}

// AsApp returns a context for requests made by a page. With it, a connection whose client
// has the extension [Client] can list and call only the tools for apps.
func AsApp(ctx context.Context) context.Context { return mark.App(ctx) }

// HideAppTools returns middleware for a server or a gateway that hides tools that are only
// for apps from clients that do not declare the extension, because these would show them to
// a model. Such clients can neither list nor call the tools. Use it around a whole mux.
func HideAppTools() mcp.Middleware {
	return newVisibilityFilter(func(_ context.Context, req *mcp.Request) Visibility {
		if supports(req.ClientCapabilities()) {
			return ""
		}
		return ForModel
	})
}

// A VisibilityError means that a tool is not for the side that called it.
type VisibilityError struct {
	Tool   string
	Caller Visibility
}

func (e *VisibilityError) Error() string {
	other := map[Visibility]Visibility{ForModel: ForApp, ForApp: ForModel}[e.Caller]
	return fmt.Sprintf("apps: the tool %.200q is for the %s only, and the %s has called it", e.Tool, other, e.Caller)
}

// Unwrap returns the error that peers see: the tool does not exist.
func (e *VisibilityError) Unwrap() error { return mcp.NewUnknownNameError("tool", e.Tool) }

// A visibilityFilter shows each side only its own tools. One piece of middleware decides, so
// a host cannot forget the check on one of its paths to a tool.
type visibilityFilter struct {
	next   mcp.Handler
	caller func(context.Context, *mcp.Request) Visibility // "" for a caller that sees all tools

	mu    sync.Mutex
	known map[string]*ToolMeta // metadata in lists, by the name of the tool
}

func newVisibilityFilter(caller func(context.Context, *mcp.Request) Visibility) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return &visibilityFilter{next: next, caller: caller, known: map[string]*ToolMeta{}}
	}
}

// ServeMCP implements [mcp.Handler].
func (s *visibilityFilter) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	switch req.Method {
	case mcp.MethodListTools:
		return s.list(ctx, req)
	case mcp.MethodCallTool:
		if caller := s.caller(ctx, req); caller != "" {
			if err := s.check(ctx, req, caller); err != nil {
				return nil, err
			}
		}
	}
	return s.next.ServeMCP(ctx, req)
}

// list removes the tools that are not for the caller. A tool with malformed metadata is for
// no caller.
func (s *visibilityFilter) list(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	res, err := s.next.ServeMCP(ctx, req)
	list, ok := res.(*mcp.ListToolsResult)
	if err != nil || !ok {
		return res, err
	}
	s.learn(list.Tools)
	caller := s.caller(ctx, req)
	if caller == "" {
		return res, nil
	}
	c := *list
	c.Tools = make([]*mcp.Tool, 0, len(list.Tools))
	for _, t := range list.Tools {
		if m, err := MetaOf(t); err == nil && m.IsFor(caller) {
			c.Tools = append(c.Tools, t)
		}
	}
	return &c, nil
}

// maxKnown limits the remembered tools.
const maxKnown = 10_000

// nobody replaces the metadata of a tool whose own is malformed.
var nobody = &ToolMeta{Visibility: []Visibility{}}

// learn remembers the metadata of the tools in a list. Tools without metadata are
// remembered, too, so that a call need not look for them.
func (s *visibilityFilter) learn(tools []*mcp.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) > maxKnown {
		clear(s.known)
	}
	for _, t := range tools {
		m, err := MetaOf(t)
		if err != nil {
			m = nobody
		}
		s.known[t.Name] = m
	}
}

func (s *visibilityFilter) knows(name string) (*ToolMeta, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.known[name]
	return m, ok
}

// check returns an error if the caller must not call a tool. If the tool is not known yet,
// check reads the lists. A tool that is in no list has no page and may be called. It is not
// remembered, because it may be added later, may be in the lists of another caller, and can
// have any name.
func (s *visibilityFilter) check(ctx context.Context, req *mcp.Request, caller Visibility) error {
	name := req.Name()
	m, ok := s.knows(name)
	if !ok {
		var listed []*mcp.Tool
		for t, err := range core.Tools(ctx, s.next, req) {
			if mcp.CodeOf(err) == mcp.CodeMethodNotFound {
				break // there are no lists
			}
			if err != nil {
				return err
			}
			if listed = append(listed, t); t.Name == name {
				break
			}
			if len(listed) == maxKnown {
				s.learn(listed) // and forget others
				listed = nil
			}
		}
		s.learn(listed)
		m, _ = s.knows(name)
	}
	if !m.IsFor(caller) {
		return &VisibilityError{name, caller}
	}
	return nil
}
