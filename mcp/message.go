// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"

	"github.com/go-psi/psi/internal/jsonscan"
)

// A Message is one JSON-RPC message as it was read: a request, a notification
// or a response. Exactly one of Request and Response is set.
type Message struct {
	ID       ID        // of the request or response, zero if it has none
	Request  *Request  // a request, or a notification if ID is zero
	Response *Response // the answer to a question of ours
}

// A Response is the answer to a request.
type Response struct {
	ID     ID
	Result json.RawMessage // nil if Error is set
	Error  *Error
}

// IsBatch reports whether data is a JSON array, which is how 2025-03-26 wraps
// several messages in one.
func IsBatch(data []byte) bool {
	for _, c := range data {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == '['
		}
	}
	return false
}

// SplitBatch takes a batch apart. Its error is an [*Error].
func SplitBatch(data []byte) ([][]byte, error) {
	s := jsonscan.Get(data, 0)
	defer s.Release()
	var items [][]byte
	s.Array()
	for s.Element() {
		items = append(items, s.Value())
	}
	if err := s.End(); err != nil {
		return nil, Errorf(CodeParseError, "malformed JSON: %w", err)
	}
	if len(items) == 0 {
		return nil, Errorf(CodeInvalidRequest, "a batch must not be empty")
	}
	return items, nil
}

// ParseMessage reads one message, strictly: case matters, no member may stand
// twice, nothing may follow. It keeps data, which must not change any more.
//
// The error is an [*Error] to be sent back; the Message then still has the ID if
// that could be read.
func ParseMessage(data []byte) (Message, error) {
	var e envelope
	s := jsonscan.Get(data, 0)
	defer s.Release()
	e.scan(s)
	if err := s.End(); err != nil {
		return Message{}, Errorf(CodeParseError, "malformed JSON: %w", err)
	}
	return e.message()
}

// envelope collects what one pass over a message finds.
type envelope struct {
	version, id, method, result, failure json.RawMessage
	request                              *Request // nil as long as nothing has told that it is one
	hasID, hasMethod                     bool
	notObject                            bool
	problem                              *Error // with the params
}

func (e *envelope) scan(s *jsonscan.Scanner) {
	if s.Kind() != '{' {
		e.notObject = true
		s.Skip()
		return
	}
	s.Object()
	for s.Member() {
		switch string(s.Name()) {
		case "jsonrpc":
			e.version = s.Value()
		case "id":
			e.id, e.hasID = s.Value(), true
		case "method":
			e.method, e.hasMethod = s.Value(), true
		case "params":
			e.problem = e.asRequest().scanParams(s)
		case "result":
			e.result = s.Value()
		case "error":
			e.failure = s.Value()
		default:
			s.Skip()
		}
	}
}

// asRequest makes the request when it is needed: answers have none.
func (e *envelope) asRequest() *Request {
	if e.request == nil {
		e.request = newRequest()
	}
	return e.request
}

func (e *envelope) message() (Message, error) {
	if e.notObject {
		return Message{}, Errorf(CodeInvalidRequest, "a message must be an object")
	}
	id, ok := parseID(e.id)
	m := Message{ID: id}
	switch {
	case string(e.version) != `"2.0"`:
		return m, Errorf(CodeInvalidRequest, `the member "jsonrpc" must be "2.0"`)
	case e.result != nil || e.failure != nil:
		return e.response(m)
	case !e.hasMethod:
		return m, Errorf(CodeInvalidRequest, `a message must have the member "method", "result" or "error"`)
	case e.method[0] != '"' || len(e.method) == len(`""`):
		return m, Errorf(CodeInvalidRequest, `the member "method" must be a string that is not empty`)
	case e.hasID && !ok:
		return m, Errorf(CodeInvalidRequest, `the member "id" must be a string or an integer`)
	}
	m.Request = e.asRequest()
	m.Request.ID = id
	m.Request.Method = internMethod(jsonscan.Unquote(e.method))
	if e.problem == nil {
		e.problem = m.Request.checkSubject()
	}
	if e.problem != nil {
		return m, e.problem
	}
	return m, nil
}

func (e *envelope) response(m Message) (Message, error) {
	if e.hasMethod || (e.result != nil && e.failure != nil) {
		return m, Errorf(CodeInvalidRequest, `a response must have exactly one of "result" and "error", and no "method"`)
	}
	m.Response = &Response{ID: m.ID, Result: e.result}
	if e.failure == nil {
		return m, nil
	}
	m.Response.Error = new(Error)
	if err := unmarshal(e.failure, m.Response.Error); err != nil {
		return m, Errorf(CodeInvalidRequest, `the member "error" must be an object with an integer "code" and a string "message"`)
	}
	return m, nil
}
