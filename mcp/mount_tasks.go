// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/tasking"
)

// This file makes the tasks of a mounted server, by the extension
// io.modelcontextprotocol/tasks, tasks of the mux. The ID of such a task in the mux is that
// in the mount, and which mount that is, sealed for the caller. One task has one ID, however
// often it is listed.

// A mountedTask is what the ID of a task in the mux is made of.
type mountedTask struct {
	Mount string `json:"m"` // the prefix
	ID    string `json:"t"` // in the mount
	// Scopes are those of the token that created the task, unless the mount is a mux, which
	// knows them.
	Scopes []string `json:"s,omitempty"`
}

// taskBinding digests what the IDs of tasks are bound to.
func (s *sealer) taskBinding(req *Request) []byte {
	parts := []string{"task", s.server, req.mounts}
	if p := req.Principal; p != nil {
		parts = append(parts, p.Issuer, p.Subject)
	}
	return digestParts(parts)
}

// outerTask returns the ID in the mux of a task of the mount, for the sender of a request to
// the mux.
func (mt *mount) outerTask(req *Request, id string) string {
	s, t := mt.parent.sealer, &mountedTask{Mount: mt.prefix, ID: id}
	if _, isMux := mt.handler.(*Mux); !isMux && req.Principal != nil {
		t.Scopes = req.Principal.Scopes
	}
	return s.ring.SealSame(mustMarshal(t), s.taskBinding(req))
}

// mountedTask returns the mount that a task of the mux lives in, and its ID there. The mount
// is nil for all other IDs. The error is for a token that may not use the task.
func (g *registry) mountedTask(req *Request, id string) (mt *mount, inner string, err error) {
	var t mountedTask
	raw, err := g.sealer.ring.Open(id, g.sealer.taskBinding(req))
	if err != nil || unmarshal(raw, &t) != nil {
		return nil, "", nil //nolint:nilerr // it is the ID of something else
	}
	if p := req.Principal; p != nil && !tasking.MayUse(p.Scopes, t.Scopes) {
		err = NewInsufficientScopeError(t.Scopes...)
	}
	for _, mt := range g.load().mounts {
		if mt.prefix == t.Mount {
			return mt, t.ID, err
		}
	}
	return nil, "", nil
}

// declares reports whether the sender of a request declares an extension.
func declares(req *Request, extension string) bool {
	return jsonscan.Member(jsonscan.Member(req.peer.caps, "extensions"), extension) != nil
}

// errNoTasks is the error for a client that must support tasks and does not.
func errNoTasks() *Error {
	required := &ClientCapabilities{Extensions: Extensions{tasking.Extension: json.RawMessage("{}")}}
	return Errorf(CodeMissingCapability, "this request needs a client that supports the extension %s", tasking.Extension).
		WithData(map[string]any{"requiredCapabilities": required})
}

// serveTask serves a request about a task of a mount.
func (g *registry) serveTask(ctx context.Context, req *Request) (Result, error) {
	mt, id, err := g.mountedTask(req, req.Name())
	switch {
	case mt == nil && !g.hasMountedTasks(ctx, req):
		return nil, NewMethodNotFoundError(req.Method)
	case !declares(req, tasking.Extension):
		return nil, errNoTasks()
	case mt == nil:
		return nil, Errorf(CodeInvalidParams, "params.taskId names no task, or none that is still kept")
	case err != nil:
		return nil, err
	}
	inner := req.withName(id)
	inner.mounts += mt.prefix + "/"
	res, err := mt.serve.ServeMCP(contextWithRequest(ctx, inner), inner)
	if err != nil || req.Method != tasking.MethodGet {
		return mt.renameResult(res), err
	}
	return mt.renameTask(res, req.Name())
}

// createdTask returns the result that creates a task of the mount, as one of the mux.
func (mt *mount) createdTask(req *Request, res Result) (Result, error) {
	raw, err := encodeAnswer(res)
	if err != nil {
		return nil, err
	}
	id := taskIDOf(raw)
	if id == "" {
		return nil, Errorf(CodeInternalError, "the mounted server answered %s with a task that has no ID", req.Method)
	}
	return mt.renameTask(res, mt.outerTask(req, id))
}

// taskIDOf returns the ID of a task, "" if it has none.
func taskIDOf(task json.RawMessage) string {
	raw := jsonscan.Member(task, "taskId")
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return jsonscan.Text(raw)
}

// renameTask returns a result that is a task of the mount, as one of the mux.
func (mt *mount) renameTask(res Result, id string) (Result, error) {
	raw, err := encodeAnswer(res)
	if err != nil {
		return nil, err
	}
	renamed := new(EmptyResult)
	if raw, err = mt.renameTaskObject(raw, id); err == nil {
		err = unmarshal(raw, renamed)
	}
	if err != nil {
		return nil, &Error{Code: CodeInternalError, Message: "the mounted server answered with a task that cannot be read", Cause: err}
	}
	renamed.Meta = withoutKey(renamed.Meta, MetaServerInfo)
	return renamed, nil
}

// renameTaskObject returns a task of the mount, in a result or a notification, as one of the
// mux: with another ID, and with other URIs in its result.
func (mt *mount) renameTaskObject(task json.RawMessage, id string) (json.RawMessage, error) {
	renamed := jsonscan.AppendString(jsonscan.AppendKey([]byte{'{'}, "taskId"), id)
	result := jsonscan.Member(task, "result")
	if result == nil || string(result) == "null" {
		return jsonscan.AppendMembers(renamed, task, "taskId"), nil
	}
	res, err := decodeResult(MethodCallTool, result)
	if err != nil {
		return nil, err
	}
	if result, err = encodeAnswer(mt.renameResult(res)); err != nil {
		return nil, err
	}
	renamed = append(jsonscan.AppendKey(renamed, "result"), result...)
	return jsonscan.AppendMembers(renamed, task, "taskId", "result"), nil
}

// hasMountedTasks reports whether a mount has tasks.
func (g *registry) hasMountedTasks(ctx context.Context, req *Request) bool {
	return slices.ContainsFunc(g.load().mounts, func(mt *mount) bool { return mt.hasTasks(ctx, req) })
}

// hasTasks reports whether the mounted server has tasks.
func (mt *mount) hasTasks(ctx context.Context, req *Request) bool {
	if _, isMux := mt.handler.(*Mux); !isMux {
		return mt.passesTasks()
	}
	inner := req.derive(MethodDiscover, nil)
	res, err := serve(contextWithRequest(ctx, inner), mt.handler, inner, nil, mt.parent.opts.Logger)
	d, ok := res.(*DiscoverResult)
	return err == nil && ok && d.Capabilities.hasTasks()
}

func (c *ServerCapabilities) hasTasks() bool {
	if c == nil {
		return false
	}
	_, ok := c.Extensions[tasking.Extension]
	return ok
}

// passesTasks reports whether the mounted handler is a connection to a server that has tasks,
// and passes them on to its callers. Clients keep what they were told, so that it stays true
// while the server is gone.
func (mt *mount) passesTasks() bool {
	conn, ok := mt.handler.(*Conn)
	if u, isUpstream := mt.handler.(*Upstream); isUpstream {
		conn = u.State().Conn
		ok = conn != nil
	}
	if ok && conn.client.opts.Forward && conn.server.Capabilities.hasTasks() {
		mt.hadTasks.Store(true)
	}
	return mt.hadTasks.Load()
}

// watchedTasks returns the tasks of mounts that a subscription names: their IDs in the mux, by
// mount and their IDs there. All others are left out, and those that the token may not use.
func (g *registry) watchedTasks(ctx context.Context, req *Request, f *SubscriptionFilter) (map[*mount]map[string]string, error) {
	if f.Extra[tasking.TaskIDs] == nil || !g.hasMountedTasks(ctx, req) {
		return nil, nil
	}
	if !declares(req, tasking.Extension) {
		return nil, errNoTasks()
	}
	var ids []string
	if unmarshal(f.Extra[tasking.TaskIDs], &ids) != nil {
		return nil, Errorf(CodeInvalidParams, "params.notifications.taskIds must be a list of strings")
	}
	if limit := g.opts.MaxSubscriptions; len(ids) > limit {
		return nil, Errorf(CodeInvalidParams, "params.notifications.taskIds has %d IDs; the limit is %d", len(ids), limit)
	}
	watched := map[*mount]map[string]string{}
	for _, id := range ids {
		mt, inner, err := g.mountedTask(req, id)
		if mt == nil || err != nil {
			continue
		}
		if watched[mt] == nil {
			watched[mt] = map[string]string{}
		}
		watched[mt][inner] = id
	}
	return watched, nil
}

// taskIDsIn returns the tasks that a filter names.
func taskIDsIn(f *SubscriptionFilter) (ids []string) {
	if unmarshal(f.Extra[tasking.TaskIDs], &ids) != nil {
		return nil
	}
	return ids
}

// acceptTasks notes which tasks a mount watches.
func (ls *mountListeners) acceptTasks(ack mountAck) {
	for _, inner := range ack.tasks {
		if outer, ok := ls.tasks[ack.mount][inner]; ok {
			ls.accepted = append(ls.accepted, outer)
		}
	}
}

// acceptedTasks returns the part of the acknowledgement that is about tasks.
func (ls *mountListeners) acceptedTasks() Extra {
	if len(ls.accepted) == 0 {
		return nil
	}
	slices.Sort(ls.accepted)
	return Extra{tasking.TaskIDs: mustMarshal(ls.accepted)}
}

// passTask passes a notification about a task of a mount on, once the subscription is
// acknowledged. Others than those that the mount was asked for are dropped.
func (ls *mountListeners) passTask(ctx context.Context, mt *mount, method string, params json.RawMessage) error {
	outer, ok := ls.tasks[mt][taskIDOf(params)]
	if method != tasking.NotificationTask || !ok {
		return nil
	}
	renamed, err := mt.renameTaskObject(params, outer)
	if err != nil {
		return err
	}
	select {
	case <-ls.acknowledged:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s := subscriber{req: ls.req}
	return s.pass(ctx, method, renamed)
}

// listTasks lists the tasks of the caller in the mounts that are muxes. Other servers cannot
// tell the callers of the mux apart.
func (g *registry) listTasks(ctx context.Context, req *Request) (Result, error) {
	if req.taskTerms() == nil {
		return nil, NewMethodNotFoundError(req.Method)
	}
	return tasksList.serve(ctx, g, req)
}

var tasksList = list[tasking.Listed]{
	own:     func(*snapshot) []tasking.Listed { return nil },
	name:    func(tasking.Listed) string { return "" },
	sources: taskSources,
	result: func(p page[tasking.Listed], at Page) Result {
		extra := Extra{"tasks": mustMarshal(p.items)}
		if at.NextCursor != nil {
			extra["nextCursor"] = mustMarshal(*at.NextCursor)
		}
		return &EmptyResult{ResultBase{Extra: extra}}
	},
}

func taskSources(s *snapshot) (sources []source[tasking.Listed]) {
	for _, mt := range s.mounts {
		if _, isMux := mt.handler.(*Mux); !isMux {
			continue
		}
		sources = append(sources, source[tasking.Listed]{key: mountKey + mt.prefix, site: mt.site, fetch: mt.fetchTasks})
	}
	return sources
}

// fetchTasks starts to fetch a page of the caller's tasks in the mount.
func (mt *mount) fetchTasks(ctx context.Context, req *Request, cursor *string) func() (page[tasking.Listed], error) {
	inner, err := req.withCursor(cursor)
	if err != nil {
		return func() (page[tasking.Listed], error) { return page[tasking.Listed]{}, err }
	}
	inner.mounts += mt.prefix + "/"
	asked := mt.ask(ctx, inner, mt.parent.opts.MountTimeout, Change{})
	return func() (p page[tasking.Listed], err error) {
		var list tasking.List
		res, err := asked.wait()
		if err != nil {
			return p, err
		}
		raw, err := encodeAnswer(res)
		if err == nil {
			err = unmarshal(raw, &list)
		}
		for _, l := range list.Tasks {
			l.Task, _ = mt.renameTaskObject(l.Task, mt.outerTask(req, taskIDOf(l.Task))) // it has no result
			p.items = append(p.items, l)
		}
		p.next = list.NextCursor
		return p, err
	}
}
