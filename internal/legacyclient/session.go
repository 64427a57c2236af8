// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/go-psi/psi/internal/inflight"
	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp/transport"
)

// A session holds the state of a connection to an older server. If the server loses its
// session, the client makes a new handshake on the same connection.
type session struct {
	conn      *Conn
	wire      transport.Conn // set before connected is closed
	connected chan struct{}

	ctx    context.Context // for background work; cancelled when the connection is closed
	cancel context.CancelCauseFunc
	ready  chan struct{} // closed after the first handshake

	client   clientInfo // set before the first handshake
	inFlight inflight.Calls[struct{}]
	noStream sync.Once     // for warnNoStream
	turns    chan struct{} // holds a token for each question that the client is answering

	mu         sync.Mutex
	server     *server                    // nil before the first handshake
	level      string                     // of log messages, as requested from the server
	generation int                        // counts handshakes
	lost       bool                       // the server no longer knows the session
	handshake  chan struct{}              // closed after the current handshake, or nil
	questions  map[transport.ID]*question // questions being answered
	answering  int                        // goroutines that answer questions, in any session
	admission  admission
	listeners  map[transport.ID]*listener     // by the ID of the subscriptions/listen request
	subscribed map[string]*remoteSubscription // by URI
	pending    map[transport.ID]*pendingCall  // calls whose questions are passed on
	checker    sessionChecker
}

// clientInfo is what the client states about itself in server/discover.
type clientInfo struct {
	info  json.RawMessage
	level string // of log messages; "" if none are wanted
}

// A server is what a server states about itself in the handshake.
type server struct {
	version      string
	capabilities capabilities
	description  json.RawMessage // in the form of a server/discover result
}

// capabilities are the server capabilities that affect how the client talks to the server.
type capabilities struct {
	Tools     listCapability
	Prompts   listCapability
	Resources listCapability
	Logging   json.RawMessage
}

type listCapability struct {
	ListChanged bool
	Subscribe   bool
}

// readCapabilities reads the capabilities in a result of initialize. Members of another type
// are not declared; the client logs them when it decodes the description of the server.
func readCapabilities(declared json.RawMessage) capabilities {
	isTrue := func(list, name string) bool {
		return string(jsonscan.Member(jsonscan.Member(declared, list), name)) == "true"
	}
	read := func(list string) listCapability {
		return listCapability{ListChanged: isTrue(list, "listChanged"), Subscribe: isTrue(list, "subscribe")}
	}
	return capabilities{
		Tools: read("tools"), Prompts: read("prompts"), Resources: read("resources"),
		Logging: jsonscan.Member(declared, "logging"),
	}
}

func newSession(c *Conn) *session {
	s := &session{
		conn: c, connected: make(chan struct{}), ready: make(chan struct{}),
		questions: map[transport.ID]*question{}, listeners: map[transport.ID]*listener{},
		subscribed: map[string]*remoteSubscription{}, pending: map[transport.ID]*pendingCall{},
		turns: make(chan struct{}, maxAsking),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// close stops the background work. It does not close the connection.
func (s *session) close() {
	s.cancel(transport.ErrClosed)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pending {
		p.expiry.Stop()
		p.cancel(transport.ErrClosed)
	}
}

// version returns the negotiated revision, or "" before the first handshake.
func (s *session) version() string {
	if server := s.described(); server != nil {
		return server.version
	}
	return ""
}

// described returns the server's handshake data, or nil before the first handshake.
func (s *session) described() *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server
}

// send sends a message in the negotiated revision.
func (s *session) send(ctx context.Context, m *transport.Outgoing) error {
	m.Version = s.version()
	return s.wire.Send(ctx, m)
}

// request sends a request with a new ID in the negotiated revision.
func (s *session) request(ctx context.Context, method string, params any) (*transport.Message, error) {
	id := s.conn.client.NextID()
	var raw json.RawMessage
	if params != nil {
		raw = strictjson.MustMarshal(params)
	}
	body := transport.AppendRequest(nil, id, method, raw)
	return s.wire.Call(ctx, &transport.Outgoing{ID: id, Method: method, Version: s.version(), Body: body})
}

// sendCommand sends a request and discards the result. It returns an error response as a
// [refusal].
func (s *session) sendCommand(ctx context.Context, method string, params any) error {
	r, err := s.request(ctx, method, params)
	if err == nil && r.Error != nil {
		return s.conn.refusal(r.Error)
	}
	return err
}

// ping sends a ping in a session. Any response counts, even an error.
func (s *session) ping(ctx context.Context) error {
	return s.inSession(ctx, func() error {
		_, err := s.request(ctx, revision.Ping, nil)
		return err
	})
}

// initialize opens a session, proposing a version for it.
func (s *session) initialize(ctx context.Context, version string) error {
	server, err := s.sendInitialize(ctx, version)
	if err != nil {
		return err
	}
	return s.finishHandshake(ctx, server)
}

// initializeParams are the params of initialize.
type initializeParams struct {
	ProtocolVersion string          `json:"protocolVersion"`
	Capabilities    json.RawMessage `json:"capabilities"`
	ClientInfo      json.RawMessage `json:"clientInfo"`
}

// initializeResult is the result of initialize.
type initializeResult struct {
	ProtocolVersion string          `json:"protocolVersion"`
	Capabilities    json.RawMessage `json:"capabilities"`
	ServerInfo      json.RawMessage `json:"serverInfo"`
	Instructions    json.RawMessage `json:"instructions"`
	Meta            json.RawMessage `json:"_meta"`
}

// sendInitialize sends the first message of the handshake and reads the response.
func (s *session) sendInitialize(ctx context.Context, version string) (*server, error) {
	params := strictjson.MustMarshal(&initializeParams{version, s.conn.capabilities(), s.client.info})
	id := s.conn.client.NextID()
	r, err := s.wire.Call(ctx, &transport.Outgoing{ID: id, Method: revision.Initialize, Body: transport.AppendRequest(nil, id, revision.Initialize, params)})
	switch {
	case err != nil:
		return nil, err
	case r.Error != nil:
		return nil, s.conn.refusal(r.Error)
	}
	return parseServer(r.Result)
}

func parseServer(result json.RawMessage) (*server, error) {
	var res initializeResult
	if err := strictjson.Unmarshal(result, &res); err != nil {
		return nil, fmt.Errorf("mcp: the answer to initialize: %s: %w", strictjson.Problem(err), transport.ErrNotUnderstood)
	}
	if res.ProtocolVersion == "" {
		return nil, fmt.Errorf("mcp: the answer to initialize has no protocol version: %w", transport.ErrNotUnderstood)
	}
	if revision.Parse(res.ProtocolVersion) == revision.None {
		return nil, fmt.Errorf("mcp: the server speaks %q, which this client does not", res.ProtocolVersion)
	}
	if !jsonscan.IsObject(res.Capabilities) {
		res.Capabilities = json.RawMessage("{}")
	}
	return &server{version: res.ProtocolVersion, capabilities: readCapabilities(res.Capabilities), description: res.asDiscovery()}, nil
}

// asDiscovery converts the result of initialize to a result of server/discover.
func (res *initializeResult) asDiscovery() json.RawMessage {
	d := []byte(`{"resultType":"complete","supportedVersions":[`)
	d = append(jsonscan.AppendString(d, res.ProtocolVersion), ']')
	d = append(jsonscan.AppendKey(d, "capabilities"), res.Capabilities...)
	if len(res.Instructions) > 0 && res.Instructions[0] == '"' {
		d = append(jsonscan.AppendKey(d, "instructions"), res.Instructions...)
	}
	d = append(jsonscan.AppendKey(d, "_meta"), '{')
	if jsonscan.IsObject(res.ServerInfo) {
		d = append(jsonscan.AppendKey(d, metaServerInfo), res.ServerInfo...)
	}
	if jsonscan.IsObject(res.Meta) {
		d = jsonscan.AppendMembers(d, res.Meta, metaServerInfo)
	} else {
		d = append(d, '}')
	}
	return append(d, '}')
}

// capabilities returns the capabilities that the client declares in the handshake. Unlike
// in the newest revision, the client announces changes of its roots.
func (c *Conn) capabilities() json.RawMessage {
	if !c.declaresRoots() {
		return c.opts.Capabilities
	}
	return jsonscan.AppendMembers([]byte(`{"roots":{"listChanged":true}`), c.opts.Capabilities, "roots")
}

func (c *Conn) declaresRoots() bool { return jsonscan.Member(c.opts.Capabilities, "roots") != nil }

func (s *session) sendRootsChanged(ctx context.Context) error {
	return s.send(ctx, &transport.Outgoing{Method: revision.RootsListChanged, Body: transport.AppendNotification(nil, revision.RootsListChanged, nil)})
}

// finishHandshake sends the last message of the handshake and requests log messages.
func (s *session) finishHandshake(ctx context.Context, server *server) error {
	s.recordStart(server)
	note := transport.AppendNotification(nil, revision.Initialized, nil)
	if err := s.send(ctx, &transport.Outgoing{Method: revision.Initialized, Body: note}); err != nil {
		return err
	}
	if s.client.level == "" || server.capabilities.Logging == nil {
		return nil
	}
	return s.setLevel(ctx, s.client.level)
}

// recordStart records that a session has started.
func (s *session) recordStart(server *server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server, s.level = server, s.client.level
	if s.generation++; s.generation == 1 {
		close(s.ready)
	}
}

// setLevel requests log messages of a level and above. If the server refuses, the session
// continues without them.
func (s *session) setLevel(ctx context.Context, level string) error {
	err := s.sendCommand(ctx, revision.SetLevel, map[string]string{"level": level})
	if _, refused := errors.AsType[*refusal](err); refused {
		s.conn.opts.Logger.WarnContext(ctx, "mcp: the server refuses to set the level of its log messages", "level", level, "error", err)
		return nil
	}
	return err
}

// lowerLevel requests the log messages that a caller wants. The level applies to the whole
// session. It is never raised, because other callers may want the messages; the client
// filters them for each caller.
func (s *session) lowerLevel(ctx context.Context, level string) {
	server := s.described()
	if level == "" || server == nil || server.capabilities.Logging == nil {
		return
	}
	s.mu.Lock()
	known := s.level != "" && reaches(level, s.level)
	if !known {
		s.level = level
	}
	s.mu.Unlock()
	if known {
		return
	}
	if err := s.setLevel(ctx, level); err != nil {
		s.conn.opts.Logger.WarnContext(ctx, "mcp: the level of log messages that a caller wants was not set", "level", level, "error", err)
	}
}

// reaches reports whether level is at least lowest. It returns true if either is unknown.
func reaches(level, lowest string) bool {
	l, bound := slices.Index(levels, level), slices.Index(levels, lowest)
	return l < 0 || bound < 0 || l >= bound
}

// inSession runs call in a session. If the server has lost the session, call had no effect,
// so inSession runs it once more in a new session.
func (s *session) inSession(ctx context.Context, call func() error) error {
	for attempt := 0; ; attempt++ {
		generation, err := s.awaitSession(ctx)
		if err != nil {
			return err
		}
		err = call()
		if !errors.Is(err, transport.ErrSessionLost) {
			return err
		}
		s.setLost(generation)
		if attempt > 0 {
			return err
		}
	}
}

// awaitSession waits until there is a session and returns its generation. If the last
// session was lost and no handshake is in progress, it performs the handshake itself. The
// loss is a state of the connection, not of the call that noticed it, so all calls wait for
// one handshake; if it fails, the next call repeats it.
func (s *session) awaitSession(ctx context.Context) (generation int, err error) {
	for {
		s.mu.Lock()
		switch {
		case s.handshake != nil:
			done := s.handshake
			s.mu.Unlock()
			select {
			case <-done:
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		case !s.lost:
			defer s.mu.Unlock()
			return s.generation, nil
		default:
			done := make(chan struct{})
			s.handshake = done
			s.mu.Unlock()
			if err := s.reopen(ctx, done); err != nil && !isInSession(err) {
				return 0, errors.Join(transport.ErrSessionLost, err)
			}
		}
	}
}

// isInSession reports whether an error means that the handshake was refused because the
// session still exists.
func isInSession(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.response.Code == codeInvalidRequest
}

// setLost records that a session is lost, and cancels its questions: their answers must not
// be sent in the next session, where the same ID may belong to another question.
func (s *session) setLost(generation int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generation != generation {
		return
	}
	s.lost = true
	for _, q := range s.questions {
		q.cancel(s.conn.client.Withdrawn("the session is lost"))
	}
}

// currentGeneration returns the generation of the current or most recently lost session.
func (s *session) currentGeneration() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation
}

// isCurrent reports whether a generation is the current session and has not been lost.
func (s *session) isCurrent(generation int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation == generation && !s.lost
}

// reopen performs a new handshake and subscribes again. It announces everything as changed,
// because anything may have changed in the meantime.
func (s *session) reopen(ctx context.Context, done chan struct{}) (err error) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.handshake = nil
		s.lost = err != nil && !isInSession(err)
		close(done)
	}()
	s.conn.client.Reconnecting(ctx, "session", transport.ErrSessionLost)
	if err := s.initialize(ctx, s.version()); err != nil {
		return err
	}
	s.mu.Lock()
	subscribed := maps.Clone(s.subscribed)
	s.mu.Unlock()
	for _, uri := range slices.Sorted(maps.Keys(subscribed)) {
		err := s.sendCommand(ctx, revision.Subscribe, map[string]string{"uri": uri})
		if _, refused := errors.AsType[*refusal](err); err != nil && !refused {
			return err // otherwise the subscriptions would silently receive nothing
		}
		if err != nil {
			subscribed[uri].active.Store(false) // the next listener tries again
			s.conn.opts.Logger.WarnContext(ctx, "mcp: a resource was not subscribed to again", "uri", uri, "error", err)
		}
	}
	s.announceEverything()
	return nil
}
