// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-psi/psi/internal/callclock"
	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/mcp/transport"
)

// A prober determines which revision a server speaks. It sends server/discover and waits
// for the response, because a server that is slow to start cannot be distinguished from one
// that does not answer.
//
// It sends initialize to an older server on the same connection. If that fails, it opens a
// new connection, because some servers exit or hang after receiving an unknown method.
type prober struct {
	conn     *Conn
	session  *session
	discover *transport.Outgoing

	discovery      <-chan discovery // receives the pending response to server/discover; nil if none is pending
	handshake      <-chan handshake // receives the pending response to initialize; nil if none is pending
	silenceTimer   <-chan time.Time // fires when it is time to send initialize anyway
	graceTimer     <-chan time.Time // ends the wait for the response to server/discover
	discoverCount  int              // number of times server/discover was sent
	initializeSent bool             // or is about to be
	initialized    *server          // accepted initialize but has not answered server/discover
	discoverErr    error            // why the server is considered an older one
	initializeErr  error            // why the server refused initialize
	reconnect      bool             // a new connection may help
	answer         *transport.Message
}

type discovery struct {
	answer *transport.Message
	err    error
}

type handshake struct {
	server *server
	err    error
}

const (
	// silenceTime is how long a server on a byte stream may leave server/discover
	// unanswered before initialize is sent as well. It does not determine the revision: a
	// server of the newest revision answers both, in order.
	silenceTime = 5 * time.Second
	// graceTime is how long the prober waits for the response to server/discover after the
	// response to initialize.
	graceTime = time.Second
)

// negotiate determines which revision the server speaks and switches to it. It returns the
// response to m, a server/discover request.
func (c *Conn) negotiate(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	p := &prober{conn: c, session: c.current.Load(), discover: m}
	p.session.client = clientOf(m)
	if v := c.opts.Version; v != "" {
		c.reason = "the version was known"
		err := p.session.initialize(ctx, v)
		if err == nil || c.opts.Pinned || !speaksAnother(err, m.Version) {
			return p.session.describe(m.ID, err)
		}
		if err := p.connectAgain(ctx, err); err != nil {
			return nil, err
		}
	}
	err := p.probe(ctx)
	if err != nil && p.reconnect && ctx.Err() == nil {
		err = p.initializeAgain(ctx, err)
	}
	c.reason = p.reason()
	if p.answer != nil || err != nil {
		return p.answer, err
	}
	return p.session.describe(m.ID, nil)
}

// reason returns why the revision was chosen.
func (p *prober) reason() string {
	switch {
	case p.conn.modern.Load():
		return "the server answers " + methodDiscover
	case p.discoverErr != nil:
		return "the server does not answer " + methodDiscover + " as one of the newest revision does: " + p.discoverErr.Error()
	}
	return "the server answers " + revision.Initialize + ", and has not answered " + methodDiscover
}

// clientOf returns the client information and log level in the metadata of a request.
func clientOf(m *transport.Outgoing) clientInfo {
	meta := jsonscan.Member(jsonscan.Member(m.Body, "params"), "_meta")
	return clientInfo{info: jsonscan.Member(meta, metaClientInfo), level: levelIn(meta)}
}

// speaksAnother reports whether an error of initialize means that the server speaks another
// revision.
func speaksAnother(err error, latest string) bool {
	other, _ := answersAsOlder(err, latest)
	return other || isUnsupportedVersion(err)
}

func isUnsupportedVersion(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.response.Code == codeUnsupportedVersion
}

// describe returns the server's description as the response to server/discover. If err is
// not nil, describe returns it.
func (s *session) describe(id transport.ID, err error) (*transport.Message, error) {
	if err != nil {
		return nil, err
	}
	return &transport.Message{ID: id, Result: s.described().description}, nil
}

// connectAgain replaces the broken connection and restarts the connect timeout. A goroutine
// closes the old connection in the meantime; Conn.Close waits for it.
func (p *prober) connectAgain(ctx context.Context, broken error) error {
	p.conn.client.Reconnecting(ctx, "connection", broken)
	closed := make(chan struct{})
	go func(old *session) {
		defer close(closed)
		old.close()
		_ = old.wire.Close() // the connection is no longer used
	}(p.session)
	if clock := callclock.FromContext(ctx); clock != nil {
		clock.Reset()
	}
	p.conn.oldConnClosed = closed
	if err := p.conn.open(ctx); err != nil {
		return err
	}
	p.session = p.conn.current.Load()
	p.session.client = clientOf(p.discover)
	return nil
}

// initializeAgain makes the handshake on a new connection after the first one failed.
func (p *prober) initializeAgain(ctx context.Context, broken error) error {
	if err := p.connectAgain(ctx, broken); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.initializeSent, p.initialized, p.initializeErr, p.discovery, p.discoverCount = false, nil, nil, nil, 0
	p.sendInitialize(ctx)
	return p.awaitRevision(ctx)
}

// probe determines the revision of the server. When it returns, it cancels the requests
// that are still pending.
func (p *prober) probe(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.sendDiscover(ctx)
	if p.session.wire.Info().Ordered {
		p.silenceTimer = time.After(silenceTime)
	}
	return p.awaitRevision(ctx)
}

// awaitRevision handles responses until the revision is known. On a byte stream, initialize
// follows server/discover after a while: a slow modern server answers both, and the first
// answer counts; a silent old one answers the second. A new connection is opened only if the
// first broke or rejected both.
func (p *prober) awaitRevision(ctx context.Context) error {
	for {
		var done bool
		var err error
		select {
		case d := <-p.discovery:
			p.discovery = nil
			done, err = p.handleDiscovery(ctx, d)
		case h := <-p.handshake:
			p.handshake = nil
			done, err = p.handleHandshake(ctx, h)
		case <-p.silenceTimer:
			p.sendInitialize(ctx)
		case <-p.graceTimer:
			p.conn.guess.Store(true)
			return p.session.finishHandshake(ctx, p.initialized)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if done || err != nil {
			return err
		}
	}
}

// sendDiscover sends server/discover in a goroutine.
func (p *prober) sendDiscover(ctx context.Context) {
	responses := make(chan discovery, 1)
	p.discovery = responses
	p.discoverCount++
	p.conn.client.ProbeSent(ctx, methodDiscover)
	go func(s *session) {
		r, err := s.wire.Call(ctx, p.discover)
		if err == nil && r.Error == nil {
			err = s.conn.client.CheckDiscovery(r.Result)
		}
		responses <- discovery{r, err}
	}(p.session)
}

// sendInitialize sends initialize in a goroutine, unless it was already sent.
func (p *prober) sendInitialize(ctx context.Context) {
	p.silenceTimer = nil
	if p.initializeSent {
		return
	}
	responses := make(chan handshake, 1)
	p.handshake, p.initializeSent = responses, true
	go func(s *session) { responses <- s.proposeVersions(ctx) }(p.session)
}

// proposeVersions sends initialize with the newest of the older revisions. A server should
// answer with the version that it speaks. If it rejects the version as invalid instead, the
// other versions are proposed in turn. If none is accepted, the first error is returned.
func (s *session) proposeVersions(ctx context.Context) (h handshake) {
	for i, version := range revision.Names() {
		s.conn.client.ProbeSent(ctx, revision.Initialize)
		server, err := s.sendInitialize(ctx, version)
		if i == 0 || err == nil {
			h = handshake{server, err}
		}
		if r, refused := errors.AsType[*refusal](err); !refused || r.response.Code != codeInvalidParams {
			break
		}
	}
	return h
}

// handleDiscovery handles the response to server/discover.
func (p *prober) handleDiscovery(ctx context.Context, d discovery) (done bool, err error) {
	if d.err == nil && d.answer.Error != nil {
		d.err = p.conn.refusal(d.answer.Error)
	}
	if d.err == nil {
		p.setModern(d.answer)
		return true, nil
	}
	older, sure := p.isOlder(d.err)
	if !older || p.discoverCount > 1 {
		return p.refused(d)
	}
	p.conn.opts.Logger.DebugContext(ctx, "mcp: the server does not speak the newest revision", "answer", d.err)
	p.discoverErr = d.err
	p.conn.guess.Store(!sure)
	switch {
	case p.initialized != nil:
		return true, p.session.finishHandshake(ctx, p.initialized)
	case p.initializeErr != nil:
		return false, bothRefused(d.err, p.initializeErr)
	case p.isBroken(d.err):
		p.reconnect = true
		return false, d.err
	}
	p.sendInitialize(ctx)
	return false, nil
}

// refused ends the probe with an error of server/discover. An error response becomes the
// answer, because the client may know how to handle it.
func (p *prober) refused(d discovery) (done bool, err error) {
	if _, ok := errors.AsType[*refusal](d.err); ok {
		p.answer = d.answer
		return true, nil
	}
	return false, d.err
}

// handleHandshake handles the response to initialize. A server that does not support the
// version speaks only the newest one, so server/discover is sent once more.
func (p *prober) handleHandshake(ctx context.Context, h handshake) (done bool, err error) {
	_, refused := errors.AsType[*refusal](h.err)
	switch {
	case h.err == nil && p.discovery == nil:
		return true, p.session.finishHandshake(ctx, h.server)
	case h.err == nil:
		p.initialized, p.graceTimer = h.server, time.After(graceTime)
		return false, nil
	}
	p.initializeErr = h.err
	switch {
	case p.discovery != nil && !p.isBroken(h.err):
		return false, nil // the response to server/discover decides
	case isUnsupportedVersion(h.err) && p.discoverCount < 2:
		p.sendDiscover(ctx)
		return false, nil
	}
	p.reconnect = p.isBroken(h.err) || refused && p.session.wire.Info().Ordered
	return false, bothRefused(p.discoverErr, h.err)
}

// bothRefused returns the error for a server that refused both server/discover and
// initialize.
func bothRefused(discoverErr, initializeErr error) error {
	if discoverErr == nil || discoverErr.Error() == initializeErr.Error() {
		return initializeErr
	}
	return fmt.Errorf("mcp: the server refuses to begin: %w; %s: %w", initializeErr, methodDiscover, discoverErr)
}

// setModern stops translating messages, because the server speaks the newest revision.
func (p *prober) setModern(answer *transport.Message) {
	p.answer = answer
	p.conn.guess.Store(false)
	p.conn.modern.Store(true)
	p.session.close()
}

// isOlder reports whether an error of server/discover means that the server is an older
// one, and whether that is certain. A broken connection means that it is, because some
// servers exit after an unknown method.
func (p *prober) isOlder(err error) (older, sure bool) {
	older, sure = answersAsOlder(err, p.discover.Version)
	return older || p.isBroken(err), sure
}

// isBroken reports whether a call failed because its connection broke.
func (p *prober) isBroken(err error) bool {
	if _, answered := errors.AsType[*refusal](err); answered {
		return false
	}
	for _, other := range []error{
		transport.ErrNotUnderstood, transport.ErrUnreadable, transport.ErrUnauthorized, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, other) {
			return false
		}
	}
	return p.session.wire.Info().Ordered || isDone(p.session.wire)
}
