// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

var core = mcp.Internal(seam.Key{})

// Middleware returns middleware that records what a server is asked: requests, the
// notifications about them, and results, as the newest revision has them. Era is that of the
// client. The IDs are those of the recorder, because clients may use the same. What a
// translator or another middleware around it does is not recorded.
//
// The handshake of a legacy session and what concerns it alone do not reach handlers, and
// are not recorded.
func (r *Recorder) Middleware() mcp.Middleware {
	r.mustBeMade()
	return mcp.NewMiddleware(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			return r.serve(ctx, next, req)
		})
	})
}

// serve records a request that next serves.
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
	ids := newNames() // a subscription has that of its request in what is sent on it
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

// writeOutcome records what became of a request. The client does not get the response to one
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
	m, unreadable := transport.ParseMessage(core.AppendResponse(nil, req, res, err))
	if unreadable != nil {
		r.fail(e, Failure{ID: req.ID, Kind: Failed, Text: unreadable.Error()})
		return
	}
	m.Result = ids.renamed(m.Result)
	r.write(e, encode(&m))
}

// sessionName returns a name for the session of a request, from which its ID cannot be
// inferred.
func sessionName(ctx context.Context) string {
	s := mcp.SessionFromContext(ctx)
	if s == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(s.ID()))
	return hex.EncodeToString(sum[:4])
}

// modernParams returns the params of a request with the metadata that one of the newest
// revision has.
func modernParams(req *mcp.Request) json.RawMessage {
	raw := req.Params()
	if core.IsModern(req) || req.Version() == "" {
		return raw
	}
	meta := []byte{'{'}
	meta = jsonscan.AppendString(jsonscan.AppendKey(meta, mcp.MetaProtocolVersion), mcp.LatestVersion)
	meta = append(jsonscan.AppendKey(meta, mcp.MetaClientCapabilities), strictjson.MustMarshal(req.ClientCapabilities())...)
	if info := req.ClientInfo(); info != nil {
		meta = append(jsonscan.AppendKey(meta, mcp.MetaClientInfo), strictjson.MustMarshal(info)...)
	}
	if level := req.LogLevel(); level != "" {
		meta = jsonscan.AppendString(jsonscan.AppendKey(meta, mcp.MetaLogLevel), string(level))
	}
	meta = appendRest(meta, jsonscan.Member(raw, "_meta"), mcp.MetaProtocolVersion, mcp.MetaClientCapabilities, mcp.MetaClientInfo, mcp.MetaLogLevel)
	return appendRest(append([]byte(`{"_meta":`), meta...), raw, "_meta")
}

// appendRest continues an object with the members of another one, which may be nil, except
// some, and closes it.
func appendRest(dst, object []byte, except ...string) []byte {
	if !jsonscan.IsObject(object) {
		return append(dst, '}')
	}
	return jsonscan.AppendMembers(dst, object, except...)
}
