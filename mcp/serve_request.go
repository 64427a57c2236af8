// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-psi/psi/mcp/transport"
)

// This file contains what a transport of another module needs to serve single messages of the
// newest revision. For a stream of messages, and for older revisions, there is
// mcpstdio.ServeStream.

// ParseRequest returns the request or notification in m, a message of the newest revision.
// The caller sets its Principal and Header. A request must carry the metadata that the
// revision requires, and a supported version (basic/index#meta). If m is invalid, ParseRequest
// returns an [*Error] for its sender, and a request without params for [AppendResponse]. m must
// not be modified afterwards.
func ParseRequest(m *transport.Message) (*Request, error) {
	if m == nil || m.Method == "" {
		return newRequest(), Errorf(CodeInvalidRequest, "the message is not a request: it has no method")
	}
	req, err := requestOf(m)
	if err == nil && !req.IsNotification() {
		err = req.checkMeta()
		if err == nil {
			err = req.checkVersion()
		}
	}
	if err != nil {
		return req.withoutParams(), err
	}
	return req, nil
}

// ServeRequest calls h for req on behalf of a transport. Notifications about the request,
// such as progress and changes of a subscription, are passed to notify, in order and one at a
// time, until h returns; if notify is nil, they are not delivered. notify must not retain
// params. To cancel the request, the caller cancels ctx, with a [*CancelError] as its cause if
// that is what the client wants. A panic of h is logged with its stack, to the logger of h if h
// is a [Mux], a [Conn] or an [Upstream] and otherwise to [slog.Default], and becomes an internal
// error without details; a panic with [ErrAbortHandler] is not logged.
func ServeRequest(ctx context.Context, h Handler, req *Request, notify func(ctx context.Context, method string, params json.RawMessage) error) (Result, error) {
	mustBeHandler("ServeRequest", h)
	if req == nil {
		panic("mcp: ServeRequest: the request is nil; make one with ParseRequest or NewRequest")
	}
	var n notifier
	if notify != nil {
		n = notifierFunc(notify)
	}
	return serve(ctx, h, req, n, loggerOf(h))
}

// A notifierFunc is a function used as a notifier.
type notifierFunc func(ctx context.Context, method string, params json.RawMessage) error

// Notify implements [notifier].
func (f notifierFunc) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return f(ctx, method, params)
}

// AppendResponse appends the response to req, in the form of the newest revision, to dst: the
// result or, if err is not nil, the error. A nil req stands for a message whose id could not
// be read. A result that is nil or cannot be encoded becomes an internal error.
func AppendResponse(dst []byte, req *Request, res Result, err error) []byte {
	if req == nil {
		req = new(Request)
	}
	if res == nil && err == nil {
		err = errNoOutcome(req.Method)
	}
	return appendResponse(dst, req, res, err)
}

// MarshalResult encodes a result as it is sent inside another message, stored or compared:
// without the members that [AppendResponse] adds for the client of a request.
func MarshalResult(res Result) (json.RawMessage, error) {
	if res == nil {
		return nil, errors.New("mcp: MarshalResult: the result is nil")
	}
	if err := checkResult(res); err != nil {
		return nil, err
	}
	return encodeAnswer(res)
}

// UnmarshalResult decodes the result of a method, as [Conn] does: a method of this package has
// its own type, and any other an [*EmptyResult], whose Extra holds the members. Parts that are
// not valid are left out if the rest can be used without them.
func UnmarshalResult(method string, raw json.RawMessage) (Result, error) {
	res, _, err := decodeResult(method, raw)
	if err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	return res, nil
}
