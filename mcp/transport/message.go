// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package transport

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-psi/psi/internal/printable"
)

// The JSON-RPC error codes of messages that cannot be read.
const (
	CodeParseError     = -32700 // not valid JSON
	CodeInvalidRequest = -32600 // valid JSON, but not a message
)

// A Message is a JSON-RPC message that was read: a request, a notification or a response. Its
// raw members are valid JSON and must not be modified.
type Message struct {
	ID     ID              // zero for a notification
	Method string          // of a request or notification; "" for a response
	Params json.RawMessage // of a request or notification; nil if absent
	Result json.RawMessage // of a success response
	Error  *Error          // of an error response

	// Err is the reason why the message could not be read, or nil. Such messages are passed
	// to a [Receiver] and yielded by [Messages].
	Err *MessageError

	// About is the ID of the request whose stream carried the message, or the zero ID. Only
	// a [Receiver] is told.
	About ID
	// Lost reports to a [Receiver] that unsolicited messages may have been lost, for example
	// across a reconnect. The Message has nothing else but About.
	Lost bool
}

// IsRequest reports whether m is a request, which must be answered.
func (m *Message) IsRequest() bool { return m.Method != "" && !m.ID.IsZero() }

// IsNotification reports whether m is a notification.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID.IsZero() }

// IsResponse reports whether m is a response, which may be unreadable.
func (m *Message) IsResponse() bool {
	return m.Result != nil || m.Error != nil || m.Err != nil && m.Method == "" && !m.ID.IsZero()
}

// Response returns m as the outcome of the call that it answers. If m could not be read, the
// error wraps [ErrUnreadable].
func (m *Message) Response() (*Message, error) {
	if m.Err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, m.Err)
	}
	return m, nil
}

// An Error is the error object of a response.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitzero"` // nil if absent
	Cause   error           `json:"-"`             // set by the transport; may be nil
}

// Unwrap returns e.Cause.
func (e *Error) Unwrap() error { return e.Cause }

// Error implements the error interface. Control characters in the peer's message are
// escaped, and the text contains at most its first 4 KiB.
func (e *Error) Error() string {
	return fmt.Sprintf("%s (code %d)", printable.Line(printable.Excerpt(e.Message)), e.Code)
}

// A MessageError reports one message that cannot be read. The connection remains usable.
type MessageError struct {
	// Message contains the parts of the message that could be read. If its ID is set, a
	// request must be answered with the error, and a response fails the call that it answers.
	Message Message
	// Response reports that the message is a response, or part of one.
	Response bool
	Code     int   // CodeParseError or CodeInvalidRequest
	Err      error // the reason
}

// Error implements the error interface.
func (e *MessageError) Error() string {
	if e.Err == nil {
		return "mcp: a message cannot be read"
	}
	return e.Err.Error()
}

// Unwrap returns e.Err.
func (e *MessageError) Unwrap() error { return e.Err }

// Errors of connections.
var (
	// ErrClosed is the error of a connection that was closed.
	ErrClosed = errors.New("mcp: closed")
	// ErrUnreadable reports that the response is not a valid message of the protocol, for
	// example malformed JSON, a message over the size limit or a web page. The request may
	// have been served.
	ErrUnreadable = errors.New("mcp: the answer is not a readable response")
	// ErrNotUnderstood reports that the server rejected a message in a way that no server of
	// the newest revision does: it speaks an older revision or another protocol. The message
	// had no effect.
	ErrNotUnderstood = errors.New("mcp: the server did not understand the message")
	// ErrSessionLost reports that the server no longer knows the session. The message had no
	// effect.
	ErrSessionLost = errors.New("mcp: the session is lost")
	// ErrUnauthorized reports that the server requires authentication.
	ErrUnauthorized = errors.New("mcp: the server refused the caller")
)
