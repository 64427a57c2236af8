// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// The extension does not define a list of tasks. This file serves one to requests from this
// process; see [tasking.MethodList].

// listPage is the number of tasks per page.
const listPage = 50

// Prefixes of cursors: the list continues after one of the manager's own tasks, or with the
// tasks of mounted servers.
const (
	cursorOwn  = "own/"
	cursorNext = "next/"
)

// listTasks lists the tasks of an authenticated caller, the last to expire first, and then
// the tasks of mounted servers.
func (m *Manager) listTasks(ctx context.Context, next mcp.Handler, req *mcp.Request) (mcp.Result, error) {
	if core.TaskTerms(req) == nil {
		return next.ServeMCP(ctx, req) // for other requests, the method does not exist
	}
	var p mcp.ListParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	var page tasking.List
	after := ""
	if p.Cursor != nil {
		inner, isNext := strings.CutPrefix(*p.Cursor, cursorNext)
		if isNext {
			return listNext(ctx, next, req, &page, &inner)
		}
		var isOwn bool
		if after, isOwn = strings.CutPrefix(*p.Cursor, cursorOwn); !isOwn {
			return nil, mcp.Errorf(mcp.CodeInvalidParams, "params.cursor was not issued by this server; start again without it")
		}
	}
	more, err := m.listOwn(ctx, req.Principal, &page, after)
	switch {
	case err != nil:
		return nil, clientError(err)
	case more:
		return listResult(&page), nil
	}
	return listNext(ctx, next, req, &page, nil)
}

// listOwn adds the caller's tasks that follow the key after, and reports whether there are
// more.
func (m *Manager) listOwn(ctx context.Context, caller *mcp.Principal, page *tasking.List, after string) (more bool, err error) {
	keys, err := m.tasksOf(ctx, caller)
	if err != nil {
		return false, err
	}
	for _, key := range keys {
		if after != "" && key >= after {
			continue
		}
		if len(page.Tasks) == listPage {
			return true, nil
		}
		_, id, _ := strings.Cut(key, "/")
		rec, err := m.loadFor(ctx, caller, id)
		switch {
		case isRefused(err):
			continue
		case err != nil:
			return false, err
		}
		page.Tasks = append(page.Tasks, tasking.Listed{Task: strictjson.MustMarshal(&rec.Task), IsError: rec.IsError})
		page.NextCursor = new(cursorOwn + key)
	}
	page.NextCursor = nil
	return false, nil
}

// tasksOf returns a key for each task of a caller, made of its expiry time and its ID. The
// last task to expire comes first. Unauthenticated callers cannot be told apart and have no
// tasks.
func (m *Manager) tasksOf(ctx context.Context, caller *mcp.Principal) (keys []string, err error) {
	if caller == nil {
		return nil, nil
	}
	x, _, err := m.store.Get(ctx, m.key("caller", callerOf(caller)))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	for id, expires := range index(x).all() {
		if expires >= time.Now().Unix() {
			keys = append(keys, fmt.Sprintf("%016x/%s", expires, id))
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Compare(b, a) })
	return keys, err
}

// listNext adds the tasks of mounted servers.
func listNext(ctx context.Context, next mcp.Handler, req *mcp.Request, page *tasking.List, cursor *string) (mcp.Result, error) {
	inner, err := req.WithParams(&mcp.ListParams{Cursor: cursor, Meta: req.Meta()})
	if err != nil {
		return nil, err
	}
	res, err := next.ServeMCP(core.ContextWithRequest(ctx, inner), inner)
	switch {
	case mcp.CodeOf(err) == mcp.CodeMethodNotFound: // nothing is mounted
		return listResult(page), nil
	case err != nil:
		return nil, err
	}
	var more tasking.List
	raw, err := strictjson.Marshal(res)
	if err == nil {
		err = strictjson.Unmarshal(raw, &more)
	}
	if err != nil {
		return nil, fmt.Errorf("tasks: the list of a mounted server: %w: %w", mcp.ErrUnreadable, err)
	}
	page.Tasks = append(page.Tasks, more.Tasks...)
	if more.NextCursor != nil {
		page.NextCursor = new(cursorNext + *more.NextCursor)
	}
	return listResult(page), nil
}

func listResult(page *tasking.List) mcp.Result {
	extra := map[string]json.RawMessage{"tasks": strictjson.MustMarshal(page.Tasks)}
	if page.NextCursor != nil {
		extra["nextCursor"] = strictjson.MustMarshal(*page.NextCursor)
	}
	return &mcp.EmptyResult{ResultBase: mcp.ResultBase{Extra: extra}}
}
