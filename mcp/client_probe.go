// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-psi/psi/internal/callclock"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/mcp/transport"
)

// A prober connects to a server and finds out which era it speaks. It sends
// server/discover and waits for the response: a server that is slow to start cannot be
// distinguished from one that does not answer.
//
// It sends initialize to a legacy server on the same connection, and on a new one only if
// that fails: some servers exit or do nothing more after a method that they do not know.
type prober struct {
	conn   *Conn
	modern *modernClient
	legacy *legacyClient

	discovery      <-chan discovery  // receives the pending response to server/discover; nil if none is pending
	handshake      <-chan handshake  // receives the pending response to initialize; nil if none is pending
	silenceTimer   <-chan time.Time  // fires when initialize is sent although server/discover is unanswered
	graceTimer     <-chan time.Time  // fires when the response to server/discover is not waited for any more
	discoverCount  int               // how often server/discover was sent
	initializeSent bool              // or is about to be
	initialized    *initializeResult // of a server that has not answered server/discover yet
	discoverErr    error             // why the server is considered legacy
	initializeErr  error             // why the server refused initialize
	guess          bool              // the server did not say so explicitly
	reconnect      bool              // a new connection may help
}

type discovery struct {
	res *DiscoverResult
	err error
}

type handshake struct {
	res *initializeResult
	err error
}

const (
	// silenceTime is how long a server on a byte stream may leave server/discover
	// unanswered before initialize is sent as well. It does not decide the era: a modern
	// server answers both, one after the other.
	silenceTime = 5 * time.Second
	// graceTime is how long after the response to initialize that to server/discover may
	// come.
	graceTime = time.Second
)

// open opens a connection. The legacy era, which answers pings, is used until the era is
// known.
func (c *Client) open(ctx context.Context, t transport.Transport, version string) (*prober, error) {
	conn := newConn(c)
	p := &prober{conn: conn, modern: &modernClient{conn: conn}, legacy: newLegacyClient(conn, version)}
	if err := conn.open(ctx, t, p.legacy); err != nil {
		return nil, err
	}
	return p, nil
}

// connectModern connects to a server that is known to speak the modern era.
func (c *Client) connectModern(ctx context.Context, t transport.Transport) (*Conn, error) {
	p, err := c.open(ctx, t, revision.Newest.String())
	if err != nil {
		return nil, err
	}
	res, err := p.modern.discover(ctx)
	if err != nil {
		return nil, p.fail(ctx, err)
	}
	p.setModern(res)
	return p.conn, nil
}

// connectLegacy connects to a server that is known to speak the legacy era.
func (c *Client) connectLegacy(ctx context.Context, t transport.Transport, version string) (*Conn, error) {
	p, err := c.open(ctx, t, version)
	if err != nil {
		return nil, err
	}
	if err := p.legacy.initialize(ctx); err != nil {
		return nil, p.fail(ctx, err)
	}
	return p.conn, nil
}

// probe connects to a server whose era is not known. It reports whether the era is a
// guess.
func (c *Client) probe(ctx context.Context, t transport.Transport) (conn *Conn, guess bool, err error) {
	p, err := c.open(ctx, t, revision.Newest.String())
	if err != nil {
		return nil, false, err
	}
	if err = p.negotiate(ctx); err != nil && p.reconnect && ctx.Err() == nil {
		p, err = p.connectAgain(ctx, t)
	}
	if err != nil {
		return nil, false, p.fail(ctx, err)
	}
	return p.conn, p.guess, nil
}

// connectAgain opens a new connection to a legacy server that could not cope with the
// first one, and starts the connect timeout anew. A goroutine closes the first connection
// meanwhile; Close of the new one waits for it.
func (p *prober) connectAgain(ctx context.Context, t transport.Transport) (*prober, error) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = p.conn.Close() // the connection is not used any more
	}()
	if clock := callclock.FromContext(ctx); clock != nil {
		clock.Reset()
	}
	next, err := p.conn.client.open(ctx, t, revision.Newest.String())
	if err != nil {
		<-closed
		return p, err
	}
	next.conn.predecessor = closed
	next.discoverErr, next.guess = p.discoverErr, p.guess
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next.sendInitialize(ctx)
	return next, next.awaitEra(ctx)
}

// negotiate finds out the era of the server and starts to use it. Requests that are still
// pending are cancelled when it returns.
func (p *prober) negotiate(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.sendDiscover(ctx)
	if isOrdered(p.conn.wire) {
		timer := time.NewTimer(silenceTime)
		defer timer.Stop()
		p.silenceTimer = timer.C
	}
	return p.awaitEra(ctx)
}

// awaitEra handles responses until the era is known.
func (p *prober) awaitEra(ctx context.Context) error {
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
			p.guess = true
			return p.legacy.finishHandshake(ctx, p.initialized)
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
	go func() {
		res, err := p.modern.discover(ctx)
		responses <- discovery{res, err}
	}()
}

// sendInitialize sends initialize in a goroutine, the first time it is called.
func (p *prober) sendInitialize(ctx context.Context) {
	p.silenceTimer = nil
	if p.initializeSent {
		return
	}
	responses := make(chan handshake, 1)
	p.handshake, p.initializeSent = responses, true
	go func() {
		res, err := p.legacy.sendInitialize(ctx)
		responses <- handshake{res, err}
	}()
}

// handleDiscovery handles the response to server/discover.
func (p *prober) handleDiscovery(ctx context.Context, d discovery) (done bool, err error) {
	if d.err == nil {
		p.setModern(d.res)
		return true, nil
	}
	older, sure := p.isOlder(d.err)
	if !older || p.discoverCount > 1 {
		return false, d.err
	}
	p.conn.client.opts.Logger.DebugContext(ctx, "mcp: the server does not speak the modern era", "answer", d.err)
	p.discoverErr, p.guess = d.err, !sure
	switch {
	case p.initialized != nil:
		return true, p.legacy.finishHandshake(ctx, p.initialized)
	case p.initializeErr != nil:
		return false, bothRefused(d.err, p.initializeErr)
	case p.isBroken(d.err):
		p.reconnect = true
		return false, d.err
	}
	p.sendInitialize(ctx)
	return false, nil
}

// handleHandshake handles the response to initialize. A server that refuses the version
// speaks only the modern era, so server/discover is sent once more.
func (p *prober) handleHandshake(ctx context.Context, h handshake) (done bool, err error) {
	_, coded := errors.AsType[*Error](h.err)
	switch {
	case h.err == nil && p.discovery == nil:
		return true, p.legacy.finishHandshake(ctx, h.res)
	case h.err == nil:
		p.initialized, p.graceTimer = h.res, time.After(graceTime)
		return false, nil
	}
	p.initializeErr = h.err
	switch {
	case p.discovery != nil && !p.isBroken(h.err):
		return false, nil // the response to server/discover decides
	case CodeOf(h.err) == CodeUnsupportedVersion && p.discoverCount < 2:
		p.sendDiscover(ctx)
		return false, nil
	}
	p.reconnect = p.isBroken(h.err) || coded && isOrdered(p.conn.wire)
	return false, bothRefused(p.discoverErr, h.err)
}

// bothRefused returns the error of a server that refused server/discover and initialize.
func bothRefused(discoverErr, initializeErr error) error {
	if discoverErr == nil || discoverErr.Error() == initializeErr.Error() {
		return initializeErr
	}
	return fmt.Errorf("mcp: the server refuses to begin: %w; %s: %w", initializeErr, MethodDiscover, discoverErr)
}

// setModern makes the connection a modern one.
func (p *prober) setModern(res *DiscoverResult) {
	p.guess = false
	p.conn.server.Store(res)
	p.conn.setEra(p.modern)
	p.legacy.close()
}

// fail closes the connection. It returns err, or the cause of the context if that is done.
func (p *prober) fail(ctx context.Context, err error) error {
	_ = p.conn.Close() // the error to report is err
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// isDone reports whether a connection has ended or is about to end.
func isDone(w transport.Conn) bool {
	select {
	case <-w.Done():
		return true
	default:
		return w.Err() != nil
	}
}

// isOrdered reports whether a wire is a byte stream; see [transport.Conn].
func isOrdered(w transport.Conn) bool {
	for {
		switch v := w.(type) {
		case interface{ Ordered() bool }:
			return v.Ordered()
		case interface{ Unwrap() transport.Conn }:
			w = v.Unwrap()
		default:
			return false
		}
	}
}

// isOlder reports whether an error of server/discover means that the server is a legacy one,
// and whether that is certain. Some servers exit after a method that they do not know.
func (p *prober) isOlder(err error) (older, sure bool) {
	older, sure = answersAsOlder(err)
	return older || p.isBroken(err), sure
}

// isBroken reports whether a call failed because its connection did.
func (p *prober) isBroken(err error) bool {
	if _, answered := errors.AsType[*Error](err); answered {
		return false
	}
	for _, other := range []error{transport.ErrNotUnderstood, ErrUnreadable, ErrUnauthorized, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, other) {
			return false
		}
	}
	return isOrdered(p.conn.wire) || isDone(p.conn.wire)
}

// answersAsOlder reports whether an error means that the server speaks the other era, and
// whether that is certain. An error of a server that cannot be reached, is temporarily
// unavailable or requires authorization means nothing about the era.
func answersAsOlder(err error) (older, sure bool) {
	switch {
	case errors.Is(err, ErrUnauthorized), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false, false
	case errors.Is(err, transport.ErrNotUnderstood):
		return true, true
	case errors.Is(err, ErrUnreadable):
		return true, false
	}
	coded, ok := errors.AsType[*Error](err)
	switch {
	case !ok || isTransient(err):
		return false, false
	case coded.Code == CodeUnsupportedVersion:
		return onlyLegacy(coded), true
	case coded.Code == CodeHeaderMismatch, coded.Code == CodeMissingCapability:
		return false, false
	case 400 <= coded.Code && coded.Code < 500: // an HTTP status: unauthorized, forbidden, too many requests
		return false, false
	}
	return true, true
}

// isTransient reports whether an error says that a later attempt may succeed.
func isTransient(err error) bool {
	transient, ok := errors.AsType[interface {
		error
		Transient() bool
	}](err)
	return ok && transient.Transient()
}

// onlyLegacy reports whether an error for an unsupported version names a legacy version and
// no modern version that the client speaks.
func onlyLegacy(e *Error) bool {
	var data struct {
		Supported []string `json:"supported"`
	}
	if e.Data == nil || unmarshal(e.Data, &data) != nil {
		return false
	}
	names := func(versions []string) bool {
		return slices.ContainsFunc(data.Supported, func(v string) bool { return slices.Contains(versions, v) })
	}
	return names(LegacyVersions()) && !names(ModernVersions())
}
