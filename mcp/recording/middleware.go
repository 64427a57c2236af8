// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording

import (
	"context"
	"encoding/json"

	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

var core = mcp.Internal(seam.Key{})

// Middleware returns middleware that records the requests to a server, the notifications
// about them, and the results, in the form of the newest revision. Era is the era of the
// client. The recorder assigns the IDs, because different clients may use the same ones.
// The effects of translators and other middleware around it are not recorded.
//
// The handshake of a legacy session and other messages that concern only the session do not
// reach handlers and are not recorded.
func (r *Recorder) Middleware() mcp.Middleware {
	r.mustBeMade()
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			return r.serve(ctx, next, req)
		})
	}
}

// serve records a request that next serves. Requests have the form of the newest revision and
// IDs of their own, which clients without sessions use as well, so one recording of clients
// of all eras can drive any server.
func (r *Recorder) serve(ctx context.Context, next mcp.Handler, req *mcp.Request) (mcp.Result, error) {
	e := Entry{Direction: ToServer, Era: eraOf(req.Version()), Session: sessionName(ctx)}
	if req.IsNotification() {
		r.write(e, transport.AppendNotification(nil, req.Method, modernParams(req)))
		return next.ServeMCP(ctx, req)
	}
	numbered := req.Clone()
	numbered.ID = transport.IntID(r.requests.Add(1))
	r.write(e, transport.AppendRequest(nil, numbered.ID, req.Method, modernParams(req)))
	e.Direction = ToClient
	about := e
	about.About = numbered.ID
	ids := newNames() // messages of a subscription contain the ID of its request
	ids.add(&transport.Message{ID: req.ID}, &transport.Message{ID: numbered.ID})
	stop := core.Observe(req, func(method string, params json.RawMessage) {
		r.write(about, transport.AppendNotification(nil, method, ids.renamed(params)))
	})
	outcome := func() { r.fail(e, Failure{ID: numbered.ID, Kind: Failed, Text: "the handler panicked"}) }
	defer func() {
		stop()
		outcome()
	}()
	res, err := next.ServeMCP(ctx, req)
	outcome = func() { r.writeOutcome(ctx, e, numbered, ids, res, err) }
	return res, err
}

// writeOutcome records the outcome of a request. A client gets no response to a request
// that it has cancelled.
func (r *Recorder) writeOutcome(ctx context.Context, e Entry, req *mcp.Request, ids *names, res mcp.Result, err error) {
	if ctx.Err() != nil {
		e.Direction = ToServer
		r.fail(e, Failure{ID: req.ID, Kind: Cancelled, Text: context.Cause(ctx).Error()})
		return
	}
	if res == nil && err == nil {
		r.fail(e, Failure{ID: req.ID, Kind: Failed, Text: "the handler returned neither a result nor an error"})
		return
	}
	m, unreadable := transport.ParseMessage(mcp.AppendResponse(nil, req, res, err))
	if unreadable != nil {
		r.fail(e, Failure{ID: req.ID, Kind: Failed, Text: unreadable.Error()})
		return
	}
	m.Result = ids.renamed(m.Result)
	r.write(e, encode(&m))
}
