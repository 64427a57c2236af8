// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"bytes"
	"errors"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/mcp/transport"
)

// ErrUnreadable means that a peer answered with something other than a response of this
// protocol: malformed JSON, a message that is too long, or a web page. The request may have
// been served.
var ErrUnreadable = errors.New("mcp: the answer is not a readable response")

// An UnreadableError is the error of a [Stream] for one message that it cannot return, for
// example because it is too long. Message is what is known about it. If it is a response,
// the call that it answers fails; if it is a request, it is answered with the error.
type UnreadableError struct {
	Message Message
	Err     *Error
}

// Unreadable returns an UnreadableError. It looks for the ID and the method in the head and
// the tail of the message, which may be cut off anywhere.
func Unreadable(head, tail []byte, err *Error) *UnreadableError {
	return &UnreadableError{Message: salvage(head, tail, err), Err: err}
}

func (e *UnreadableError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UnreadableError) Unwrap() error { return e.Err }

// salvage returns what can be found out about a message that cannot be read as a whole.
func salvage(head, tail []byte, err *Error) Message {
	var found struct {
		id, method    []byte
		answer, twice bool
	}
	addMember := func(name, value []byte) {
		switch string(name) {
		case "id":
			found.twice = found.twice || found.id != nil && !bytes.Equal(found.id, value)
			found.id = value
		case "method":
			found.method = value
		case "result", "error":
			found.answer = true
		}
	}
	jsonscan.Members(head, addMember)
	jsonscan.LastMembers(tail, addMember)
	id := salvageID(found.id)
	switch {
	case id.IsZero() || found.twice:
		return Message{}
	case isMethod(found.method) && jsonscan.Valid(found.method, 0) == nil:
		return Message{ID: id, Request: unreadableRequest(id, found.method)}
	case found.method == nil && (found.answer || len(tail) > 0):
		return Message{ID: id, Response: unreadableResponse(id, err)}
	}
	return Message{ID: id}
}

// salvageItems returns the items of a batch that cannot be read as a whole.
func salvageItems(data []byte) (items [][]byte) {
	jsonscan.Elements(data, func(item []byte) bool {
		items = append(items, item)
		return len(items) < maxItems
	})
	return items
}

func salvageID(raw []byte) ID {
	if jsonscan.Valid(raw, 0) != nil {
		return ID{}
	}
	id, _ := transport.ParseID(raw)
	return id
}

// isMethod reports whether a JSON value can be the name of a method.
func isMethod(raw []byte) bool { return len(raw) > len(`""`) && raw[0] == '"' }

func unreadableRequest(id ID, method []byte) *Request {
	req := newRequest()
	req.ID, req.Method = id, internMethod(jsonscan.Unquote(method))
	return req
}

// unreadableResponse returns the response for the call that an unreadable message answers.
func unreadableResponse(id ID, err *Error) *Response {
	return &Response{ID: id.Canonical(), Error: &Error{Code: err.Code, Message: "the answer could not be read: " + err.Message, Cause: ErrUnreadable}}
}

// unreadable returns the message, for a [Receiver], that an error of [ParseMessage] or of a
// [Stream] is about.
func unreadable(m Message, err error) Message {
	if e, ok := errors.AsType[*UnreadableError](err); ok {
		m = e.Message
	}
	m.Err = asError(err)
	return m
}
