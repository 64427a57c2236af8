// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// A Direction states which side received a message.
type Direction string

// The directions of messages.
const (
	ToServer Direction = "to-server"
	ToClient Direction = "to-client"
)

// An Era is one of the two eras of the protocol.
type Era string

// Modern requests name their revision; legacy requests belong to a session.
const (
	Modern Era = "modern"
	Legacy Era = "legacy"
)

// eraOf returns the era of a version. The version is "" until a legacy session has one.
func eraOf(version string) Era {
	if slices.Contains(mcp.ModernVersions(), version) {
		return Modern
	}
	return Legacy
}

// An Entry is one line of a recording: a message, or a failure in place of one.
type Entry struct {
	// Line is the line number, starting at 1. It is set by [Read].
	Line int `json:"-"`
	// Time is when the message was sent or received.
	Time      time.Time `json:"time"`
	Direction Direction `json:"direction"`
	// Era is the era of the message, or of the last request if the message does not
	// indicate one.
	Era Era `json:"era"`
	// Session names the connection of a client or, at a server, the session. It is "" for
	// requests that a server receives outside of a session. It is not the session ID, which
	// is a secret.
	Session string `json:"session,omitzero"`
	// Stream reports that the connection is a byte stream to one server process.
	Stream bool `json:"stream,omitzero"`
	// About is the ID of the request whose stream carried the message, or zero if there is
	// none.
	About transport.ID `json:"about,omitzero"`
	// Header contains the arguments of a request that are mirrored in headers
	// (x-mcp-header).
	Header map[string]string `json:"header,omitempty"`
	// Message is the JSON-RPC message, redacted. It is nil if there is a Failure.
	Message json.RawMessage `json:"message,omitzero"`
	// Omitted is the size in bytes of a message that was too long, or nested too deeply, to
	// be recorded. Message then has neither params nor result. 0 means that the message is
	// complete.
	Omitted int `json:"omitted,omitzero"`
	// Failure is the reason why there is no message, or nil if there is one.
	Failure *Failure `json:"failure,omitzero"`

	parsed transport.Message
}

// A Failure is an event other than a message.
type Failure struct {
	// ID is the ID of the failed request. It is zero if no connection was made or if the
	// connection may have lost messages.
	ID   transport.ID `json:"id,omitzero"`
	Kind FailureKind  `json:"kind"`
	// Text is the error text, redacted.
	Text string `json:"text,omitzero"`
	// Ended reports that the connection had ended.
	Ended bool `json:"ended,omitzero"`
}

// A FailureKind is the kind of a [Failure].
type FailureKind string

// The kinds of failures. Except for Cancelled, Lost and Failed, they correspond to the
// errors of package transport with the same names.
const (
	Cancelled     FailureKind = "cancelled" // the client did not wait for the response
	Lost          FailureKind = "lost"      // messages that belong to no request may be missing
	Failed        FailureKind = "failed"    // any other reason
	NotUnderstood FailureKind = "not-understood"
	SessionLost   FailureKind = "session-lost"
	Unauthorized  FailureKind = "unauthorized"
	Unreadable    FailureKind = "unreadable"
	Closed        FailureKind = "closed" // by the client
)

// failures are the errors that clients distinguish.
var failures = []struct {
	kind FailureKind
	err  error
}{
	{NotUnderstood, transport.ErrNotUnderstood},
	{SessionLost, transport.ErrSessionLost},
	{Unauthorized, transport.ErrUnauthorized},
	{Unreadable, transport.ErrUnreadable},
	{Closed, transport.ErrClosed},
}

// kindOf returns the kind of an error of a connection.
func kindOf(err error) FailureKind {
	for _, f := range failures {
		if errors.Is(err, f.err) {
			return f.kind
		}
	}
	return Failed
}

// A failureError is the error of a replayed failure, with the recorded text.
type failureError struct {
	text string
	kind error // nil for Failed
}

func (e *failureError) Error() string { return e.text }

func (e *failureError) Unwrap() error { return e.kind }

// error returns the error that was recorded.
func (f *Failure) error() error {
	e := &failureError{text: f.Text}
	for _, known := range failures {
		if known.kind == f.Kind {
			e.kind = known.err
		}
	}
	return e
}

// append appends the entry to dst as a line.
func (e *Entry) append(dst []byte) []byte {
	dst = append(dst, strictjson.MustMarshal(e)...)
	return append(dst, '\n')
}

// parse validates the entry and parses its message.
func (e *Entry) parse() (err error) {
	switch {
	case e.Direction != ToServer && e.Direction != ToClient:
		return fmt.Errorf("the direction is %q, not %q or %q", e.Direction, ToServer, ToClient)
	case (e.Message == nil) == (e.Failure == nil):
		return errors.New("it must have either a message or a failure")
	case e.Message == nil:
		return nil
	}
	e.parsed, err = transport.ParseMessage(e.Message)
	return err
}
