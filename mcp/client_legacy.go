// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// legacyClient speaks the legacy era, and makes the server look modern: it keeps
// the session, answers discovery from the handshake, and makes subscriptions of
// the server's unasked notifications.
type legacyClient struct {
	conn *Conn
	wish string // the version to begin with
	hub  *hub

	ready chan struct{} // closed after the first handshake

	mu         sync.Mutex
	negotiated string
	level      LoggingLevel                   // that the server was asked for in this session
	generation int                            // counts handshakes
	lost       bool                           // the server does not know the session any more
	shaking    chan struct{}                  // closed when the handshake is done that is under way, nil if none is
	answering  map[ID]*answering              // questions of the server
	busy       int                            // how many are being answered, those of lost sessions included
	subscribed map[string]*remoteSubscription // by URI
	pending    map[ID]*pendingCall            // calls whose questions travel
	checks     checks
}

func newLegacyClient(conn *Conn, version string) *legacyClient {
	return &legacyClient{
		conn: conn, wish: version, hub: newHub(0, maxListeners), ready: make(chan struct{}),
		answering: map[ID]*answering{}, subscribed: map[string]*remoteSubscription{}, pending: map[ID]*pendingCall{},
	}
}

func (e *legacyClient) version() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.negotiated
}

func (*legacyClient) pingMethod() string { return legacyPing }

func (e *legacyClient) ping(ctx context.Context) error {
	return e.inSession(ctx, func() error {
		id := e.conn.nextID()
		_, err := e.conn.wire.Call(ctx, &Envelope{ID: id, Method: legacyPing, Version: e.version(), Body: encodeRequest(id, legacyPing, nil)})
		return err
	})
}

// initialize makes the handshake.
func (e *legacyClient) initialize(ctx context.Context) error {
	res, err := e.greet(ctx)
	if err != nil {
		return err
	}
	return e.begin(ctx, res)
}

// greet makes the first half of the handshake: it asks the server.
func (e *legacyClient) greet(ctx context.Context) (*InitializeResult, error) {
	c := e.conn
	params := mustMarshal(&InitializeParams{ProtocolVersion: e.wish, Capabilities: mustMarshal(e.capabilities()), ClientInfo: c.client.infoJSON})
	id := c.nextID()
	r, err := c.wire.Call(ctx, &Envelope{ID: id, Method: legacyInitialize, Body: encodeRequest(id, legacyInitialize, params)})
	if err != nil {
		return nil, err
	}
	if r.Error != nil {
		return nil, r.Error
	}
	var res InitializeResult
	if err := unmarshal(r.Result, &res); err != nil || res.ProtocolVersion == "" {
		return nil, fmt.Errorf("mcp: the answer to initialize has no protocol version: %w", errors.Join(ErrNotUnderstood, err))
	}
	if !slices.Contains(LegacyVersions(), res.ProtocolVersion) {
		return nil, fmt.Errorf("mcp: the server speaks %q, which this client does not", res.ProtocolVersion)
	}
	return &res, nil
}

// begin makes the other half: it tells the server that it begins.
func (e *legacyClient) begin(ctx context.Context, res *InitializeResult) error {
	c := e.conn
	e.opened(res)
	note := AppendNotification(nil, legacyInitialized, nil)
	if err := c.wire.Send(ctx, &Envelope{Method: legacyInitialized, Version: e.version(), Body: note}); err != nil {
		return err
	}
	return e.setLevel(ctx)
}

func (e *legacyClient) capabilities() *ClientCapabilities {
	caps := *e.conn.client.caps
	if caps.Roots != nil {
		caps.Roots = &RootsCapability{ListChanged: true}
	}
	return &caps
}

// opened keeps what the handshake tells as server/discover would tell it.
func (e *legacyClient) opened(res *InitializeResult) {
	d := &DiscoverResult{
		ResultBase:        ResultBase{ResultType: ResultComplete, Meta: res.Meta},
		SupportedVersions: []string{res.ProtocolVersion},
		Capabilities:      res.Capabilities,
		Instructions:      res.Instructions,
	}
	if d.Capabilities == nil {
		d.Capabilities = &ServerCapabilities{}
	}
	d.Meta.Set(MetaServerInfo, &res.ServerInfo)
	e.conn.server.Store(d)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.negotiated, e.level = res.ProtocolVersion, e.conn.client.opts.LogLevel
	if e.generation++; e.generation == 1 {
		close(e.ready)
	}
}

// setLevel asks for log messages. A server that refuses may be of use without them.
func (e *legacyClient) setLevel(ctx context.Context) error {
	level := e.conn.client.opts.LogLevel
	if level == "" || e.conn.Server().Capabilities.Logging == nil {
		return nil
	}
	err := e.command(ctx, legacySetLevel, map[string]LoggingLevel{"level": level})
	if _, refused := errors.AsType[*Error](err); refused && !errors.Is(err, ErrSessionLost) {
		e.conn.client.opts.Logger.WarnContext(ctx, "mcp: the server refuses to set the level of its log messages", "level", level, "error", err)
		return nil
	}
	return err
}

// wantLevel asks the server, whose level is that of the session, for the log messages that
// the sender of a request wants. It never raises the level, because other callers may want
// the messages: notifyLog filters them for each sender.
func (e *legacyClient) wantLevel(ctx context.Context, level LoggingLevel) {
	if level == "" || e.conn.Server().Capabilities.Logging == nil {
		return
	}
	e.mu.Lock()
	known := e.level != "" && level.reaches(e.level)
	if !known {
		e.level = level
	}
	e.mu.Unlock()
	if known {
		return
	}
	if err := e.command(ctx, legacySetLevel, map[string]LoggingLevel{"level": level}); err != nil {
		e.conn.client.opts.Logger.WarnContext(ctx, "mcp: the level of log messages that a caller wants was not set", "level", level, "error", err)
	}
}

// command makes a request of the era whose result says nothing.
func (e *legacyClient) command(ctx context.Context, method string, params any) error {
	id := e.conn.nextID()
	body := encodeRequest(id, method, mustMarshal(params))
	r, err := e.conn.wire.Call(ctx, &Envelope{ID: id, Method: method, Version: e.version(), Body: body})
	if err == nil && r.Error != nil {
		return r.Error
	}
	return err
}

// send sends one request. If the server has lost the session, a new one is opened
// and the request sent again, once: it had no effect.
func (e *legacyClient) send(ctx context.Context, req *Request) (Result, error) {
	if req.Method == MethodDiscover {
		d := *e.conn.Server()
		return &d, nil
	}
	if e.conn.client.opts.Forward && req.peer.caps != nil {
		return e.sendForwarded(ctx, req)
	}
	return e.sendSafely(ctx, req, e.conn.nextID())
}

func (e *legacyClient) sendSafely(ctx context.Context, req *Request, id ID) (res Result, err error) {
	err = e.inSession(ctx, func() (err error) {
		e.wantLevel(ctx, req.LogLevel())
		res, err = e.sendOnce(ctx, req, id) // in a new session, the id is new again
		return err
	})
	return res, err
}

// missingResource is the error of an old server as one of today says it, with the
// URI by which it is recognized.
func missingResource(e *Error, req *Request) *Error {
	mapped := *modernEra{}.wireError(e)
	if mapped.Data == nil && req.Method == MethodReadResource {
		return mapped.WithData(map[string]string{"uri": req.Name()})
	}
	return &mapped
}

func (e *legacyClient) sendOnce(ctx context.Context, req *Request, id ID) (Result, error) {
	token, stop := e.conn.listenTo(ctx, req, id)
	defer stop()
	env := &Envelope{ID: id, Method: req.Method, Version: e.version(), Body: e.encode(id, req, token)}
	res, err := e.conn.roundTrip(ctx, req, env)
	if e, ok := errors.AsType[*Error](err); ok && e.Code == CodeLegacyResourceNotFound {
		return nil, missingResource(e, req)
	}
	if r, ok := res.(*ListToolsResult); ok {
		for _, t := range r.Tools {
			e.conn.tools.remember(t, nil)
		}
	}
	return res, err
}

// encode writes the request without the metadata that only the modern era has.
func (e *legacyClient) encode(id ID, req *Request, token ID) []byte {
	body := appendID(nil, id)
	body = append(body, `,"method":`...)
	body = append(body, mustMarshal(req.Method)...)
	body = append(body, `,"params":{`...)
	if meta := e.meta(req, token); len(meta) > len("{}") {
		body = append(appendKey(body, "_meta"), meta...)
	}
	raw := req.Params()
	if raw == nil {
		raw = json.RawMessage("{}")
	}
	return append(appendMembersBut(body, raw, []string{"_meta", "inputResponses", "requestState"}), '}')
}

func (e *legacyClient) meta(req *Request, token ID) []byte {
	meta := []byte{'{'}
	if !token.IsZero() {
		meta = append(appendKey(meta, MetaProgressToken), token.String()...)
	}
	if req.params.meta == nil {
		return append(meta, '}')
	}
	return appendMembersBut(meta, req.params.meta, ownMeta)
}

func (e *legacyClient) rootsChanged(ctx context.Context) error {
	if e.conn.client.caps.Roots == nil {
		return nil
	}
	return e.conn.Notify(ctx, NotificationRootsListChanged, nil)
}

func (e *legacyClient) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.answering {
		a.cancel(ErrClosed)
	}
	for _, p := range e.pending {
		p.expiry.Stop()
		p.cancel(ErrClosed)
	}
}
