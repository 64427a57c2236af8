// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyserver

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp"
)

// This file and task_result.go translate the tasks of 2025-11-25, which clients request,
// into the tasks of the extension io.modelcontextprotocol/tasks, which servers offer. The
// handler sees requests of the extension.

// taskCapability replaces the extension in the capabilities of a server with the tasks
// capability of 2025-11-25. Tasks are listed only for authenticated clients, because others
// cannot be distinguished.
func (t translation) taskCapability(caps *mcp.ServerCapabilities, authenticated bool) {
	if _, ok := caps.Extensions[tasking.Extension]; !ok {
		return
	}
	caps.Extensions = maps.Clone(caps.Extensions)
	delete(caps.Extensions, tasking.Extension)
	if t.rev < revision.R202511 {
		return
	}
	extra := mcp.Extra{}
	maps.Copy(extra, caps.Extra)
	extra["tasks"] = json.RawMessage(`{"cancel":{},"requests":{"tools":{"call":{}}}}`)
	if authenticated {
		extra["tasks"] = json.RawMessage(`{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`)
	}
	caps.Extra = extra
}

// taskSupport adds the task support of a tool to its definition.
func (t translation) taskSupport(tool *mcp.Tool) {
	support := map[tasking.Support]string{tasking.Optional: "optional", tasking.Required: "required"}[core.TaskSupport(tool)]
	if t.rev < revision.R202511 || support == "" {
		return
	}
	extra := mcp.Extra{}
	maps.Copy(extra, tool.Extra)
	extra["execution"] = strictjson.MustMarshal(map[string]string{"taskSupport": support})
	tool.Extra = extra
}

// setTasks records whether the handler supports the extension.
func (s *Session) setTasks(caps *mcp.ServerCapabilities) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if caps != nil {
		_, s.tasks = caps.Extensions[tasking.Extension]
	}
}

func (s *Session) hasTasks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks
}

// serveTasks serves requests of a session whose handler supports the extension.
func (s *Session) serveTasks(ctx context.Context, req *mcp.Request, out serving.Sender) (mcp.Result, error) {
	if s.revision() < revision.R202511 {
		if strings.HasPrefix(req.Method, "tasks/") {
			return nil, mcp.NewMethodNotFoundError(req.Method)
		}
		return s.replay(ctx, req, out)
	}
	switch req.Method {
	case mcp.MethodCallTool:
		return s.callTool(ctx, req, out)
	case revision.TaskGet:
		t, err := s.getTask(ctx, req)
		return t.result(), err
	case revision.TaskResult:
		return s.taskResult(ctx, req, out)
	case revision.TaskCancel:
		return s.cancelTask(ctx, req)
	case revision.TaskList:
		return s.listTasks(ctx, req)
	case tasking.MethodUpdate:
		return nil, mcp.NewMethodNotFoundError(req.Method)
	}
	return s.replay(ctx, req, out)
}

// callTool serves tools/call. It creates a task if the client requests one.
func (s *Session) callTool(ctx context.Context, req *mcp.Request, out serving.Sender) (mcp.Result, error) {
	wanted := jsonscan.Member(req.Params(), "task")
	if wanted == nil {
		res, err := s.replay(ctx, req, out)
		return res, needsTask(req, err)
	}
	terms, err := parseTerms(wanted)
	if err != nil {
		return nil, err
	}
	call, err := s.extended(req, mcp.MethodCallTool, jsonscan.AppendMembers([]byte{'{'}, req.Params(), "task"))
	if err != nil {
		return nil, err
	}
	core.SetTaskTerms(call, terms)
	res, err := s.replay(ctx, call, out)
	if err != nil {
		return nil, err
	}
	t, err := s.createdTask(req, terms, res)
	if err != nil {
		return nil, err
	}
	t.Status, t.StatusMessage = statusWorking, "" // in this revision, tasks start as working
	return &createTaskResult{Task: t.older()}, nil
}

// createdTask returns the task created by a call. If the handler returned another result,
// it is stored as an ended task.
func (s *Session) createdTask(req *mcp.Request, terms *tasking.Terms, res mcp.Result) (*task, error) {
	if core.Base(res).ResultType == tasking.ResultTask {
		return readTask(res)
	}
	return s.keepEnded(req, terms, res)
}

// needsTask replaces the error of a tool that can only be called as a task. Other errors
// are returned unchanged.
func needsTask(req *mcp.Request, err error) error {
	e, ok := errors.AsType[*mcp.Error](err)
	if !ok || e.Code != mcp.CodeMissingCapability || !strings.Contains(string(e.Data), `"`+tasking.Extension+`"`) {
		return err
	}
	return &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "the tool " + req.Name() + " can only be called as a task: params.task is missing", Cause: err}
}

// parseTerms decodes params.task.
func parseTerms(wanted json.RawMessage) (*tasking.Terms, error) {
	var p struct {
		TTL *float64 `json:"ttl"`
	}
	if wanted[0] != '{' || strictjson.Unmarshal(wanted, &p) != nil {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "params.task must be an object, whose ttl is a number of milliseconds")
	}
	terms := new(tasking.Terms)
	switch ttl := p.TTL; {
	case ttl == nil:
	case *ttl < 0:
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "params.task.ttl must not be negative")
	case *ttl < float64(math.MaxInt64/time.Millisecond):
		terms.TTL = max(time.Duration(*ttl)*time.Millisecond, time.Millisecond)
	}
	return terms, nil
}

// extended returns a request on behalf of the sender of req that is served separately and
// declares the extension. Its params contain all metadata, because a task outlives the
// session.
func (s *Session) extended(req *mcp.Request, method string, params json.RawMessage) (*mcp.Request, error) {
	caps := req.ClientCapabilities()
	if caps.Extensions == nil {
		caps.Extensions = mcp.Extensions{}
	}
	caps.Extensions[tasking.Extension] = json.RawMessage("{}")
	s.mu.Lock()
	info, level := s.info, s.level
	s.mu.Unlock()
	declared := strictjson.MustMarshal(caps)

	meta := jsonscan.AppendString(jsonscan.AppendKey([]byte{'{'}, mcp.MetaProtocolVersion), mcp.LatestVersion)
	meta = append(jsonscan.AppendKey(meta, mcp.MetaClientCapabilities), declared...)
	if given := jsonscan.Member(params, "_meta"); jsonscan.IsObject(given) {
		meta = jsonscan.AppendMembers(meta, given, mcp.MetaProtocolVersion, mcp.MetaClientCapabilities)
	} else {
		meta = append(meta, '}')
	}
	whole := append(jsonscan.AppendKey([]byte{'{'}, "_meta"), meta...)
	whole = jsonscan.AppendMembers(whole, params, "_meta")

	x := core.Detach(req)
	x.Method = method
	x, err := x.WithParams(json.RawMessage(whole))
	if err != nil {
		return nil, err
	}
	core.SetSession(x, s.public, s.Version(), info, declared, level)
	return x, nil
}

// requestTask sends a request of the extension about a task on behalf of a request of the
// session.
func (s *Session) requestTask(ctx context.Context, req *mcp.Request, method string, params any, terms *tasking.Terms) (mcp.Result, error) {
	x, err := s.extended(req, method, strictjson.MustMarshal(params))
	if err != nil {
		return nil, err
	}
	core.SetTaskTerms(x, terms)
	return core.Serve(ctx, s.server.handler, x, nil, s.server.Logger)
}

// taskParams are the params of requests about one task.
type taskParams struct {
	TaskID string `json:"taskId"`
}

// getTask returns the task named in the params of req.
func (s *Session) getTask(ctx context.Context, req *mcp.Request) (*task, error) {
	var p taskParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	if t, err := s.endedTask(req, p.TaskID); t != nil || err != nil {
		return t, err
	}
	res, err := s.requestTask(ctx, req, tasking.MethodGet, p, nil)
	if err != nil {
		return nil, err
	}
	return readTask(res)
}

// cancelTime limits how long tasks/cancel waits for a server behind this one.
const cancelTime = 5 * time.Second

// cancelTask serves tasks/cancel. In this revision, the task is already cancelled when the
// request is answered, and a task that has ended cannot be cancelled.
func (s *Session) cancelTask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	t, err := s.getTask(ctx, req)
	switch {
	case err != nil:
		return nil, err
	case t.isFinal():
		return nil, hasEnded(t)
	}
	if _, err := s.requestTask(ctx, req, tasking.MethodCancel, taskParams{t.TaskID}, &tasking.Terms{}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cancelTime)
	defer cancel()
	w := s.watch(ctx, req, t.TaskID)
	defer w.stop()
	for {
		t, err = s.getTask(ctx, req)
		switch {
		case err != nil:
			return nil, err
		case t.Status == statusCancelled:
			return t.result(), nil
		case t.isFinal():
			return nil, hasEnded(t)
		}
		if w.wait(ctx, t) != nil {
			return nil, mcp.Errorf(mcp.CodeInternalError, "the task was asked to end and works on; see tasks/get")
		}
	}
}

func hasEnded(t *task) error {
	return mcp.Errorf(mcp.CodeInvalidParams, "the task has ended before, and is %s", t.older().Status)
}

// listTasks serves tasks/list.
func (s *Session) listTasks(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if req.Principal == nil {
		return nil, mcp.NewMethodNotFoundError(req.Method)
	}
	var p mcp.ListParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	res, err := s.requestTask(ctx, req, tasking.MethodList, &mcp.ListParams{Cursor: p.Cursor}, &tasking.Terms{})
	if err != nil {
		return nil, err
	}
	var list tasking.List
	if err := read(res, &list); err != nil {
		return nil, err
	}
	result := &listTasksResult{Tasks: []olderTask{}, Page: mcp.Page{NextCursor: list.NextCursor}}
	for _, l := range list.Tasks {
		t := &task{isError: l.IsError}
		if err := strictjson.Unmarshal(l.Task, t); err != nil {
			return nil, unreadable(err)
		}
		result.Tasks = append(result.Tasks, t.older())
	}
	return result, nil
}
