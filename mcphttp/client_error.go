// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// ErrMessageTooLong is the error of a call whose response is longer than
// TransportOptions.MaxMessage. The server has already served the request.
var ErrMessageTooLong = errors.New("mcphttp: the server's message is longer than TransportOptions.MaxMessage")

// unreadable returns the message that reports an event whose data was too long.
func (e *event) unreadable() transport.Message {
	return transport.UnreadableMessage(transport.Unreadable(e.head, e.tail, transport.CodeInvalidRequest, ErrMessageTooLong))
}

// A StatusError reports an HTTP response that is not a message of the protocol: it has an
// error status, or its body is not a message. Use errors.As to find it in the errors of a
// transport, and errors.Is to test its kind: [transport.ErrUnauthorized],
// [transport.ErrSessionLost], [transport.ErrNotUnderstood], [transport.ErrUnreadable] or
// none. If the body is a JSON-RPC error, errors.As finds that [*mcp.Error] as well.
type StatusError struct {
	Status int
	Header http.Header // includes WWW-Authenticate, Retry-After, Location, Content-Type
	Body   string      // at most its first 4 KiB
	answer *mcp.Error  // the JSON-RPC error in the body, nil if there is none
	kind   error       // nil if it has none
}

const (
	maxStatusBody  = 4 << 10 // bytes of the body in a StatusError
	maxRefusalBody = 1 << 20 // bytes of a body that are read as a message
)

func (e *StatusError) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("mcphttp: the server answered %d %s", e.Status, http.StatusText(e.Status)))
	to, body := e.Header.Get("Location"), strings.TrimSpace(e.Body)
	switch {
	case e.Status/100 == 3 && to != "":
		return text + fmt.Sprintf(" to %q, which is not followed: give the transport the URL at which the server is", redact.URL(to))
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

// Is reports whether target is the kind of e.
func (e *StatusError) Is(target error) bool { return e.kind != nil && target == e.kind }

// Unwrap returns the JSON-RPC error in the body, or nil if there is none. It also returns
// nil if the server requires authentication, because the error is then not a response to the call.
func (e *StatusError) Unwrap() error {
	if e.answer == nil || e.isUnauthorized() {
		return nil // not a nil *mcp.Error
	}
	return e.answer
}

// Transient reports whether the request may succeed later, because the server or a proxy is
// failing or overloaded.
func (e *StatusError) Transient() bool {
	return e.Status/100 == 5 && e.Status != http.StatusNotImplemented || e.Status == http.StatusTooManyRequests
}

// RetryAfter returns how long to wait before retrying the request, if the server limits the
// rate or is unavailable and has said so in the Retry-After header, as seconds or as a date. It
// is what [mcp.RetryAfter] returns for e.
func (e *StatusError) RetryAfter() (time.Duration, bool) {
	if e.Status != http.StatusTooManyRequests && e.Status != http.StatusServiceUnavailable {
		return 0, false
	}
	const most = 24 * 60 * 60 // seconds, so that the duration cannot overflow
	text := strings.TrimSpace(e.Header.Get("Retry-After"))
	if text != "" && strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil { // out of range
			seconds = most
		}
		return time.Duration(min(seconds, most)) * time.Second, true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	return min(max(0, time.Until(at)), most*time.Second), true
}

// errorResponse returns e as the response to the request id.
func errorResponse(id mcp.ID, e *mcp.Error) *transport.Message {
	return &transport.Message{ID: id, Error: &transport.Error{Code: e.Code, Message: e.Message, Data: e.Data, Cause: e.Cause}}
}

// readRefusal reads an unsuccessful HTTP response.
func (p *peer) readRefusal(res *http.Response) *StatusError {
	e := &StatusError{Status: res.StatusCode, Header: res.Header}
	body, _ := io.ReadAll(io.LimitReader(res.Body, min(p.opts.MaxMessage, maxRefusalBody))) // a part of it is enough
	body = withoutMark(body)
	if m, err := transport.ParseMessage(body); err == nil && m.Error != nil {
		e.answer = &mcp.Error{Code: m.Error.Code, Message: m.Error.Message, Data: m.Error.Data}
	}
	return e.withBody(body)
}

// noMessageError returns the error of a call whose HTTP response is successful but contains
// no message. The server may have served the request.
func noMessageError(res *http.Response, body []byte) error {
	return (&StatusError{Status: res.StatusCode, Header: res.Header}).withBody(body).withKind(transport.ErrUnreadable)
}

func (e *StatusError) withBody(body []byte) *StatusError {
	e.Body = string(body[:min(len(body), maxStatusBody)])
	return e
}

func (e *StatusError) withKind(kind error) error {
	e.kind = kind
	return e
}

// isUnauthorized reports whether the server requires authentication. A 403 with a JSON-RPC
// error and without a challenge has another reason.
func (e *StatusError) isUnauthorized() bool {
	switch e.Status {
	case http.StatusUnauthorized:
		return true
	case http.StatusForbidden:
		return e.answer == nil || e.Header.Get("WWW-Authenticate") != "" && !e.lacksScope()
	}
	return false
}

// lacksScope reports whether the caller is authenticated but lacks a scope.
func (e *StatusError) lacksScope() bool {
	return e.answer != nil && e.answer.Code == mcp.CodeInsufficientScope
}

// isModern reports whether the refusal comes from a server of the modern era.
func (e *StatusError) isModern() bool {
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

// isAboutMessage reports whether the message itself was refused, not its sender, time or
// size, and not by a proxy.
func (e *StatusError) isAboutMessage() bool {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout,
		http.StatusRequestEntityTooLarge, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return e.Status/100 == 4
}

// asModern interprets the refusal of a modern message: it returns an error response or an error.
func (e *StatusError) asModern() (*mcp.Error, error) {
	switch {
	case e.isUnauthorized():
		return nil, e.withKind(transport.ErrUnauthorized)
	case e.isAboutMessage() && !e.isModern():
		return nil, e.withKind(transport.ErrNotUnderstood)
	case e.answer != nil && !e.lacksScope():
		return e.response(), nil
	case e.Status == http.StatusInternalServerError, e.Status == http.StatusNotImplemented:
		return nil, e.withKind(transport.ErrUnreadable) // some servers answer messages that they do not know with it
	}
	return nil, e // contains the challenge, and the JSON-RPC error if there is one
}

// response returns the JSON-RPC error in the body as the response to a call. If the status
// says that the request may succeed later, which 500 does not, its Cause is a StatusError.
func (e *StatusError) response() *mcp.Error {
	answer := *e.answer
	if e.Transient() && e.Status != http.StatusInternalServerError {
		answer.Cause = &StatusError{Status: e.Status, Header: e.Header}
	}
	return &answer
}
