// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-psi/psi/mcp"
)

// ErrMessageTooLong is the error of a call whose answer is longer than
// TransportOptions.MaxMessage. The request was served.
var ErrMessageTooLong = errors.New("mcphttp: the server's message is longer than TransportOptions.MaxMessage")

// unreadable is the message in an event whose data was too long.
func (e *event) unreadable() mcp.Message {
	lost := mcp.Unreadable(e.head, e.tail, mcp.Errorf(mcp.CodeInvalidRequest, "%w", ErrMessageTooLong))
	lost.Message.Err = lost.Err
	return lost.Message
}

// A StatusError says that a server answered with an HTTP status, or with a body that
// is no message, where the protocol wants a message. It is found, with errors.As, in
// the errors of a transport, and says with errors.Is of which kind it is:
// [mcp.ErrUnauthorized], [mcp.ErrSessionLost], [mcp.ErrNotUnderstood],
// [mcp.ErrUnreadable] or none. If the body was a JSON-RPC error, that [*mcp.Error] is
// found as well.
type StatusError struct {
	Status int
	Header http.Header // with WWW-Authenticate, Retry-After, Location, Content-Type
	Body   string      // no more than its first 4 KiB
	answer *mcp.Error  // the JSON-RPC error in the body, nil if it is none
	kind   error       // nil if it is of none
}

// maxStatusBody is how much of a body is kept of an answer that is no message.
const maxStatusBody = 4 << 10

func (e *StatusError) Error() string {
	text := fmt.Sprintf("mcphttp: the server answered %d %s", e.Status, http.StatusText(e.Status))
	to, body := e.Header.Get("Location"), strings.TrimSpace(e.Body)
	switch {
	case e.redirect() && to != "":
		return text + fmt.Sprintf(" to %q, which is not followed: give the transport the URL at which the server is", to)
	case e.answer != nil:
		return text + ": " + e.answer.Error()
	case e.Status/100 == 2:
		text += fmt.Sprintf(" with the content type %q and no message of the protocol", e.Header.Get("Content-Type"))
	}
	if body != "" {
		text += fmt.Sprintf(": %.200q", body)
	}
	return text
}

func (e *StatusError) redirect() bool { return e.Status/100 == 3 }

// Is reports whether target is the kind of e.
func (e *StatusError) Is(target error) bool { return e.kind != nil && target == e.kind }

// Unwrap returns the JSON-RPC error in the body, if it was one. That of a caller who is
// not known is text, and not an answer.
func (e *StatusError) Unwrap() error {
	if e.answer == nil || e.unauthorized() {
		return nil // not a nil *mcp.Error
	}
	return e.answer
}

// response is the JSON-RPC error in the body as the answer to a call. If it may soon be
// over, its cause says so. Status 500 says nothing of that.
func (e *StatusError) response() *mcp.Error {
	answer := *e.answer
	if e.Transient() && e.Status != http.StatusInternalServerError {
		answer.Cause = &StatusError{Status: e.Status, Header: e.Header}
	}
	return &answer
}

// refusal is what a response that is no success says.
func (p *peer) refusal(res *http.Response) *StatusError {
	e := &StatusError{Status: res.StatusCode, Header: res.Header}
	body, _ := io.ReadAll(io.LimitReader(res.Body, min(p.opts.MaxMessage, maxProblem))) // what could be read is enough
	if m, err := mcp.ParseMessage(body); err == nil && m.Response != nil {
		e.answer = m.Response.Error
	}
	return e.withBody(body)
}

func (e *StatusError) withBody(body []byte) *StatusError {
	e.Body = string(body[:min(len(body), maxStatusBody)])
	return e
}

// noMessage is the error of a call that succeeds with a body that does not answer it. The
// request may have been served.
func noMessage(res *http.Response, body []byte) error {
	return (&StatusError{Status: res.StatusCode, Header: res.Header}).withBody(body).of(mcp.ErrUnreadable)
}

// maxProblem is how long a refusal may be to be read as a message.
const maxProblem = 1 << 20

// of makes e an error of a kind.
func (e *StatusError) of(kind error) error {
	e.kind = kind
	return e
}

// unauthorized reports whether the server wants to know who calls. A 403 with a
// JSON-RPC error and without a challenge is a refusal for another reason.
func (e *StatusError) unauthorized() bool {
	switch e.Status {
	case http.StatusUnauthorized:
		return true
	case http.StatusForbidden:
		return e.answer == nil || e.Header.Get("WWW-Authenticate") != "" && !e.insufficientScope()
	}
	return false
}

// insufficientScope reports whether the server knows the caller and says what the
// caller was not granted.
func (e *StatusError) insufficientScope() bool {
	return e.answer != nil && e.answer.Code == mcp.CodeInsufficientScope
}

// Transient reports whether the refusal may soon be over: the server, or somebody on
// the way to it, fails or has too much to do.
func (e *StatusError) Transient() bool {
	return e.Status/100 == 5 && e.Status != http.StatusNotImplemented || e.Status == http.StatusTooManyRequests
}

// understood reports whether the refusal is one of the modern era.
func (e *StatusError) understood() bool {
	if e.answer == nil {
		return false
	}
	switch e.answer.Code {
	case mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedVersion:
		return true
	case mcp.CodeMethodNotFound:
		return e.Status == http.StatusNotFound
	}
	return false
}

// aboutMessage reports whether the refusal is of the message: not of who sent it,
// when, or how large it is, nor by somebody on the way.
func (e *StatusError) aboutMessage() bool {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout,
		http.StatusRequestEntityTooLarge, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return e.Status/100 == 4
}

// modern is what a refusal means for a message of the modern era.
func (e *StatusError) modern() (*mcp.Error, error) {
	switch {
	case e.unauthorized():
		return nil, e.of(mcp.ErrUnauthorized)
	case e.aboutMessage() && !e.understood():
		return nil, e.of(mcp.ErrNotUnderstood)
	case e.answer != nil && !e.insufficientScope():
		return e.response(), nil
	case e.Status == http.StatusInternalServerError, e.Status == http.StatusNotImplemented:
		return nil, e.of(mcp.ErrUnreadable) // as some servers answer what they do not know
	}
	return nil, e // in which the challenge is, and the answer if there is one
}

// legacy is what a refusal means for a message of the legacy era.
func (e *StatusError) legacy(inSession bool) (*mcp.Error, error) {
	switch {
	case e.unauthorized():
		return nil, e.of(mcp.ErrUnauthorized)
	case inSession && e.Status == http.StatusNotFound && !e.understood():
		return nil, e.of(mcp.ErrSessionLost)
	case e.answer != nil && !e.insufficientScope():
		return e.response(), nil
	}
	return nil, e
}
