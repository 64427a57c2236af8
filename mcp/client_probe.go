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
)

// A prober makes a connection to a server of which it is not known what it speaks. It asks
// server/discover, and goes by what the server answers, however long that takes: a server
// that is slow to start looks like one that is silent.
//
// An older server is greeted on the same connection, and on a new one only if that fails:
// there are servers that exit, or do nothing more, when they do not know a method.
type prober struct {
	conn   *Conn
	modern *modernClient
	legacy *legacyClient

	discovered chan discovery    // of the question that waits; nil if none does
	greeted    chan greeting     // likewise
	patience   <-chan time.Time  // until the server is greeted although it is silent
	grace      <-chan time.Time  // until a server that is greeted need not answer discovery
	wasGreeted bool              // or is about to be
	asked      int               // how often discovery was asked for
	welcome    *InitializeResult // of a server from which the answer to discovery is missing
	refused    error             // why it refused initialize
	older      error             // why the server is taken for older
	guess      bool              // it did not say so in so many words
	again      bool              // a new connection may make a difference
}

type discovery struct {
	res *DiscoverResult
	err error
}

type greeting struct {
	res *InitializeResult
	err error
}

const (
	// silence is how long a server that reads one message after the other may leave
	// server/discover unanswered before initialize is sent after it. It decides nothing:
	// a server that speaks the modern era answers both, one after the other.
	silence = 5 * time.Second
	// lateness is how long after the answer to the second that to the first may come.
	lateness = time.Second
)

// open connects, with an era that answers pings until it is settled.
func (c *Client) open(ctx context.Context, t Transport, version string) (*prober, error) {
	conn := newConn(c)
	p := &prober{conn: conn, modern: &modernClient{conn: conn}, legacy: newLegacyClient(conn, version)}
	if err := conn.open(ctx, t, p.legacy); err != nil {
		return nil, err
	}
	return p, nil
}

// connectModern connects to a server that speaks the modern era.
func (c *Client) connectModern(ctx context.Context, t Transport) (*Conn, error) {
	p, err := c.open(ctx, t, newestLegacy.String())
	if err != nil {
		return nil, err
	}
	res, err := p.modern.discover(ctx)
	if err != nil {
		return nil, p.fail(ctx, err)
	}
	return p.speakModern(res), nil
}

// connectLegacy connects to a server that speaks the legacy era.
func (c *Client) connectLegacy(ctx context.Context, t Transport, version string) (*Conn, error) {
	p, err := c.open(ctx, t, version)
	if err != nil {
		return nil, err
	}
	if err := p.legacy.initialize(ctx); err != nil {
		return nil, p.fail(ctx, err)
	}
	return p.conn, nil
}

// probe connects to a server of which it is not known what it speaks. It reports whether
// the era is a guess.
func (c *Client) probe(ctx context.Context, t Transport) (conn *Conn, guess bool, err error) {
	p, err := c.open(ctx, t, newestLegacy.String())
	if err != nil {
		return nil, false, err
	}
	if err = p.findOut(ctx); err != nil && p.again && ctx.Err() == nil {
		p, err = p.connectAnew(ctx, t)
	}
	if err != nil {
		return nil, false, p.fail(ctx, err)
	}
	return p.conn, p.guess, nil
}

// connectAnew connects to an older server on a new connection, with all of the time: what
// came on the first one was too much for it. That one ends meanwhile.
func (p *prober) connectAnew(ctx context.Context, t Transport) (*prober, error) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = p.conn.Close() // nobody uses it
	}()
	if clock := callclock.FromContext(ctx); clock != nil {
		clock.Reset()
	}
	next, err := p.conn.client.open(ctx, t, newestLegacy.String())
	if err != nil {
		<-closed
		return p, err
	}
	next.conn.predecessor = closed
	next.older, next.guess = p.older, p.guess
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next.greet(ctx)
	return next, next.await(ctx)
}

// findOut finds out what the server speaks, and begins to speak it. What is not waited for
// any more is cancelled.
func (p *prober) findOut(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.discover(ctx)
	if isOrdered(p.conn.wire) {
		timer := time.NewTimer(silence)
		defer timer.Stop()
		p.patience = timer.C
	}
	return p.await(ctx)
}

// await waits for answers until the era is settled.
func (p *prober) await(ctx context.Context) error {
	for {
		var done bool
		var err error
		select {
		case d := <-p.discovered:
			p.discovered = nil
			done, err = p.tookDiscovery(ctx, d)
		case g := <-p.greeted:
			p.greeted = nil
			done, err = p.tookGreeting(ctx, g)
		case <-p.patience:
			p.greet(ctx)
		case <-p.grace:
			p.guess = true
			return p.legacy.begin(ctx, p.welcome)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if done || err != nil {
			return err
		}
	}
}

// discover asks server/discover, in the background.
func (p *prober) discover(ctx context.Context) {
	discovered := make(chan discovery, 1)
	p.discovered = discovered
	p.asked++
	go func() {
		res, err := p.modern.discover(ctx)
		discovered <- discovery{res, err}
	}()
}

// greet asks initialize, in the background, once.
func (p *prober) greet(ctx context.Context) {
	p.patience = nil
	if p.wasGreeted {
		return
	}
	greeted := make(chan greeting, 1)
	p.greeted, p.wasGreeted = greeted, true
	go func() {
		res, err := p.legacy.greet(ctx)
		greeted <- greeting{res, err}
	}()
}

// tookDiscovery takes the answer to server/discover.
func (p *prober) tookDiscovery(ctx context.Context, d discovery) (done bool, err error) {
	if d.err == nil {
		p.speakModern(d.res)
		return true, nil
	}
	older, sure := p.isOlder(d.err)
	if !older || p.asked > 1 {
		return false, d.err
	}
	p.conn.client.opts.Logger.DebugContext(ctx, "mcp: the server does not speak the modern era", "answer", d.err)
	p.older, p.guess = d.err, !sure
	switch {
	case p.welcome != nil:
		return true, p.legacy.begin(ctx, p.welcome)
	case p.refused != nil:
		return false, bothRefused(d.err, p.refused)
	case p.isBroken(d.err):
		p.again = true
		return false, d.err
	}
	p.greet(ctx)
	return false, nil
}

// tookGreeting takes the answer to initialize. A server that refuses it because it speaks
// the modern era alone has said what it speaks.
func (p *prober) tookGreeting(ctx context.Context, g greeting) (done bool, err error) {
	_, coded := errors.AsType[*Error](g.err)
	switch {
	case g.err == nil && p.discovered == nil:
		return true, p.legacy.begin(ctx, g.res)
	case g.err == nil:
		p.welcome, p.grace = g.res, time.After(lateness)
		return false, nil
	}
	p.refused = g.err
	switch {
	case p.discovered != nil && !p.isBroken(g.err):
		return false, nil // that answer counts
	case CodeOf(g.err) == CodeUnsupportedVersion && p.asked < 2:
		p.discover(ctx)
		return false, nil
	}
	p.again = p.isBroken(g.err) || coded && isOrdered(p.conn.wire)
	return false, bothRefused(p.older, g.err)
}

// bothRefused is the error of a server that refused both questions.
func bothRefused(discovered, greeted error) error {
	if discovered == nil || discovered.Error() == greeted.Error() {
		return greeted
	}
	return fmt.Errorf("mcp: the server refuses to begin: %w; %s: %w", greeted, MethodDiscover, discovered)
}

// speakModern settles the era.
func (p *prober) speakModern(res *DiscoverResult) *Conn {
	p.guess = false
	p.conn.server.Store(res)
	p.conn.setEra(p.modern)
	p.legacy.close()
	return p.conn
}

// fail closes the connection, and returns why: the reason of the context, if that is over.
func (p *prober) fail(ctx context.Context, err error) error {
	_ = p.conn.Close() // what matters is why
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// isDone reports whether a connection has ended, or is about to.
func isDone(w Wire) bool {
	select {
	case <-w.Done():
		return true
	default:
		return w.Err() != nil
	}
}

// isOrdered reports whether a wire is a byte stream; see [Wire].
func isOrdered(w Wire) bool {
	for {
		switch v := w.(type) {
		case interface{ Ordered() bool }:
			return v.Ordered()
		case interface{ Unwrap() Wire }:
			w = v.Unwrap()
		default:
			return false
		}
	}
}

// isOlder reports whether what came of server/discover is the answer of an older server, and
// whether that is sure. There are servers that exit when they do not know a method.
func (p *prober) isOlder(err error) (older, sure bool) {
	older, sure = answersAsOlder(err)
	return older || p.isBroken(err), sure
}

// isBroken reports whether a call failed because its connection did.
func (p *prober) isBroken(err error) bool {
	if _, answered := errors.AsType[*Error](err); answered {
		return false
	}
	for _, other := range []error{ErrNotUnderstood, ErrUnreadable, ErrUnauthorized, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, other) {
			return false
		}
	}
	return isOrdered(p.conn.wire) || isDone(p.conn.wire)
}

// answersAsOlder reports whether an error is the answer of a server that speaks another era
// than it was asked in. A server that cannot be reached, fails for a while, or wants to
// know who calls has said nothing about that.
func answersAsOlder(err error) (older, sure bool) {
	switch {
	case errors.Is(err, ErrUnauthorized), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false, false
	case errors.Is(err, ErrNotUnderstood):
		return true, true
	case errors.Is(err, ErrUnreadable):
		return true, false
	}
	coded, ok := errors.AsType[*Error](err)
	switch {
	case !ok || mayPass(err):
		return false, false
	case coded.Code == CodeUnsupportedVersion:
		return onlyLegacy(coded), true
	case coded.Code == CodeHeaderMismatch, coded.Code == CodeMissingCapability:
		return false, false
	case coded.Code/100 == 4: // a refusal: of the caller, or of how often it calls
		return false, false
	}
	return true, true
}

// mayPass reports whether an error says of itself that it may soon be over.
func mayPass(err error) bool {
	told, ok := errors.AsType[interface {
		error
		Transient() bool
	}](err)
	return ok && told.Transient()
}

// onlyLegacy reports whether a refusal of a version names one of the legacy era, and
// none of this one that can be used.
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
