// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"time"

	"github.com/go-psi/psi/internal/bufpool"
)

// An arrival is a message that the server of a stream has taken. Whatever is read
// after it finds its request in flight; serving it may take as long as it likes.
type arrival struct {
	server *streamServer
	kind   arrivalKind
	id     ID       // of what is refused
	err    error    // why it is refused
	req    *Request // what is modern
	ctx    context.Context
	cancel context.CancelCauseFunc // of a modern request
	legacy Admitted
	opens  bool // the end of a handshake
}

type arrivalKind int

const (
	arrivalNone    arrivalKind = iota // dealt with already
	arrivalRefused                    // to be answered with an error
	arrivalModern
	arrivalLegacy
)

// take takes a message, or a batch. It writes nothing.
func (s *streamServer) take(data []byte) arrival {
	if !s.enter() {
		s.serveLate(data)
		return arrival{}
	}
	a := arrival{server: s}
	if IsBatch(data) {
		a.takeBatch(data)
		return a
	}
	m, err := ParseMessage(data)
	switch {
	case err != nil:
		a.takeUnreadable(m, err)
	case m.Request == nil:
		a.kind, a.legacy = arrivalLegacy, s.legacy.Admit(s.ctx, m)
	default:
		s.origin().mark(m.Request)
		a.takeRequest(m)
	}
	return a
}

// takeUnreadable takes a message that could not be read: a request is refused, a
// response fails the question that it answers, a notification is dropped.
func (a *arrival) takeUnreadable(m Message, err error) {
	s := a.server
	s.opts.Logger.DebugContext(s.ctx, "mcp: malformed message", "id", m.ID.String(), "error", err)
	switch {
	case m.Response != nil:
		a.kind, a.legacy = arrivalLegacy, s.legacy.Admit(s.ctx, m)
	case m.Request != nil && m.Request.IsNotification():
		a.kind = arrivalNone
	default:
		a.refuse(m.ID, err)
	}
}

func (a *arrival) refuse(id ID, err error) {
	a.kind, a.id, a.err = arrivalRefused, id, err
}

func (a *arrival) takeBatch(data []byte) {
	s := a.server
	if !s.legacy.Batches() {
		a.refuse(ID{}, Errorf(CodeInvalidRequest, "a message must be an object, not an array"))
		return
	}
	a.kind, a.legacy = arrivalLegacy, s.legacy.AdmitBatch(s.ctx, data, s.origin())
}

// takeRequest decides the era of a request or notification. A cancellation is of
// either, and takes effect at once.
func (a *arrival) takeRequest(m Message) {
	s, req := a.server, m.Request
	switch {
	case req.Method == NotificationCancelled && req.IsNotification():
		s.cancelled(req)
		s.legacy.cancelled(req)
	case s.isModern(req):
		a.takeModern(req)
	default:
		a.kind, a.legacy = arrivalLegacy, s.legacy.Admit(s.ctx, m)
		a.opens = m.IsInitialized()
	}
}

// origin is that of all messages of the stream.
func (s *streamServer) origin() Origin { return Origin{Principal: s.opts.Principal} }

// isModern also claims the methods that no older revision has, so that their
// errors say what is missing.
func (s *streamServer) isModern(req *Request) bool {
	return req.IsModern() || !s.legacy.Initialized() && (req.Method == MethodDiscover || req.Method == MethodListen)
}

func (a *arrival) takeModern(req *Request) {
	err := req.CheckMeta()
	if err == nil {
		err = req.CheckVersion()
	}
	a.kind, a.req, a.ctx = arrivalModern, req, a.server.ctx
	if req.IsNotification() {
		if err != nil {
			a.kind = arrivalNone
		}
		return
	}
	if err == nil {
		err = a.server.begin(a)
	}
	if err != nil {
		a.refuse(req.ID, err)
	}
}

// begin enters a modern request among those in flight.
func (s *streamServer) begin(a *arrival) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := a.req.ID.Canonical()
	if s.inflight[id] != nil {
		return duplicateID(a.req.ID)
	}
	if len(s.inflight) >= s.opts.MaxInFlight {
		return tooMany(s.opts.MaxInFlight)
	}
	base := s.ctx
	if a.req.Method == MethodListen {
		base = s.listening
	}
	a.ctx, a.cancel = context.WithCancelCause(base)
	s.inflight[id] = a.cancel
	return nil
}

// done takes a modern request from those in flight.
func (a *arrival) done() {
	a.cancel(nil)
	s := a.server
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inflight, a.req.ID.Canonical())
}

// patience is how long what comes after it waits for it. A client that has opened its
// conversation misses no change, if the server can tell it of changes that soon.
func (a *arrival) patience() time.Duration {
	if a.opens {
		return time.Second
	}
	return moment
}

// serve serves what was taken. It calls resign if that will take long.
func (a *arrival) serve(resign func()) {
	s := a.server
	if s == nil {
		return
	}
	defer s.leave()
	switch a.kind {
	case arrivalNone:
	case arrivalRefused:
		s.write(AppendErrorResponse(nil, a.id, a.err))
	case arrivalModern:
		a.serveModern(resign)
	case arrivalLegacy:
		a.serveLegacy(resign)
	}
}

func (a *arrival) serveLegacy(resign func()) {
	s := a.server
	buf := bufpool.Get()
	buf.B = a.legacy.Serve(buf.B, s)
	s.write(buf.B)
	buf.Put()
	if a.opens && s.open() {
		_ = s.legacy.Listen(s.listening, s.origin(), s, resign) // until the stream ends
	}
}

// open reports whether the handshake is done, the first time: a client that says so
// again is told of changes already.
func (s *streamServer) open() bool {
	initialized := s.legacy.Initialized()
	s.mu.Lock()
	defer s.mu.Unlock()
	first := initialized && !s.opened
	s.opened = s.opened || first
	return first
}

func (a *arrival) serveModern(resign func()) {
	s, req := a.server, a.req
	if req.IsNotification() {
		_, _ = Serve(s.ctx, s.handler, req, nil, s.opts.Logger) // nobody hears of its outcome
		return
	}
	if req.Method == MethodListen {
		resign()
	}
	res, err := Serve(a.ctx, s.handler, req, &s.notifier, s.opts.Logger)
	cancelled := wasCancelled(a.ctx)
	a.done() // first: who has the answer may use the id again
	if cancelled {
		return
	}
	buf := bufpool.Get()
	defer buf.Put()
	buf.B = AppendResponse(buf.B, req, res, err)
	s.write(buf.B)
	if _, ok := res.(*ListenResult); ok {
		s.endListen(req.ID)
	}
}
