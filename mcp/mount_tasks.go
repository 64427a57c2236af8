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

// This file exposes the tasks of mounted servers (extension io.modelcontextprotocol/tasks) as
// tasks of the mux. The outer ID of a task contains the mount and the inner ID, sealed for
// the caller.

// A mountedTask is the content of the outer ID of a task.
type mountedTask struct {
	Mount string `json:"m"` // the prefix
	ID    string `json:"t"` // the inner ID
	// Scopes are the scopes of the token that created the task. They are omitted if the mount
	// is a mux, which checks them itself.
	Scopes []string `json:"s,omitempty"`
}

// taskBinding returns a digest of the server, the mounts and the caller, to which the IDs of
// tasks are bound.
func (s *sealer) taskBinding(req *Request) []byte {
	parts := []string{"task", s.server, req.mounts}
	if p := req.Principal; p != nil {
		parts = append(parts, p.Issuer, p.Subject)
	}
	return digestParts(parts)
}

// outerTask returns the outer ID of a task of the mount, for the sender of req.
func (mt *mount) outerTask(req *Request, id string) string {
	s, t := mt.parent.sealer, &mountedTask{Mount: string(mt.prefix), ID: id}
	if mt.child == nil && req.Principal != nil {
		t.Scopes = req.Principal.Scopes
	}
	return s.ring.Seal(mustMarshal(t), s.taskBinding(req))
}

// mountedTask returns the mount and the inner ID of a task. The mount is nil if id is not the
// outer ID of a task. The error is not nil if the token may not use the task.
func (g *registry) mountedTask(req *Request, id string) (mt *mount, inner string, err error) {
	var t mountedTask
	raw, err := g.sealer.ring.Open(id, g.sealer.taskBinding(req))
	if err != nil || unmarshal(raw, &t) != nil {
		return nil, "", nil //nolint:nilerr // it is the ID of something else
	}
	if p := req.Principal; p != nil && !tasking.MayUse(p.Scopes, t.Scopes) {
		err = NewInsufficientScopeError(t.Scopes...)
	}
	s := g.load()
	if i, found := s.searchMount(t.Mount); found {
		return s.mounts[i], t.ID, err
	}
	return nil, "", nil
}

// declaresTasks reports whether the sender of req supports tasks.
func declaresTasks(req *Request) bool {
	return jsonscan.Member(jsonscan.Member(req.peer.caps, "extensions"), tasking.Extension) != nil
}

// errNoTasks returns the error for a client that does not support tasks.
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
	case !declaresTasks(req):
		return nil, errNoTasks()
	case mt == nil:
		return nil, Errorf(CodeInvalidParams, "params.taskId names no task, or one that is no longer kept")
	case err != nil:
		return nil, err
	}
	inner := req.withName(id)
	inner.mounts += string(mt.prefix) + "/"
	res, err := mt.serve.ServeMCP(contextWithRequest(ctx, inner), inner)
	if err != nil || req.Method != tasking.MethodGet {
		return mt.result(res), err
	}
	return mt.renameTask(res, req.Name())
}

// createdTask returns the result that creates a task of the mount, with the outer ID.
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

// taskIDOf returns the ID of a task, or "" if it has none.
func taskIDOf(task json.RawMessage) string {
	raw := jsonscan.Member(task, "taskId")
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return jsonscan.Text(raw)
}

// renameTask returns the result that is a task of the mount, with the outer ID.
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

// renameTaskObject returns a task of the mount, from a result or a notification, with the
// outer ID and with outer URIs in its result.
func (mt *mount) renameTaskObject(task json.RawMessage, id string) (json.RawMessage, error) {
	renamed := jsonscan.AppendString(jsonscan.AppendKey([]byte{'{'}, "taskId"), id)
	result := jsonscan.Member(task, "result")
	if result == nil || string(result) == "null" {
		return jsonscan.AppendMembers(renamed, task, "taskId"), nil
	}
	res, _, err := decodeResult(MethodCallTool, result)
	if err != nil {
		return nil, err
	}
	if result, err = encodeAnswer(mt.result(res)); err != nil {
		return nil, err
	}
	renamed = append(jsonscan.AppendKey(renamed, "result"), result...)
	return jsonscan.AppendMembers(renamed, task, "taskId", "result"), nil
}

// hasMountedTasks reports whether any mount supports tasks.
func (g *registry) hasMountedTasks(ctx context.Context, req *Request) bool {
	return slices.ContainsFunc(g.load().mounts, func(mt *mount) bool { return mt.hasTasks(ctx, req) })
}

// hasTasks reports whether the mounted server supports tasks.
func (mt *mount) hasTasks(ctx context.Context, req *Request) bool {
	if mt.child == nil {
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

// passesTasks reports whether the mounted handler is a connection to a server that supports
// tasks, and passes them on to callers. Once true, it stays true, even while the server is
// disconnected: clients cache the server's capabilities.
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

// watchedTasks returns the tasks of mounts in a subscription: their outer IDs, by mount and
// inner ID. Other tasks, and tasks that the token may not use, are omitted.
func (g *registry) watchedTasks(ctx context.Context, req *Request, f *SubscriptionFilter) (map[*mount]map[string]string, error) {
	if f.Extra[tasking.TaskIDs] == nil || !g.hasMountedTasks(ctx, req) {
		return nil, nil
	}
	if !declaresTasks(req) {
		return nil, errNoTasks()
	}
	var ids []string
	if unmarshal(f.Extra[tasking.TaskIDs], &ids) != nil {
		return nil, Errorf(CodeInvalidParams, "params.notifications.taskIds must be a list of strings")
	}
	if limit := g.opts.maxSubscriptions; len(ids) > limit {
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

// taskIDsIn returns the task IDs in a filter.
func taskIDsIn(f *SubscriptionFilter) (ids []string) {
	if unmarshal(f.Extra[tasking.TaskIDs], &ids) != nil {
		return nil
	}
	return ids
}

// acceptTasks records the tasks that a mount has accepted.
func (ls *mountListeners) acceptTasks(ack mountAck) {
	for _, inner := range ack.tasks {
		if outer, ok := ls.tasks[ack.mount][inner]; ok {
			ls.accepted = append(ls.accepted, outer)
		}
	}
}

// acceptedTasks returns the accepted tasks for the acknowledgement.
func (ls *mountListeners) acceptedTasks() Extra {
	if len(ls.accepted) == 0 {
		return nil
	}
	slices.Sort(ls.accepted)
	return Extra{tasking.TaskIDs: mustMarshal(ls.accepted)}
}

// passTask passes on a notification about a task of a mount, after the subscription has been
// acknowledged. Notifications about tasks outside the subscription are dropped.
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
	return s.forward(ctx, method, renamed)
}
