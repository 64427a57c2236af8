// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"iter"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/mcp/transport"
)

// A Message is one JSON-RPC message as it was read: a request, a notification
// or a response. Exactly one of Request and Response is set, unless the message could
// not be read.
type Message struct {
	ID       ID        // of the request or response, zero if it has none
	Request  *Request  // a request, or a notification if ID is zero
	Response *Response // the answer to a question of ours
	Err      *Error    // why a message could not be read; only a [Receiver] sees such
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

// maxItems is how many messages there may be in a batch, of either side. Without a bound,
// two bytes would make one.
const maxItems = 4096

// SplitBatch takes a batch apart. Its error is an [*Error].
func SplitBatch(data []byte) ([][]byte, error) {
	s := jsonscan.Get(data, 0)
	defer s.Release()
	var items [][]byte
	s.Array()
	for s.Element() {
		if len(items) == maxItems {
			return nil, Errorf(CodeInvalidRequest, "a batch has more than %d messages", maxItems)
		}
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

// Messages yields the messages in data, which a server sent: one, or those of a batch. One
// that could not be read has an Err; if it has an id and no method, it is a response.
func Messages(data []byte) iter.Seq[Message] {
	return func(yield func(Message) bool) {
		if !IsBatch(data) {
			yield(readMessage(data))
			return
		}
		items, err := SplitBatch(data)
		if err != nil {
			if !yield(unreadable(Message{}, err)) {
				return
			}
			items = salvageItems(data)
		}
		for _, item := range items {
			if !yield(readMessage(item)) {
				return
			}
		}
	}
}

func readMessage(data []byte) Message {
	m, err := ParseMessage(data)
	if err == nil {
		return m
	}
	if m = unreadable(m, err); m.Request == nil && m.Response == nil && !m.ID.IsZero() {
		m.Response = unreadableResponse(m.ID, m.Err)
	}
	return m
}

// ParseMessage reads one message, strictly: case matters, no member may stand
// twice, nothing may follow. It keeps data, which must not change any more.
//
// The error is an [*Error] to be sent back. The Message then still has the ID if that
// could be read, even from malformed JSON, and says what it belongs to if that is known:
// a Request with its method and without params, or a Response with an Error that wraps
// [ErrUnreadable].
func ParseMessage(data []byte) (Message, error) {
	var e envelope
	s := jsonscan.Get(data, 0)
	defer s.Release()
	e.scan(s)
	if err := s.End(); err != nil {
		malformed := Errorf(CodeParseError, "malformed JSON: %w", err)
		return salvage(data, nil, malformed), malformed
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
	id, ok := transport.ParseID(e.id)
	m := Message{ID: id}
	switch {
	case len(e.version) == 0 || e.version[0] != '"' || string(jsonscan.Unquote(e.version)) != "2.0":
		return e.refused(m, `the member "jsonrpc" must be "2.0"`)
	case e.result != nil || e.failure != nil:
		return e.response(m)
	case !e.hasMethod:
		return m, Errorf(CodeInvalidRequest, `a message must have the member "method", "result" or "error"`)
	case !isMethod(e.method):
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
		return e.refused(m, `a response must have exactly one of "result" and "error", and no "method"`)
	}
	m.ID = m.ID.Canonical()
	m.Response = &Response{ID: m.ID, Result: e.result}
	if e.failure == nil {
		return m, nil
	}
	m.Response.Error = new(Error)
	if err := unmarshal(e.failure, m.Response.Error); err != nil {
		return e.refused(m, `the member "error" must be an object with an integer "code" and a string "message"`)
	}
	return m, nil
}

// refused is a message that is well-formed JSON and not one of the protocol.
func (e *envelope) refused(m Message, why string) (Message, error) {
	err := Errorf(CodeInvalidRequest, "%s", why)
	switch {
	case m.ID.IsZero():
	case isMethod(e.method):
		m.Request = unreadableRequest(m.ID, e.method)
	case e.result != nil || e.failure != nil:
		m.Response = unreadableResponse(m.ID, err)
	}
	return m, err
}
