// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient

import (
	"context"
	"encoding/json"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp/transport"
)

// This file, task_state.go and task_questions.go translate between the tasks of 2025-11-25,
// which clients request, and the extension io.modelcontextprotocol/tasks. To a caller that
// does not declare the extension, a tool that can only be called as a task looks like any
// other tool.

// callsTasks reports whether a server with the version and tasks capability has tools that
// can be called as tasks.
func callsTasks(version string, capability json.RawMessage) bool {
	tools := jsonscan.Member(jsonscan.Member(capability, "requests"), "tools")
	return revision.Parse(version) >= revision.R202511 && jsonscan.Member(tools, "call") != nil
}

// hasTasks reports whether the server supports tasks.
func (s *session) hasTasks() bool {
	server := s.described()
	return server != nil && callsTasks(server.version, server.capabilities.Tasks)
}

// callWithTasks translates a request to a server that supports tasks.
func (s *session) callWithTasks(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	switch m.Method {
	case methodListTools:
		r, err := s.callInSession(ctx, m)
		if err == nil && r.Error == nil {
			r = &transport.Message{ID: r.ID, Result: s.noteTools(r.Result)}
		}
		return r, err
	case methodCallTool:
		return s.callTool(ctx, m)
	case tasking.MethodGet:
		return s.getTask(ctx, m)
	case tasking.MethodUpdate:
		return s.updateTask(ctx, m)
	case tasking.MethodCancel:
		return s.cancelTask(ctx, m)
	}
	return s.callForwarding(ctx, m)
}

// Values of a tool's task support in revision 2025-11-25. Tools that were not listed have
// none of these.
const (
	taskForbidden = "forbidden"
	taskOptional  = "optional"
	taskRequired  = "required"
)

// maxTools limits the number of tools that a session remembers, and maxToolName the length
// of their names in bytes.
const (
	maxTools    = 10_000
	maxToolName = 1024
)

// noteTools records which tools of a list can be called as tasks, and returns the list in
// the form of the newest revision.
func (s *session) noteTools(result json.RawMessage) json.RawMessage {
	var list struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if strictjson.Unmarshal(result, &list) != nil {
		return result
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, tool := range list.Tools {
		if !jsonscan.IsObject(tool) {
			continue
		}
		support := text(jsonscan.Member(jsonscan.Member(tool, "execution"), "taskSupport"))
		if support != taskOptional && support != taskRequired {
			support = taskForbidden
		}
		if name := text(jsonscan.Member(tool, "name")); len(s.tools) < maxTools && len(name) <= maxToolName {
			s.tools[name] = support
		}
		list.Tools[i] = jsonscan.AppendMembers([]byte{'{'}, tool, "execution")
	}
	changed := append(jsonscan.AppendKey([]byte{'{'}, "tools"), strictjson.MustMarshal(list.Tools)...)
	return jsonscan.AppendMembers(changed, result, "tools")
}

// forgetTools forgets the tools, so that they are listed again when their task support is
// needed.
func (s *session) forgetTools() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = false
	clear(s.tools)
}

// maxToolPages limits how many pages of the tool list are read before a call.
const maxToolPages = 100

// taskSupport returns whether a tool can be called as a task, or "" if that is unknown. If
// list is true, it lists the tools unless they are known.
func (s *session) taskSupport(ctx context.Context, tool string, list bool) (support string, err error) {
	s.mu.Lock()
	support, known := s.tools[tool]
	known = known || s.listed
	s.mu.Unlock()
	if known || !list {
		return support, nil
	}
	params := json.RawMessage("{}")
	for range maxToolPages {
		r, err := s.requestInSession(ctx, methodListTools, params)
		if err != nil {
			return "", err
		}
		if r.Error != nil {
			break // the server has no list
		}
		s.noteTools(r.Result)
		cursor := jsonscan.Member(r.Result, "nextCursor")
		if text(cursor) == "" {
			break
		}
		params = append(append(jsonscan.AppendKey([]byte{'{'}, "cursor"), cursor...), '}')
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = true
	return s.tools[tool], nil
}

// callTool calls a tool. It uses a task if the tool requires one, or if the tool supports
// tasks and the caller has declared the extension.
func (s *session) callTool(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	params := jsonscan.Member(m.Body, "params")
	declared := declaresTasks(params)
	support, err := s.taskSupport(ctx, text(jsonscan.Member(params, "name")), declared)
	if err != nil {
		return nil, err
	}
	callAsTask := s.driveTask
	if declared {
		callAsTask = s.createTask
	}
	if support == taskRequired || support == taskOptional && declared {
		return callAsTask(ctx, m)
	}
	r, err := s.callForwarding(ctx, m)
	if err == nil && r.Error != nil && r.Error.Code == codeMethodNotFound && support == "" { // the tool was not called
		again := *m
		again.ID = s.conn.client.NextID() // IDs are unique within a session
		r, err = callAsTask(ctx, &again)
		r = withID(r, m.ID)
	}
	return r, err
}

// declaresTasks reports whether the sender of a request has declared the extension.
func declaresTasks(params json.RawMessage) bool {
	caps := jsonscan.Member(jsonscan.Member(params, "_meta"), metaCapabilities)
	return jsonscan.Member(jsonscan.Member(caps, "extensions"), tasking.Extension) != nil
}

// startTask calls a tool as a task. If the server returns something else (a result, an
// error or questions), t is nil.
func (s *session) startTask(ctx context.Context, m *transport.Outgoing) (r *transport.Message, t *olderTask, err error) {
	asTask := *m
	params := append(jsonscan.AppendKey([]byte{'{'}, "task"), "{}"...)
	params = jsonscan.AppendMembers(params, jsonscan.Member(m.Body, "params"), "task")
	asTask.Body = transport.AppendRequest(nil, m.ID, m.Method, params)
	r, err = s.callForwarding(ctx, &asTask)
	if err != nil || r.Error != nil {
		return r, nil, err
	}
	created := jsonscan.Member(r.Result, "task")
	if created == nil || jsonscan.Member(r.Result, "content") != nil {
		return r, nil, nil
	}
	t, err = readTask(created)
	return r, t, err
}

// createTask calls a tool as a task, and returns the task.
func (s *session) createTask(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	r, t, err := s.startTask(ctx, m)
	if err != nil || t == nil {
		return r, err
	}
	created := t.newer()
	created.ResultType = tasking.ResultTask
	return &transport.Message{ID: m.ID, Result: strictjson.MustMarshal(created)}, nil
}

// driveTask calls a tool as a task, and returns the result of the task.
func (s *session) driveTask(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	r, t, err := s.startTask(ctx, m)
	if err != nil || t == nil {
		return r, err
	}
	meta := jsonscan.Member(jsonscan.Member(m.Body, "params"), "_meta")
	r, err = s.callResult(ctx, t.TaskID, meta)
	return withID(r, m.ID), err
}

// callResult sends tasks/result with the metadata of a caller, so that the caller receives
// the questions of the task.
func (s *session) callResult(ctx context.Context, id string, meta json.RawMessage) (*transport.Message, error) {
	params := append(jsonscan.AppendKey([]byte{'{'}, "taskId"), strictjson.MustMarshal(id)...)
	if jsonscan.IsObject(meta) {
		params = append(jsonscan.AppendKey(params, "_meta"), jsonscan.AppendMembers([]byte{'{'}, meta, metaProgressToken)...)
	}
	next := s.conn.client.NextID()
	m := &transport.Outgoing{ID: next, Method: revision.TaskResult, Body: transport.AppendRequest(nil, next, revision.TaskResult, append(params, '}'))}
	if s.conn.opts.Forward {
		r, err := s.forward(ctx, m)
		return withoutRelatedTask(r), err
	}
	r, err := s.callForCaller(ctx, m)
	return withoutRelatedTask(r), err
}

// cancelTime limits how long a cancelled call waits until its task is cancelled.
const cancelTime = 5 * time.Second

// callForCaller sends a request. If it is tasks/result and the caller gives up,
// callForCaller cancels the task, because the caller does not know it.
func (s *session) callForCaller(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	r, err := s.callInSession(ctx, m)
	if m.Method == revision.TaskResult && ctx.Err() != nil && s.ctx.Err() == nil {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
		defer cancel()
		_, _ = s.requestInSession(ending, revision.TaskCancel, taskParams(taskOf(m))) // the caller has an error already
	}
	return r, err
}

// requestInSession sends a request with a new ID in a session. Params are in the form of
// the older revision.
func (s *session) requestInSession(ctx context.Context, method string, params json.RawMessage) (*transport.Message, error) {
	id := s.conn.client.NextID()
	return s.callInSession(ctx, &transport.Outgoing{ID: id, Method: method, Body: transport.AppendRequest(nil, id, method, params)})
}

func withID(r *transport.Message, id transport.ID) *transport.Message {
	if r == nil {
		return nil
	}
	answer := *r
	answer.ID = id
	return &answer
}
