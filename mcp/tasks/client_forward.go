// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	"github.com/go-psi/psi/mcp"
)

// A gateway follows a task on behalf of a caller that does not support tasks. It passes the
// questions of the task on as questions about the call, with a state that names the task.
// The mount seals that state, so only the same caller can send it back.

// statePrefix is the prefix of such a state.
const statePrefix = "psi-task:"

// passOn returns questions of the task as questions about the call.
func (d *driver) passOn(questions map[string]mcp.InputRequest) mcp.Result {
	state := statePrefix + d.task.ID
	return &mcp.InputRequired{ResultBase: mcp.ResultBase{ResultType: mcp.ResultInputRequired}, InputRequests: questions, RequestState: &state}
}

// onBehalf returns a handler that sends requests on behalf of the sender of a call. Only a
// mount passes tasks on: a proxy without one could not tell whose a task is.
func onBehalf(call *mcp.Request, next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		x := core.Detach(call)
		x.Method = req.Method
		x, err := x.WithParams(req.Params())
		if err != nil {
			return nil, err
		}
		return next.ServeMCP(core.ContextWithRequest(ctx, x), x)
	})
}

// passedOn returns the ID of the task for which a request carries answers.
func passedOn(c *mcp.Conn, req *mcp.Request) (id string, ok bool) {
	if req.Method != mcp.MethodCallTool || !core.PassesQuestions(c, req, map[string]mcp.InputRequest{"": {}}) {
		return "", false
	}
	var p mcp.Resume
	if req.Decode(&p) != nil || p.RequestState == nil {
		return "", false
	}
	return strings.CutPrefix(*p.RequestState, statePrefix)
}

// resume passes the answers of the sender on to the task and continues to follow it.
func (d *driver) resume(ctx context.Context) (mcp.Result, error) {
	var p struct {
		InputResponses map[string]json.RawMessage `json:"inputResponses"`
	}
	if err := d.req.Decode(&p); err != nil {
		return nil, err
	}
	if err := d.update(ctx, p.InputResponses); err != nil {
		d.cancel(ctx)
		return nil, err
	}
	maps.Copy(d.answers, p.InputResponses)
	return d.drive(ctx)
}
