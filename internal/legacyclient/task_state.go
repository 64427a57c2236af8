// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp/transport"
)

// Task states.
const (
	statusWorking       = "working"
	statusInputRequired = "input_required"
	statusCompleted     = "completed"
	statusFailed        = "failed"
	statusCancelled     = "cancelled"
)

// An olderTask is a task in the form of revision 2025-11-25.
type olderTask struct {
	TaskID        string          `json:"taskId"`
	Status        string          `json:"status"`
	StatusMessage string          `json:"statusMessage"`
	CreatedAt     json.RawMessage `json:"createdAt"`
	LastUpdatedAt json.RawMessage `json:"lastUpdatedAt"`
	TTL           *float64        `json:"ttl"`
	PollInterval  *float64        `json:"pollInterval"`
}

// A newerTask is a task in the form of the extension.
type newerTask struct {
	ResultType     string                  `json:"resultType"`
	TaskID         string                  `json:"taskId"`
	Status         string                  `json:"status"`
	StatusMessage  string                  `json:"statusMessage,omitempty"`
	CreatedAt      json.RawMessage         `json:"createdAt,omitempty"`
	LastUpdatedAt  json.RawMessage         `json:"lastUpdatedAt,omitempty"`
	TTLMs          *int64                  `json:"ttlMs"`
	PollIntervalMs *int64                  `json:"pollIntervalMs,omitempty"`
	InputRequests  map[string]inputRequest `json:"inputRequests,omitempty"`
	Result         json.RawMessage         `json:"result,omitempty"`
	Error          *transport.Error        `json:"error,omitempty"`
}

// readTask decodes and validates a task of the server.
func readTask(raw json.RawMessage) (*olderTask, error) {
	t := new(olderTask)
	if err := strictjson.Unmarshal(raw, t); err != nil {
		return nil, fmt.Errorf("mcp: the server's answer is not a task: %w: %w", transport.ErrUnreadable, err)
	}
	if t.TaskID == "" {
		return nil, fmt.Errorf("mcp: the server's answer is a task without taskId: %w", transport.ErrUnreadable)
	}
	return t, nil
}

// newer returns the task in the form of the extension, without its outcome. A task that
// needs input is reported as working until its questions are known.
func (t *olderTask) newer() *newerTask {
	n := &newerTask{
		ResultType: "complete", TaskID: t.TaskID, Status: t.Status, StatusMessage: t.StatusMessage,
		CreatedAt: t.CreatedAt, LastUpdatedAt: t.LastUpdatedAt, TTLMs: milliseconds(t.TTL), PollIntervalMs: milliseconds(t.PollInterval),
	}
	if n.Status == statusInputRequired {
		n.Status = statusWorking
	}
	return n
}

// maxMilliseconds limits durations set by a server, so that they fit in a time.Duration.
const maxMilliseconds = 1 << 43

func milliseconds(ms *float64) *int64 {
	if ms == nil {
		return nil
	}
	n := int64(min(max(*ms, 0), maxMilliseconds))
	return &n
}

func taskParams(id string) json.RawMessage {
	return strictjson.MustMarshal(map[string]string{"taskId": id})
}

// taskOf returns the ID of the task that a request is about.
func taskOf(m *transport.Outgoing) string {
	return text(jsonscan.Member(jsonscan.Member(m.Body, "params"), "taskId"))
}

// getTask serves tasks/get.
func (s *session) getTask(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	r, t, err := s.taskState(ctx, taskOf(m))
	if err != nil || t == nil {
		return withID(r, m.ID), err
	}
	n := t.newer()
	switch t.Status {
	case statusCompleted, statusFailed:
		if err := s.addOutcome(ctx, n); err != nil {
			return nil, err
		}
	case statusCancelled:
	default:
		s.addQuestions(ctx, n, t.Status == statusInputRequired, callerCapabilities(m))
	}
	return &transport.Message{ID: m.ID, Result: strictjson.MustMarshal(n)}, nil
}

// taskState requests the state of a task. If the server returns an error response, t is
// nil.
func (s *session) taskState(ctx context.Context, id string) (r *transport.Message, t *olderTask, err error) {
	r, err = s.requestInSession(ctx, revision.TaskGet, taskParams(id))
	if err == nil && r.Error == nil {
		t, err = readTask(r.Result)
	}
	return r, t, err
}

// addOutcome adds the outcome of a task that has ended. In the extension, a task has failed
// only if its call was answered with an error.
func (s *session) addOutcome(ctx context.Context, n *newerTask) error {
	r, err := s.requestInSession(ctx, revision.TaskResult, taskParams(n.TaskID))
	switch {
	case err != nil:
		return err
	case r.Error != nil:
		n.Status, n.Error = statusFailed, r.Error
	default:
		n.Status, n.Result = statusCompleted, withoutRelatedTask(r).Result
	}
	return nil
}

// withoutRelatedTask removes the related-task metadata from a response. The newest revision
// does not have it.
func withoutRelatedTask(r *transport.Message) *transport.Message {
	if r == nil || r.Result == nil {
		return r
	}
	meta := jsonscan.Member(r.Result, "_meta")
	if jsonscan.Member(meta, revision.MetaRelatedTask) == nil {
		return r
	}
	with := append(jsonscan.AppendKey([]byte{'{'}, "_meta"), jsonscan.AppendMembers([]byte{'{'}, meta, revision.MetaRelatedTask)...)
	return &transport.Message{ID: r.ID, Result: jsonscan.AppendMembers(with, r.Result, "_meta")}
}

// cancelTask serves tasks/cancel. In the extension, cancelling a task that has ended is
// allowed and has no effect.
func (s *session) cancelTask(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	r, err := s.requestInSession(ctx, revision.TaskCancel, taskParams(taskOf(m)))
	if err != nil {
		return nil, err
	}
	hasEnded := r.Error != nil && r.Error.Code == codeInvalidParams && s.knowsTask(ctx, taskOf(m))
	if r.Error != nil && !hasEnded {
		return withID(r, m.ID), nil
	}
	s.endStream(taskOf(m))
	return acknowledgement(m.ID), nil
}

// knowsTask reports whether the server knows a task.
func (s *session) knowsTask(ctx context.Context, id string) bool {
	_, t, err := s.taskState(ctx, id)
	return err == nil && t != nil
}

// acknowledgement returns the response to tasks/update and tasks/cancel.
func acknowledgement(id transport.ID) *transport.Message {
	return &transport.Message{ID: id, Result: json.RawMessage(`{"resultType":"complete"}`)}
}
