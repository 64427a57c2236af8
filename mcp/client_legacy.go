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
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/pause"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/mcp/transport"
)

// legacyClient implements clientEra for the legacy era. It makes the server look modern: it
// keeps a session, answers server/discover from the handshake, and makes subscriptions from
// the notifications of the server.
type legacyClient struct {
	conn      *Conn
	preferred string // the version to propose
	hub       *hub

	ready chan struct{} // closed after the first handshake

	mu         sync.Mutex
	negotiated string
	level      LoggingLevel                   // that was requested in this session
	generation int                            // of the session: counts handshakes
	lost       bool                           // the server does not know the session any more
	handshake  chan struct{}                  // closed when the handshake in progress is done, nil if there is none
	questions  map[ID]*question               // of the server, being answered
	answering  int                            // goroutines that answer questions, those of lost sessions included
	subscribed map[string]*remoteSubscription // by URI
	pending    map[ID]*pendingCall            // forwarded calls
	checker    sessionChecker
}

func newLegacyClient(conn *Conn, version string) *legacyClient {
	return &legacyClient{
		conn: conn, preferred: version, hub: newHub(0, maxListeners), ready: make(chan struct{}),
		questions: map[ID]*question{}, subscribed: map[string]*remoteSubscription{}, pending: map[ID]*pendingCall{},
	}
}

func (e *legacyClient) version() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.negotiated
}

func (*legacyClient) pingMethod() string { return revision.Ping }

func (e *legacyClient) ping(ctx context.Context) error {
	return e.inSession(ctx, func() error {
		id := e.conn.nextID()
		_, err := e.conn.wire.Call(ctx, &transport.Outgoing{ID: id, Method: revision.Ping, Version: e.version(), Body: transport.AppendRequest(nil, id, revision.Ping, nil)})
		return err
	})
}

// initialize opens a session.
func (e *legacyClient) initialize(ctx context.Context) error {
	res, err := e.sendInitialize(ctx)
	if err != nil {
		return err
	}
	return e.finishHandshake(ctx, res)
}

// sendInitialize sends the first message of the handshake and returns the response.
func (e *legacyClient) sendInitialize(ctx context.Context) (*initializeResult, error) {
	c := e.conn
	params := mustMarshal(&initializeParams{ProtocolVersion: e.preferred, Capabilities: mustMarshal(e.capabilities()), ClientInfo: c.client.infoJSON})
	id := c.nextID()
	r, err := c.wire.Call(ctx, &transport.Outgoing{ID: id, Method: revision.Initialize, Body: transport.AppendRequest(nil, id, revision.Initialize, params)})
	if err != nil {
		return nil, err
	}
	if r.Error != nil {
		return nil, fromWire(r.Error)
	}
	var res initializeResult
	if err := unmarshal(r.Result, &res); err != nil || res.ProtocolVersion == "" {
		return nil, fmt.Errorf("mcp: the answer to initialize has no protocol version: %w", errors.Join(transport.ErrNotUnderstood, err))
	}
	if !slices.Contains(LegacyVersions(), res.ProtocolVersion) {
		return nil, fmt.Errorf("mcp: the server speaks %q, which this client does not", res.ProtocolVersion)
	}
	return &res, nil
}

// finishHandshake sends the last message of the handshake, and requests log messages.
func (e *legacyClient) finishHandshake(ctx context.Context, res *initializeResult) error {
	c := e.conn
	e.setSession(res)
	note := transport.AppendNotification(nil, revision.Initialized, nil)
	if err := c.wire.Send(ctx, &transport.Outgoing{Method: revision.Initialized, Version: e.version(), Body: note}); err != nil {
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

// setSession stores the result of the handshake, in the form of a result of
// server/discover.
func (e *legacyClient) setSession(res *initializeResult) {
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

// setLevel requests log messages. If the server refuses, the session goes on without them.
func (e *legacyClient) setLevel(ctx context.Context) error {
	level := e.conn.client.opts.LogLevel
	if level == "" || e.conn.Server().Capabilities.Logging == nil {
		return nil
	}
	err := e.command(ctx, revision.SetLevel, map[string]LoggingLevel{"level": level})
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
	if err := e.command(ctx, revision.SetLevel, map[string]LoggingLevel{"level": level}); err != nil {
		e.conn.client.opts.Logger.WarnContext(ctx, "mcp: the level of log messages that a caller wants was not set", "level", level, "error", err)
	}
}

// command sends a request of the legacy era whose result is empty.
func (e *legacyClient) command(ctx context.Context, method string, params any) error {
	id := e.conn.nextID()
	body := transport.AppendRequest(nil, id, method, mustMarshal(params))
	r, err := e.conn.wire.Call(ctx, &transport.Outgoing{ID: id, Method: method, Version: e.version(), Body: body})
	if err == nil && r.Error != nil {
		return fromWire(r.Error)
	}
	return err
}

// send sends a request. If the server has lost the session, it opens a new one and sends the
// request once more: the first attempt had no effect.
func (e *legacyClient) send(ctx context.Context, req *Request) (Result, error) {
	if req.Method == MethodDiscover {
		d := *e.conn.Server()
		return &d, nil
	}
	if e.conn.client.opts.Forward && req.peer.caps != nil {
		return e.sendForwarded(ctx, req)
	}
	return e.sendInSession(ctx, req, e.conn.nextID())
}

func (e *legacyClient) sendInSession(ctx context.Context, req *Request, id ID) (res Result, err error) {
	err = e.inSession(ctx, func() (err error) {
		e.wantLevel(ctx, req.LogLevel())
		res, err = e.sendOnce(ctx, req, id) // a new session may use the ID again
		return err
	})
	return res, err
}

// missingResource translates the error of a legacy server for a missing resource to the
// modern one, which contains the URI.
func missingResource(e *Error, req *Request) *Error {
	mapped := *e
	mapped.Code = CodeInvalidParams
	if mapped.Data == nil && req.Method == MethodReadResource {
		return mapped.WithData(map[string]string{"uri": req.Name()})
	}
	return &mapped
}

func (e *legacyClient) sendOnce(ctx context.Context, req *Request, id ID) (Result, error) {
	token, stop := e.conn.listenTo(ctx, req, id)
	defer stop()
	env := &transport.Outgoing{ID: id, Method: req.Method, Version: e.version(), Body: e.encode(id, req, token)}
	res, err := e.conn.roundTrip(ctx, req, env)
	if e, ok := errors.AsType[*Error](err); ok && e.Code == revision.CodeResourceNotFound {
		return nil, missingResource(e, req)
	}
	if r, ok := res.(*ListToolsResult); ok {
		for _, t := range r.Tools {
			e.conn.tools.add(t, nil)
		}
	}
	return res, err
}

// encode encodes a request, without the metadata that only the modern era has.
func (e *legacyClient) encode(id ID, req *Request, token ID) []byte {
	body := transport.AppendHead(nil, id)
	body = append(body, `,"method":`...)
	body = append(body, mustMarshal(req.Method)...)
	body = append(body, `,"params":{`...)
	if meta := e.meta(req, token); len(meta) > len("{}") {
		body = append(jsonscan.AppendKey(body, "_meta"), meta...)
	}
	raw := req.Params()
	if raw == nil {
		raw = json.RawMessage("{}")
	}
	return append(jsonscan.AppendMembers(body, raw, "_meta", "inputResponses", "requestState"), '}')
}

// meta returns the _meta of a request.
func (e *legacyClient) meta(req *Request, token ID) []byte {
	meta := []byte{'{'}
	if !token.IsZero() {
		meta = append(jsonscan.AppendKey(meta, MetaProgressToken), token.String()...)
	}
	if req.params.meta == nil {
		return append(meta, '}')
	}
	return jsonscan.AppendMembers(meta, req.params.meta, ownMeta...)
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
	for _, q := range e.questions {
		q.cancel(ErrClosed)
	}
	for _, p := range e.pending {
		p.expiry.Stop()
		p.cancel(ErrClosed)
	}
}

// inSession makes a call in a session. If the server has lost the session, the call had no
// effect, and is made once more in a new session.
func (e *legacyClient) inSession(ctx context.Context, call func() error) error {
	for attempt := 0; ; attempt++ {
		generation, err := e.awaitSession(ctx)
		if err != nil {
			return err
		}
		err = call()
		if !errors.Is(err, ErrSessionLost) {
			return err
		}
		e.setLost(generation)
		if attempt > 0 {
			return err
		}
	}
}

// awaitSession waits until there is a session and returns its generation. If the last
// session is lost and no handshake is in progress, it makes the handshake itself.
func (e *legacyClient) awaitSession(ctx context.Context) (generation int, err error) {
	for {
		e.mu.Lock()
		switch {
		case e.handshake != nil:
			done := e.handshake
			e.mu.Unlock()
			select {
			case <-done:
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		case !e.lost:
			defer e.mu.Unlock()
			return e.generation, nil
		default:
			done := make(chan struct{})
			e.handshake = done
			e.mu.Unlock()
			if err := e.reopen(ctx, done); err != nil && !isInSession(err) {
				return 0, errors.Join(ErrSessionLost, err)
			}
		}
	}
}

// isInSession reports whether an error says that the handshake was refused because the
// session still exists.
func isInSession(err error) bool { return CodeOf(err) == CodeInvalidRequest }

// setLost records that a session is lost, and cancels its questions: their answers must not
// be sent in the next session, where the same ID may belong to another question.
func (e *legacyClient) setLost(generation int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.generation != generation {
		return
	}
	e.lost = true
	for _, q := range e.questions {
		q.cancel(&CancelError{Reason: "the session is lost"})
	}
}

// reopen makes a new handshake and subscribes again. Anything may have changed meanwhile.
func (e *legacyClient) reopen(ctx context.Context, done chan struct{}) (err error) {
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.handshake = nil
		e.lost = err != nil && !isInSession(err)
		close(done)
	}()
	if err := e.initialize(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	uris := sortedKeys(e.subscribed)
	e.mu.Unlock()
	for _, uri := range uris {
		err := e.command(ctx, MethodSubscribe, map[string]string{"uri": uri})
		if _, refused := errors.AsType[*Error](err); err != nil && !refused {
			return err // otherwise the subscriptions would receive nothing, without an error
		}
		if err != nil {
			e.conn.client.opts.Logger.WarnContext(ctx, "mcp: a resource was not subscribed to again", "uri", uri, "error", err)
		}
	}
	e.publishEverything()
	return nil
}

const (
	// checkTimeout bounds a check of the session.
	checkTimeout = 10 * time.Second
	// maxCheckDelay bounds the delay between checks. It grows with each check, so that a
	// server that loses every session does not keep its client busy. It starts again when
	// there was no check for checkReset.
	maxCheckDelay = 30 * time.Second
	checkReset    = time.Minute
)

// A sessionChecker is the state of the checks of the session. The lock of the legacyClient
// guards it.
type sessionChecker struct {
	running   bool
	requested bool // while running
	last      time.Time
	count     int // checks since the last reset
}

// checkSoon checks the session in a goroutine, which runs until every request for a check
// has been followed by one.
func (e *legacyClient) checkSoon() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.checker.running {
		e.checker.requested = true
		return
	}
	e.checker.running = true
	go func() {
		for pause.For(e.conn.ctx, e.checkDelay()) == nil {
			e.checkSession()
			if !e.isCheckRequested() {
				return
			}
		}
	}()
}

// checkDelay returns the delay before the next check, and counts that check.
func (e *legacyClient) checkDelay() (delay time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := &e.checker
	if time.Since(c.last) > checkReset {
		c.count = 0
	}
	if c.count > 0 {
		delay = min(500*time.Millisecond<<min(c.count, 8), maxCheckDelay)
	}
	c.count++
	c.last = time.Now().Add(delay)
	return delay
}

// isCheckRequested reports whether another check was requested, and otherwise ends the
// checks.
func (e *legacyClient) isCheckRequested() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.checker.running, e.checker.requested = e.checker.requested, false
	return e.checker.running
}

// checkSession pings the server, which opens a new session if the last one is lost. Without
// it, a client that only listens would not notice.
func (e *legacyClient) checkSession() {
	ctx, cancel := context.WithTimeout(e.conn.ctx, checkTimeout)
	defer cancel()
	if err := e.ping(ctx); err != nil {
		e.conn.client.opts.Logger.DebugContext(ctx, "mcp: the session could not be checked", "error", err)
	}
}

// initializeParams are the params of initialize.
type initializeParams struct {
	ProtocolVersion string          `json:"protocolVersion"`
	Capabilities    json.RawMessage `json:"capabilities"` // ClientCapabilities
	ClientInfo      json.RawMessage `json:"clientInfo"`   // Implementation
}

// initializeResult answers initialize.
type initializeResult struct {
	ResultBase
	ProtocolVersion string              `json:"protocolVersion"`
	Capabilities    *ServerCapabilities `json:"capabilities"`
	ServerInfo      Implementation      `json:"serverInfo"`
	Instructions    string              `json:"instructions,omitempty"`
}

// maxInFlight limits what a server can ask at once.
const maxInFlight = 1024

func tooMany(limit int) error {
	return Errorf(CodeInternalError, "%d requests are being served, which is the limit; send this one again later", limit)
}
