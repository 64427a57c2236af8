// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// serveMethods is the middleware that serves the methods of the extension.
func (m *Manager) serveMethods(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		switch req.Method {
		case mcp.MethodDiscover:
			return m.discover(next.ServeMCP(ctx, req))
		case mcp.MethodListen:
			return m.listen(ctx, next, req)
		case mcp.MethodCallTool:
			return next.ServeMCP(context.WithValue(ctx, arrivedKey{}, mcp.RequestFromContext(ctx)), req)
		case MethodGet, MethodUpdate, MethodCancel:
		default:
			return next.ServeMCP(ctx, req)
		}
		switch id := req.Name(); {
		case !supports(req):
			return nil, errUnsupported()
		case id != "" && len(id) != idLength: // a task of a mounted server
			return elsewhere(next.ServeMCP(ctx, req))
		}
		res, err := m.serveTask(ctx, req)
		if errors.Is(err, errGone) { // it may be a task of another manager of the mux
			return elsewhere(next.ServeMCP(ctx, req))
		}
		return res, clientError(err)
	})
}

// serveTask serves a request about a task of this manager.
func (m *Manager) serveTask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	switch req.Method {
	case MethodUpdate:
		return m.update(ctx, req)
	case MethodCancel:
		return m.cancelTask(ctx, req)
	}
	return m.get(ctx, req)
}

// discover adds the extension to the capabilities of the server.
func (m *Manager) discover(res mcp.Result, err error) (mcp.Result, error) {
	d, ok := res.(*mcp.DiscoverResult)
	if err != nil || !ok {
		return res, err
	}
	with := *d
	caps := mcp.ServerCapabilities{}
	if d.Capabilities != nil {
		caps = *d.Capabilities
	}
	caps.Extensions = maps.Clone(caps.Extensions)
	if caps.Extensions == nil {
		caps.Extensions = mcp.Extensions{}
	}
	caps.Extensions[Extension] = json.RawMessage("{}")
	with.Capabilities = &caps
	return &with, nil
}

// elsewhere returns the outcome of a request about a task that is not this manager's.
func elsewhere(res mcp.Result, err error) (mcp.Result, error) {
	if mcp.CodeOf(err) == mcp.CodeMethodNotFound { // nothing is mounted
		err = errUnknown()
	}
	return res, err
}

// errUnknown returns the error for a task that does not exist or belongs to another caller.
func errUnknown() error {
	return mcp.Errorf(mcp.CodeInvalidParams, "params.taskId names no task, or one that is no longer kept")
}

// clientError returns the error for the client that sent a request about a task. An error
// of the store is logged by the mux but not sent.
func clientError(err error) error {
	_, coded := errors.AsType[*mcp.Error](err)
	switch {
	case err == nil || coded:
		return err
	case errors.Is(err, errGone), errors.Is(err, store.ErrNotFound):
		return errUnknown()
	case errors.Is(err, store.ErrTooLarge):
		return &mcp.Error{Code: mcp.CodeTooLarge, Message: "the task is too large to be stored", Cause: err}
	}
	return &mcp.Error{Code: mcp.CodeInternalError, Message: "tasks cannot be stored at the moment; try again later", Cause: err}
}

// checkCaller returns an error if the caller may not use the task. A task needs the scopes of
// the token that created it. The middleware of the tool cannot be asked: a rate limit or an
// audit would count each poll as a call.
func (r *record) checkCaller(p *mcp.Principal) error {
	switch {
	case !r.Caller.Is(p):
		return errGone
	case p != nil && !tasking.MayUse(p.Scopes, r.Caller.Scopes):
		return mcp.NewInsufficientScopeError(r.Caller.Scopes...)
	}
	return nil
}

// isRefused reports whether err means that there is no task that the caller may use.
func isRefused(err error) bool {
	return errors.Is(err, errGone) || mcp.CodeOf(err) == mcp.CodeInsufficientScope
}

// loadFor returns the record of a task if the caller may use it.
func (m *Manager) loadFor(ctx context.Context, caller *mcp.Principal, id string) (*record, error) {
	rec, _, err := m.load(ctx, id)
	if err == nil {
		err = rec.checkCaller(caller)
	}
	return rec, err
}

// changeFor changes the record of the task named in req, if the caller may use it.
func (m *Manager) changeFor(ctx context.Context, req *mcp.Request, fn func(*record) error) (*record, error) {
	return m.change(ctx, req.Name(), func(rec *record) error {
		if err := rec.checkCaller(req.Principal); err != nil {
			return err
		}
		return fn(rec)
	})
}

func (m *Manager) get(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	rec, err := m.loadFor(ctx, req.Principal, req.Name())
	if err != nil {
		return nil, err
	}
	d, err := m.detailed(ctx, rec)
	if err != nil {
		return nil, err
	}
	return &GetResult{DetailedTask: d}, nil
}

// detailed returns a task with its outcome.
func (m *Manager) detailed(ctx context.Context, rec *record) (d DetailedTask, err error) {
	d = rec.detailed()
	if rec.Results > 0 {
		d.Result, err = m.parts(ctx, "result", resultID(rec), rec.Results)
	}
	return d, err
}

// errUnchanged aborts a change that is not needed.
var errUnchanged = errors.New("tasks: nothing to change")

func (m *Manager) update(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	var p UpdateParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	if p.InputResponses == nil {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "params.inputResponses is missing; it must be an object of answers")
	}
	for key, answer := range p.InputResponses {
		if len(answer) == 0 || answer[0] != '{' {
			return nil, mcp.Errorf(mcp.CodeInvalidParams, "params.inputResponses: the answer to %q must be an object", key)
		}
	}
	resumes := false
	rec, err := m.changeFor(ctx, req, func(rec *record) error {
		if resumes = false; rec.Task.Status != InputRequired {
			return errUnchanged
		}
		accepted, err := rec.acceptAll(ctx, p.InputResponses)
		if err != nil {
			return err
		}
		switch {
		case !accepted:
			return errUnchanged
		case !rec.isAnswered():
			rec.touch()
			return nil
		}
		rec.Round++
		if err := m.list(ctx, rec); err != nil { // before the record says that it is working
			return err
		}
		resumes = true
		rec.setStatus(Working, "")
		return nil
	})
	if err != nil && !errors.Is(err, errUnchanged) {
		return nil, err
	}
	if err == nil {
		m.announce(ctx, req.Name())
	}
	if resumes {
		m.offer(context.WithoutCancel(ctx), rec)
	}
	return &mcp.EmptyResult{}, nil
}

// cancelTask cancels a task that waits. Otherwise it asks the process that runs the task to
// cancel it.
func (m *Manager) cancelTask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	_, err := m.changeFor(ctx, req, func(rec *record) error {
		switch {
		case rec.Task.Status.IsFinal():
			return errUnchanged
		case rec.Task.Status == InputRequired, rec.Owner == "":
			rec.setStatus(Cancelled, "")
		}
		rec.Cancelled = true
		return nil
	})
	if err != nil && !errors.Is(err, errUnchanged) {
		return nil, err
	}
	if err == nil {
		m.announce(ctx, req.Name())
	}
	return &mcp.EmptyResult{}, nil
}
