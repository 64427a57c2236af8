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

// A StatusError says that a server answered with an HTTP status where the protocol
// wants a message. It is found, with errors.As, in the errors of a transport,
// beside the kind: [mcp.ErrUnauthorized], [mcp.ErrSessionLost],
// [mcp.ErrNotUnderstood] or none. If the body was a JSON-RPC error, that
// [*mcp.Error] is found as well.
type StatusError struct {
	Status int
	Header http.Header // with WWW-Authenticate, Retry-After, Location
	Body   string      // no more than its first 4 KiB
	answer *mcp.Error
}

// maxStatusBody is how much of a body is kept of an answer that is no message.
const maxStatusBody = 4 << 10

func (e *StatusError) Error() string {
	text := fmt.Sprintf("mcphttp: the server answered %d %s", e.Status, http.StatusText(e.Status))
	switch to := e.Header.Get("Location"); {
	case e.redirect() && to != "":
		text += fmt.Sprintf(" to %q, which is not followed: give the transport the URL at which the server is", to)
	case e.answer != nil:
		text += ": " + e.answer.Error()
	case strings.TrimSpace(e.Body) != "":
		text += fmt.Sprintf(": %.200q", strings.TrimSpace(e.Body))
	}
	return text
}

func (e *StatusError) redirect() bool { return e.Status/100 == 3 }

// Unwrap returns the JSON-RPC error in the body, if it was one.
func (e *StatusError) Unwrap() error {
	if e.answer == nil {
		return nil // not a nil *mcp.Error
	}
	return e.answer
}

// refusal is what a response that is no success says.
func (p *peer) refusal(res *http.Response) *StatusError {
	e := &StatusError{Status: res.StatusCode, Header: res.Header}
	body, _ := io.ReadAll(io.LimitReader(res.Body, min(p.opts.MaxMessage, maxProblem))) // what could be read is enough
	if m, err := mcp.ParseMessage(body); err == nil && m.Response != nil {
		e.answer = m.Response.Error
	}
	e.Body = string(body[:min(len(body), maxStatusBody)])
	return e
}

// maxProblem is how long a refusal may be to be read as a message.
const maxProblem = 1 << 20

// kind puts an error of a kind above the status.
func (e *StatusError) kind(kind error) error { return fmt.Errorf("%w: %w", kind, e) }

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

// anonymous is the error for a caller that is not known. What else the body says
// stays text: nobody shall take it for an answer.
func (e *StatusError) anonymous() error {
	e.answer = nil
	return e.kind(mcp.ErrUnauthorized)
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
		return nil, e.anonymous()
	case e.aboutMessage() && !e.understood():
		return nil, e.kind(mcp.ErrNotUnderstood)
	case e.answer != nil && !e.insufficientScope():
		return e.answer, nil
	}
	return nil, e // in which the challenge is, and the answer if there is one
}

// legacy is what a refusal means for a message of the legacy era.
func (e *StatusError) legacy(inSession bool) (*mcp.Error, error) {
	switch {
	case e.unauthorized():
		return nil, e.anonymous()
	case inSession && e.Status == http.StatusNotFound && !e.understood():
		return nil, e.kind(mcp.ErrSessionLost)
	case e.answer != nil && !e.insufficientScope():
		return e.answer, nil
	}
	return nil, e
}
