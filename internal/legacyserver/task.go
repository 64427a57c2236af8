// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyserver

import (
	"encoding/json"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp"
)

// Task states, both in the extension and in 2025-11-25.
const (
	statusWorking       = "working"
	statusInputRequired = "input_required"
	statusCompleted     = "completed"
	statusFailed        = "failed"
	statusCancelled     = "cancelled"
)

// A task is a task in the form of the extension.
type task struct {
	TaskID         string                      `json:"taskId"`
	Status         string                      `json:"status"`
	StatusMessage  string                      `json:"statusMessage"`
	CreatedAt      time.Time                   `json:"createdAt"`
	LastUpdatedAt  time.Time                   `json:"lastUpdatedAt"`
	TTLMs          *int64                      `json:"ttlMs"`
	PollIntervalMs *int64                      `json:"pollIntervalMs"`
	InputRequests  map[string]mcp.InputRequest `json:"inputRequests"`
	Result         json.RawMessage             `json:"result"`
	Error          *mcp.Error                  `json:"error"`

	isError bool // the result reports that the tool failed
}

// An olderTask is a task in the form of 2025-11-25.
type olderTask struct {
	TaskID        string    `json:"taskId"`
	Status        string    `json:"status"`
	StatusMessage string    `json:"statusMessage,omitempty"`
	CreatedAt     time.Time `json:"createdAt"`
	LastUpdatedAt time.Time `json:"lastUpdatedAt"`
	TTL           *int64    `json:"ttl"` // nil means unlimited
	PollInterval  *int64    `json:"pollInterval,omitzero"`
}

// createTaskResult is a result of tools/call, taskResult of tasks/get and tasks/cancel, and
// listTasksResult of tasks/list.
type (
	createTaskResult struct {
		mcp.ResultBase
		Task olderTask `json:"task"`
	}
	taskResult struct {
		mcp.ResultBase
		olderTask
	}
	listTasksResult struct {
		mcp.ResultBase
		mcp.Page
		Tasks []olderTask `json:"tasks"`
	}
)

// readTask decodes a result of the extension as a task.
func readTask(res mcp.Result) (*task, error) {
	if kind := core.Base(res).ResultType; kind != tasking.ResultTask && kind != "" && kind != mcp.ResultComplete {
		return nil, mcp.Errorf(mcp.CodeInternalError, "the handler answered with a result of the type %q in place of a task", kind)
	}
	t := new(task)
	if err := read(res, t); err != nil {
		return nil, err
	}
	if t.TaskID == "" {
		return nil, mcp.Errorf(mcp.CodeInternalError, "the handler answered with a result in place of a task")
	}
	t.isError = string(jsonscan.Member(t.Result, "isError")) == "true"
	return t, nil
}

// read decodes a result, whose type is chosen by the handler, into dst.
func read(res mcp.Result, dst any) error {
	raw, err := core.MarshalResult(res)
	if err == nil {
		err = strictjson.Unmarshal(raw, dst)
	}
	if err != nil {
		return unreadable(err)
	}
	return nil
}

func unreadable(err error) error {
	return mcp.Errorf(mcp.CodeInternalError, "the handler's answer about a task cannot be read: %w", err)
}

func (t *task) isFinal() bool {
	return t.Status == statusCompleted || t.Status == statusFailed || t.Status == statusCancelled
}

// asksOneOf reports whether the task is waiting for the answer to one of the questions.
func (t *task) asksOneOf(questions map[string]mcp.InputRequest) bool {
	for key := range t.InputRequests {
		if _, ok := questions[key]; ok {
			return true
		}
	}
	return false
}

// older returns the task in the form of 2025-11-25, in which a task also fails if its tool
// fails.
func (t *task) older() olderTask {
	status := t.Status
	if status == statusCompleted && t.isError {
		status = statusFailed
	}
	return olderTask{t.TaskID, status, t.StatusMessage, t.CreatedAt, t.LastUpdatedAt, t.TTLMs, t.PollIntervalMs}
}

// result returns the task as a result, or nil if t is nil.
func (t *task) result() mcp.Result {
	if t == nil {
		return nil
	}
	return &taskResult{olderTask: t.older()}
}
