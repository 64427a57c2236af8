// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient

import (
	"context"
	"encoding/json"

	"github.com/go-psi/psi/internal/inflight"
	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp/transport"
)

// call translates a request of the newest revision, and its response.
func (s *session) call(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	switch m.Method {
	case methodDiscover:
		return s.describe(m.ID, s.ping(ctx))
	case methodListen:
		return s.listen(ctx, m)
	}
	r, err := s.callForwarding(ctx, m)
	if err == nil && r.Error != nil && r.Error.Code == revision.CodeURLElicitationRequired {
		r = s.visitsRequired(r, m)
	}
	return r, err
}

// callForwarding sends a request. If forwarding is enabled, questions that the client does
// not answer become the result of the request.
func (s *session) callForwarding(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	if s.conn.opts.Forward && s.conn.opts.MayAsk(m.Method) {
		return s.forward(ctx, m)
	}
	return s.callInSession(ctx, m)
}

// callInSession sends a request. If the server has lost the session, it opens a new one and
// retries the request once.
func (s *session) callInSession(ctx context.Context, m *transport.Outgoing) (r *transport.Message, err error) {
	params := jsonscan.Member(m.Body, "params")
	level := levelIn(jsonscan.Member(params, "_meta"))
	older := transport.Outgoing{ID: m.ID, Method: m.Method, Body: transport.AppendRequest(nil, m.ID, m.Method, olderParams(params))}
	again, isRepeated := false, jsonscan.Member(params, "inputResponses") != nil // after visitsRequired
	err = s.inSession(ctx, func() (err error) {
		if again {
			s.conn.client.Retrying(ctx, m.Method, transport.ErrSessionLost)
		}
		s.lowerLevel(ctx, level)
		r, err = s.callOnce(ctx, older, again || isRepeated)
		again = true
		return err
	})
	switch {
	case err != nil:
	case r.Error != nil && r.Error.Code == revision.CodeResourceNotFound:
		r = missingResource(r, m)
	case r.Error == nil && isList(m.Method):
		r = withoutEmptyCursor(r)
	}
	return r, err
}

// withoutEmptyCursor removes an empty cursor from a page of a list. Some older servers
// always send a cursor; an empty one marks the last page. Following it would repeat the first
// page forever.
func withoutEmptyCursor(r *transport.Message) *transport.Message {
	if string(jsonscan.Member(r.Result, "nextCursor")) != `""` {
		return r
	}
	return &transport.Message{ID: r.ID, Result: jsonscan.AppendMembers([]byte{'{'}, r.Result, "nextCursor")}
}

func (s *session) callOnce(ctx context.Context, m transport.Outgoing, isRepeated bool) (*transport.Message, error) {
	m.Version = s.version()
	defer s.startCall(m.Method, isRepeated)()
	s.inFlight.Add(m.ID, inflight.CallerFromContext(ctx), struct{}{})
	r, err := s.wire.Call(ctx, &m)
	s.inFlight.Remove(m.ID, err)
	if ctx.Err() != nil {
		s.withdrawAbout(m.ID)
	}
	return r, err
}

// olderParams returns params without the members that exist only in the newest revision.
func olderParams(params json.RawMessage) json.RawMessage {
	older := []byte{'{'}
	if meta := jsonscan.Member(params, "_meta"); jsonscan.IsObject(meta) {
		meta = jsonscan.AppendMembers([]byte{'{'}, meta, metaVersion, metaCapabilities, metaClientInfo, metaLogLevel)
		if len(meta) > len("{}") {
			older = append(jsonscan.AppendKey(older, "_meta"), meta...)
		}
	}
	if !jsonscan.IsObject(params) {
		return append(older, '}')
	}
	return jsonscan.AppendMembers(older, params, "_meta", "inputResponses", "requestState")
}

// levelIn returns the log level in the metadata of a request, or "".
func levelIn(meta json.RawMessage) string { return text(jsonscan.Member(meta, metaLogLevel)) }

// text returns the string in raw, a JSON value, or "" if raw is not a string.
func text(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return jsonscan.Text(raw)
}

// missingResource translates an older server's error for a missing resource. The error of
// the newest revision contains the URI.
func missingResource(r *transport.Message, m *transport.Outgoing) *transport.Message {
	e := *r.Error
	e.Code = codeInvalidParams
	if e.Data == nil && m.Method == methodReadResource {
		e.Data = strictjson.MustMarshal(map[string]string{"uri": m.Name})
	}
	return &transport.Message{ID: r.ID, Error: &e}
}

// errorResponse returns an error response that did not come from the server.
func errorResponse(id transport.ID, e *transport.Error) *transport.Message {
	return &transport.Message{ID: id, Error: e}
}
