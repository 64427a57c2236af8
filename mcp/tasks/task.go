// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"encoding/json"
	"time"

	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp"
)

// Extension is the identifier of the extension, as declared by servers and clients.
const Extension = tasking.Extension

// The methods and the notification of the extension.
const (
	MethodGet    = tasking.MethodGet
	MethodUpdate = tasking.MethodUpdate
	MethodCancel = tasking.MethodCancel

	NotificationTask = tasking.NotificationTask
)

// ResultTask is the result type of a [CreateResult].
const ResultTask = tasking.ResultTask

// A Status is the state of a task. Completed, failed and cancelled are final.
type Status string

// The states of a task.
const (
	Working       Status = "working"
	InputRequired Status = "input_required"
	Completed     Status = "completed" // even if the tool reports a failure
	Failed        Status = "failed"    // the request ended with an error response
	Cancelled     Status = "cancelled"
)

// IsFinal reports whether a task with the status has ended.
func (s Status) IsFinal() bool { return s == Completed || s == Failed || s == Cancelled }

// A Task describes a task, without its outcome.
type Task struct {
	ID             string    `json:"taskId"`
	Status         Status    `json:"status"`
	StatusMessage  string    `json:"statusMessage,omitempty"` // for the user or the model
	CreatedAt      time.Time `json:"createdAt"`
	LastUpdatedAt  time.Time `json:"lastUpdatedAt"`
	TTLMs          *int64    `json:"ttlMs"`                   // from CreatedAt; nil means unlimited
	PollIntervalMs *int64    `json:"pollIntervalMs,omitzero"` // nil if the server has no preference
}

// A DetailedTask is a task with its outcome, or with the questions that it is waiting for.
type DetailedTask struct {
	Task

	InputRequests map[string]mcp.InputRequest `json:"inputRequests,omitempty"` // if the status is InputRequired
	Result        json.RawMessage             `json:"result,omitzero"`         // if it is Completed: a CallToolResult
	Error         *mcp.Error                  `json:"error,omitzero"`          // if it is Failed
}

// A CreateResult answers tools/call with a task.
type CreateResult struct {
	mcp.ResultBase
	Task
}

// A GetResult answers tasks/get.
type GetResult struct {
	mcp.ResultBase
	DetailedTask
}

// GetParams are the params of tasks/get.
type GetParams struct {
	TaskID string   `json:"taskId"`
	Meta   mcp.Meta `json:"_meta,omitempty"`
}

// CancelParams are the params of tasks/cancel.
type CancelParams struct {
	TaskID string   `json:"taskId"`
	Meta   mcp.Meta `json:"_meta,omitempty"`
}

// UpdateParams are the params of tasks/update: answers to the questions of a task, by their
// keys in InputRequests.
type UpdateParams struct {
	TaskID         string                     `json:"taskId"`
	InputResponses map[string]json.RawMessage `json:"inputResponses"`
	Meta           mcp.Meta                   `json:"_meta,omitempty"`
}

// NotificationParams are the params of notifications/tasks.
type NotificationParams struct {
	DetailedTask

	Meta mcp.Meta `json:"_meta,omitempty"`
}
