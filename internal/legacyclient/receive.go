// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient

import (
	"context"
	"encoding/json"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/mcp/transport"
)

// receive is the [transport.Receiver] of the connection. Until the revision is known, it
// treats the server as an older one: apart from pings, no request is answered before the
// handshake.
func (s *session) receive(m *transport.Message) {
	switch {
	case s.conn.modern.Load():
		s.conn.deliver(m)
	case m.Err != nil:
		s.conn.deliver(m) // the client logs it
		if m.IsRequest() {
			s.respond(m, &transport.Error{Code: m.Err.Code, Message: m.Err.Error()}, nil)
		}
	case m.Lost:
		s.announceEverything()
		s.checkSoon()
	case m.IsRequest():
		s.receiveRequest(m)
	default:
		s.receiveNotification(m)
	}
}

func (s *session) receiveNotification(m *transport.Message) {
	switch m.Method {
	case noteCancelled:
		s.withdraw(m.Params)
		return
	case noteProgress:
		m.Params = s.withLatestToken(m.Params)
	case noteMessage:
		m.About = s.attribute(m.Params, m.About)
	}
	if !s.announce(m) {
		s.conn.deliver(m)
	}
}

// unknownCall is an ID that no call of the client has.
var unknownCall = transport.StringID("unknown")

// attribute returns the ID of the client's request that a log message is about, or
// unknownCall.
func (s *session) attribute(params json.RawMessage, about transport.ID) transport.ID {
	if about.IsZero() {
		about, _ = transport.ParseID(jsonscan.Member(jsonscan.Member(params, "_meta"), metaProgressToken))
	}
	about, err := s.inFlight.Attribute(about)
	if err != nil {
		return unknownCall
	}
	if p := s.pendingByID(about); p != nil {
		return p.latestRequest().ID
	}
	return about
}

// withLatestToken returns the params of a progress notification with the progress token of
// the latest request for the call.
func (s *session) withLatestToken(params json.RawMessage) json.RawMessage {
	token, ok := transport.ParseID(jsonscan.Member(params, metaProgressToken))
	if !ok {
		return params
	}
	p := s.pendingByID(token)
	if p == nil {
		return params
	}
	latest := append(jsonscan.AppendKey([]byte{'{'}, metaProgressToken), p.latestRequest().ID.String()...)
	return jsonscan.AppendMembers(latest, params, metaProgressToken)
}

// receiveRequest answers a server request in a goroutine. If the client does not answer a
// question, it is passed on to the caller of the call that it belongs to. The question is
// registered before the next message is received, because that message may withdraw it.
func (s *session) receiveRequest(m *transport.Message) {
	if refused := s.conn.client.CheckRequest(m); refused != nil {
		s.respond(m, refused, nil)
		return
	}
	if !isPing(m) && !s.conn.client.Answers(m.Method, m.Params) && s.forwardQuestion(m) {
		return
	}
	s.respond(m, nil, func(ctx context.Context) { s.serveQuestion(ctx, m) })
}
