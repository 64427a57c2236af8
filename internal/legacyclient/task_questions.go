// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp/transport"
)

// A taskStream receives the questions of one task. A server of 2025-11-25 asks them while
// it serves tasks/result. A taskStream is guarded by session.mu.
type taskStream struct {
	capabilities json.RawMessage // of the latest caller that requested the task
	open         map[string]taskQuestion
	added        chan struct{} // signals a new question; capacity 1
	done         chan struct{} // closed when the tasks/result request has ended
	cancel       context.CancelFunc
	expiry       *time.Timer
}

// A taskQuestion is a question that is not answered yet.
type taskQuestion struct {
	id      transport.ID // of the server's request
	request inputRequest
}

// firstQuestion limits how long tasks/get waits for a question of a task that needs input.
const firstQuestion = time.Second

// addQuestions adds the open questions of a running task to n. If the task waits for
// answers, addQuestions starts to receive its questions.
func (s *session) addQuestions(ctx context.Context, n *newerTask, waits bool, capabilities json.RawMessage) {
	stream := s.streamOf(n.TaskID, waits, capabilities)
	if stream == nil {
		return
	}
	if s.openQuestions(stream) == nil && waits {
		select {
		case <-stream.added:
		case <-stream.done:
		case <-time.After(firstQuestion):
		case <-ctx.Done():
		}
	}
	if open := s.openQuestions(stream); open != nil {
		n.Status, n.InputRequests = statusInputRequired, open
	}
}

// openQuestions returns the unanswered questions, or nil.
func (s *session) openQuestions(stream *taskStream) (open map[string]inputRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, q := range stream.open {
		if open == nil {
			open = map[string]inputRequest{}
		}
		open[key] = q.request
	}
	return open
}

// streamOf returns the question stream of a task, or nil. If start is true, it starts one
// unless there are too many.
func (s *session) streamOf(id string, start bool, capabilities json.RawMessage) *taskStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream := s.streams[id]
	if stream == nil && start && len(s.streams) < maxPending {
		stream = s.startStreamLocked(id)
	}
	if stream != nil {
		stream.capabilities = capabilities
		stream.expiry.Reset(pendingTime)
	}
	return stream
}

// startStreamLocked starts a stream in a goroutine. The stream ends when the server
// responds, or when no client has requested the task for pendingTime.
func (s *session) startStreamLocked(id string) *taskStream {
	ctx, cancel := context.WithCancel(s.ctx)
	stream := &taskStream{
		open: map[string]taskQuestion{}, added: make(chan struct{}, 1), done: make(chan struct{}),
		cancel: cancel, expiry: time.AfterFunc(pendingTime, cancel),
	}
	s.streams[id] = stream
	go func() {
		defer close(stream.done)
		defer s.removeStream(id, stream)
		// The result is discarded: tasks/get requests the outcome.
		_, err := s.requestInSession(ctx, revision.TaskResult, taskParams(id))
		if err != nil {
			s.conn.opts.Logger.DebugContext(ctx, "mcp: the questions of a task are no longer received", "error", err)
		}
	}()
	return stream
}

// endStream ends the stream of a task, if there is one.
func (s *session) endStream(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stream := s.streams[id]; stream != nil {
		stream.cancel()
	}
}

func (s *session) removeStream(id string, stream *taskStream) {
	stream.cancel()
	stream.expiry.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, id)
}

// addTaskQuestion adds a question to the task that it belongs to, and reports whether the
// task has a stream.
func (s *session) addTaskQuestion(m *transport.Message) bool {
	meta := jsonscan.Member(m.Params, "_meta")
	id := text(jsonscan.Member(jsonscan.Member(meta, revision.MetaRelatedTask), "taskId"))
	s.mu.Lock()
	defer s.mu.Unlock()
	stream := s.streams[id]
	if id == "" || stream == nil {
		return false
	}
	refused := s.conn.client.MayAsk(stream.capabilities, m.Method, m.Params)
	if refused == nil && len(stream.open) >= s.conn.opts.MaxQuestions {
		refused = tooMany(s.conn.opts.MaxQuestions)
	}
	size := len(m.Params)
	for _, q := range stream.open {
		size += len(q.request.Params)
	}
	if refused == nil && len(stream.open) > 0 && size > maxAskedSize {
		refused = tooLarge()
	}
	if refused != nil {
		go func() { _ = s.reply(s.ctx, m.ID, nil, refused) }() // reply logs the error
		return true
	}
	params := m.Params
	if meta = jsonscan.AppendMembers([]byte{'{'}, meta, revision.MetaRelatedTask); string(meta) == "{}" {
		params = jsonscan.AppendMembers([]byte{'{'}, params, "_meta")
	} else {
		params = jsonscan.AppendMembers(append(jsonscan.AppendKey([]byte{'{'}, "_meta"), meta...), params, "_meta")
	}
	stream.open[rand.Text()[:12]] = taskQuestion{m.ID, inputRequest{m.Method, params}}
	select {
	case stream.added <- struct{}{}:
	default:
	}
	return true
}

// withdrawTaskQuestionLocked removes a question that the server has withdrawn.
func (s *session) withdrawTaskQuestionLocked(id transport.ID) {
	for _, stream := range s.streams {
		for key, q := range stream.open {
			if q.id.Canonical() == id.Canonical() {
				delete(stream.open, key)
			}
		}
	}
}

// updateTask serves tasks/update: it sends the answers to the server. Answers to questions
// that are not open are ignored.
func (s *session) updateTask(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	var p struct {
		InputResponses map[string]json.RawMessage `json:"inputResponses"`
	}
	if readable := strictjson.Unmarshal(jsonscan.Member(m.Body, "params"), &p) == nil; !readable || p.InputResponses == nil {
		return errorResponse(m.ID, &transport.Error{Code: codeInvalidParams, Message: "params.inputResponses must be an object of answers"}), nil
	}
	stream := s.streamOf(taskOf(m), false, callerCapabilities(m))
	if stream == nil {
		if r, t, err := s.taskState(ctx, taskOf(m)); err != nil || t == nil {
			return withID(r, m.ID), err
		}
		return acknowledgement(m.ID), nil
	}
	for key, answer := range p.InputResponses {
		if err := s.answerTask(ctx, stream, key, answer); err != nil {
			return nil, err
		}
	}
	return acknowledgement(m.ID), nil
}

// answerTask sends the answer to an open question of a task. If that fails, the question
// stays open.
func (s *session) answerTask(ctx context.Context, stream *taskStream, key string, answer json.RawMessage) error {
	s.mu.Lock()
	q, ok := stream.open[key]
	delete(stream.open, key)
	generation := s.generation
	s.mu.Unlock()
	if !ok {
		return nil
	}
	err := s.replyInSession(ctx, generation, q.id, answer, nil)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		stream.open[key] = q
	}
	return err
}

// callerCapabilities returns the capabilities of the sender of a request.
func callerCapabilities(m *transport.Outgoing) json.RawMessage {
	return jsonscan.Member(jsonscan.Member(jsonscan.Member(m.Body, "params"), "_meta"), metaCapabilities)
}
