// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package transport

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/strictjson"
)

// IsBatch reports whether data is a JSON array, which is a batch of messages in the revision
// 2025-03-26.
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

// maxItems is the maximum number of messages in a batch. Without a limit, every two bytes of
// input could become a message.
const maxItems = 4096

// SplitBatch returns the unparsed messages of a batch. Its error is a [*MessageError].
func SplitBatch(data []byte) ([][]byte, error) {
	s := jsonscan.Get(data, 0)
	defer s.Release()
	var items [][]byte
	s.Array()
	for s.Element() {
		if len(items) == maxItems {
			return nil, invalid(Message{}, "a batch has more than %d messages", maxItems)
		}
		items = append(items, s.Value())
	}
	if err := s.End(); err != nil {
		return nil, malformed(err)
	}
	if len(items) == 0 {
		return nil, invalid(Message{}, "a batch must not be empty")
	}
	return items, nil
}

// Messages returns an iterator over the messages in data, which is one message or a batch. A
// message that cannot be read has an Err.
func Messages(data []byte) iter.Seq[Message] {
	return func(yield func(Message) bool) {
		if !IsBatch(data) {
			yield(readMessage(data))
			return
		}
		items, err := SplitBatch(data)
		if err != nil {
			if !yield(UnreadableMessage(err)) {
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
	if err != nil {
		return UnreadableMessage(err)
	}
	return m
}

// UnreadableMessage returns the message with its Err for an error of [ParseMessage] or of a
// [Stream].
func UnreadableMessage(err error) Message {
	e, ok := errors.AsType[*MessageError](err)
	if !ok {
		e = &MessageError{Code: CodeInvalidRequest, Err: err}
	}
	m := e.Message
	m.Err = e
	return m
}

// ParseMessage parses one message strictly: names are case-sensitive, no member may occur
// twice, and no data may follow. The message refers to data, which must no longer be modified.
//
// The error is a [*MessageError], whose Message is returned as well.
func ParseMessage(data []byte) (Message, error) {
	var e envelope
	s := jsonscan.Get(data, 0)
	defer s.Release()
	e.scan(s)
	if err := s.End(); err != nil {
		broken := malformed(err)
		broken.Message, broken.Response = salvage(data, nil)
		return broken.Message, broken
	}
	m, err := e.message()
	if err != nil {
		return m, err
	}
	return m, nil
}

func malformed(err error) *MessageError {
	return &MessageError{Code: CodeParseError, Err: fmt.Errorf("malformed JSON: %w", err)}
}

func invalid(m Message, format string, args ...any) *MessageError {
	return &MessageError{Message: m, Code: CodeInvalidRequest, Err: fmt.Errorf(format, args...)}
}

// envelope holds the members of a message, found in one pass.
type envelope struct {
	version, id, method, params, result, failure json.RawMessage
	notObject                                    bool
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
			e.id = s.Value()
		case "method":
			e.method = s.Value()
		case "params":
			e.params = s.Value()
		case "result":
			e.result = s.Value()
		case "error":
			e.failure = s.Value()
		default:
			s.Skip()
		}
	}
}

func (e *envelope) message() (Message, *MessageError) {
	if e.notObject {
		return e.refuse(Message{}, "a message must be an object")
	}
	id, ok := ParseID(e.id)
	m := Message{ID: id}
	switch {
	case len(e.version) == 0 || e.version[0] != '"' || string(jsonscan.Unquote(e.version)) != "2.0":
		return e.refuse(m, `the member "jsonrpc" must be "2.0"`)
	case e.result != nil || e.failure != nil:
		return e.response(m)
	case e.method == nil:
		return e.refuse(m, `a message must have the member "method", "result" or "error"`)
	case !isMethod(e.method):
		return e.refuse(m, `the member "method" must be a string that is not empty`)
	case e.id != nil && !ok:
		return e.refuse(m, `the member "id" must be a string or an integer`)
	}
	m.Method, m.Params = jsonscan.Text(e.method, "tools/call"), e.params
	return m, nil
}

func (e *envelope) response(m Message) (Message, *MessageError) {
	if e.method != nil || (e.result != nil && e.failure != nil) {
		return e.refuse(m, `a response must have exactly one of "result" and "error", and no "method"`)
	}
	m.ID = m.ID.Canonical()
	m.Result = e.result
	if e.failure == nil {
		return m, nil
	}
	failure, err := parseError(e.failure)
	if err != nil {
		return e.refuse(m, `the member "error" must be an object with an integer "code" and a string "message"`)
	}
	m.Error = failure
	return m, nil
}

func parseError(raw json.RawMessage) (*Error, error) {
	s := jsonscan.Get(raw, 0)
	defer s.Release()
	if s.Kind() != '{' {
		return nil, errors.New("not an object")
	}
	var code, message json.RawMessage
	e := new(Error)
	s.Object()
	for s.Member() {
		switch string(s.Name()) {
		case "code":
			code = s.Value()
		case "message":
			message = s.Value()
		case "data":
			e.Data = s.Value()
		default:
			s.Skip()
		}
	}
	if code != nil {
		if err := strictjson.Unmarshal(code, &e.Code); err != nil {
			return nil, err
		}
	}
	if message != nil {
		if err := json.Unmarshal(message, &e.Message); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// refuse returns the error for an invalid message that is well-formed JSON, and the parts of
// the message that could be read.
func (e *envelope) refuse(m Message, why string) (Message, *MessageError) {
	err := invalid(m, "%s", why)
	switch {
	case m.ID.IsZero():
	case isMethod(e.method):
		err.Message.Method = jsonscan.Text(e.method)
	case e.result != nil || e.failure != nil:
		err.Message.ID, err.Response = m.ID.Canonical(), true
	}
	return err.Message, err
}

// isMethod reports whether a JSON value can be the name of a method.
func isMethod(raw []byte) bool { return len(raw) > len(`""`) && raw[0] == '"' }
