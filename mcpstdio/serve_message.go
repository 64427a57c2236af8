// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"context"
	"time"

	"github.com/go-psi/psi/internal/bufpool"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

var core = mcp.Internal(seam.Key{})

// arrival is a message, or a batch, that the server has accepted. Its request is in flight
// before the next message is read.
type arrival struct {
	server *streamServer // nil if there is nothing to serve
	call   serving.Call  // nil if the message is dropped
	done   func()        // removes the request from those in flight; may be nil
	req    *mcp.Request  // of the newest revision; nil for other messages

	moment time.Duration       // how long a leader serves it before resigning; 0 means moment
	after  func(resign func()) // what follows the response; may be nil
}

// accept accepts a message or batch. It writes nothing.
func (s *streamServer) accept(data []byte) arrival {
	if !s.enter() {
		return s.acceptLate(data)
	}
	a := arrival{server: s}
	m, err := transport.ParseMessage(data)
	switch {
	case transport.IsBatch(data):
		a.call = s.session.acceptBatch(data)
	case err != nil:
		a.acceptUnreadable(err)
	case m.IsResponse():
		a.call = s.session.Accept(s.ctx, m, s.origin())
	default:
		a.acceptRequest(m)
	}
	return a
}

// acceptUnreadable accepts a message that could not be read.
func (a *arrival) acceptUnreadable(err error) {
	s := a.server
	e := serving.AsMessageError(err)
	s.opts.Logger.DebugContext(s.ctx, "mcp: malformed message", "id", e.Message.ID.String(), "error", err)
	a.call = s.session.AcceptUnreadable(e)
}

// acceptRequest accepts a request or notification. A cancellation takes effect immediately.
func (a *arrival) acceptRequest(m transport.Message) {
	s := a.server
	req, err := s.origin().NewRequest(&m)
	switch {
	case m.Method == mcp.NotificationCancelled && m.IsNotification():
		s.cancelRequest(req)
	case err != nil && m.IsNotification():
	case err != nil:
		s.opts.Logger.DebugContext(s.ctx, "mcp: malformed message", "id", m.ID.String(), "error", err)
		a.call = serving.Refusal(m.ID, err)
	case s.session.owns(req):
		s.session.acceptRequest(a, req)
	default:
		a.acceptModern(req)
	}
}

func (a *arrival) acceptModern(req *mcp.Request) {
	s := a.server
	err := core.CheckMeta(req)
	if err == nil {
		err = core.CheckVersion(req)
	}
	switch {
	case err == nil && req.IsNotification():
		a.call = serving.NewCall(s.ctx, s.handler, req, s.opts.Logger)
		return
	case req.IsNotification():
		return
	case err != nil:
		a.call = serving.Refusal(req.ID, err)
		return
	}
	ctx, err := s.addInFlight(req, a)
	if err != nil {
		a.call = serving.Refusal(req.ID, err)
		return
	}
	a.req, a.call = req, serving.NewCall(ctx, s.handler, req, s.opts.Logger)
}

// addInFlight adds a request of the newest revision to those in flight and returns its context.
// It sets a.done.
func (s *streamServer) addInFlight(req *mcp.Request, a *arrival) (context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := req.ID.Canonical()
	if s.inflight[id] != nil {
		return nil, serving.DuplicateID(req.ID)
	}
	size := len(req.Params())
	if err := serving.CheckLoad(len(s.inflight), s.opts.MaxInFlight, s.inflightBytes, size); err != nil {
		return nil, err
	}
	base := s.ctx
	if req.Method == mcp.MethodListen {
		base = s.listening
	}
	ctx, cancel := context.WithCancelCause(base)
	s.inflight[id] = cancel
	s.inflightBytes += size
	a.done = func() {
		cancel(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.inflight, id)
		s.inflightBytes -= size
	}
	return ctx, nil
}

func (s *streamServer) cancelRequest(note *mcp.Request) {
	s.session.Cancel(note)
	var p mcp.CancelledParams
	if note.Decode(&p) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.inflight[p.RequestID.Canonical()]; cancel != nil {
		cancel(&mcp.CancelError{Reason: p.Reason})
	}
}

var errDraining = mcp.Errorf(mcp.CodeInternalError, "the server is shutting down")

// acceptLate accepts a message that arrives while the server drains. A cancellation takes
// effect; a request is refused.
func (s *streamServer) acceptLate(data []byte) arrival {
	m, err := transport.ParseMessage(data)
	switch {
	case err != nil:
	case m.Method == mcp.NotificationCancelled:
		if req, err := s.origin().NewRequest(&m); err == nil {
			s.cancelRequest(req)
		}
	case m.IsRequest() && s.enterLate():
		return arrival{server: s, call: serving.Refusal(m.ID, errDraining)}
	}
	return arrival{}
}

// serve serves the message. It calls resign if that will take long.
func (a *arrival) serve(resign func()) {
	s := a.server
	if s == nil {
		return
	}
	defer s.leave()
	if a.call != nil {
		a.serveCall(resign)
	}
	if a.after != nil {
		a.after(resign)
	}
}

func (a *arrival) serveCall(resign func()) {
	s := a.server
	listens := a.req != nil && a.req.Method == mcp.MethodListen
	if listens {
		resign()
	}
	a.call.Serve(s)
	buf := bufpool.Get()
	defer buf.Put()
	buf.B = a.call.Append(buf.B)
	if a.done != nil {
		a.done() // before the response, after which the client may reuse the id
	}
	s.write(buf.B)
	if listens && len(buf.B) > 0 && a.call.Err() == nil {
		s.announceEnd(a.req.ID)
	}
}

// announceEnd announces a second time that a subscription has ended, for clients that
// follow the page on cancellation rather than the one on subscriptions. It comes after the
// result, because all clients ignore a late cancellation, but the official TypeScript
// client reports an unexpected response.
func (s *streamServer) announceEnd(id mcp.ID) {
	params := strictjson.MustMarshal(&mcp.CancelledParams{RequestID: id})
	s.write(transport.AppendNotification(nil, mcp.NotificationCancelled, params))
}
