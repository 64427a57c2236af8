// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"time"

	"github.com/go-psi/psi/internal/pause"
)

// inSession makes a call in a session: in a new one, once more, if the server has
// lost the one it was made in. Then it had no effect.
func (e *legacyClient) inSession(ctx context.Context, call func() error) error {
	for attempt := 0; ; attempt++ {
		generation, err := e.session(ctx)
		if err != nil {
			return err
		}
		err = call()
		if !errors.Is(err, ErrSessionLost) {
			return err
		}
		e.lose(generation)
		if attempt > 0 {
			return err
		}
	}
}

// session waits until there is a session, for which it makes the handshake if the
// last one is lost and nobody else is at it, and returns which it is.
func (e *legacyClient) session(ctx context.Context) (generation int, err error) {
	for {
		e.mu.Lock()
		switch {
		case e.shaking != nil:
			done := e.shaking
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
			e.shaking = done
			e.mu.Unlock()
			if err := e.reopen(ctx, done); err != nil && !isInSession(err) {
				return 0, errors.Join(ErrSessionLost, err)
			}
		}
	}
}

// isInSession reports whether a handshake was refused because there is a session, after
// all.
func isInSession(err error) bool { return CodeOf(err) == CodeInvalidRequest }

// lose notes that a session is lost. What its server has asked needs no answer any
// more, least of all in another session, where something else may have that id.
func (e *legacyClient) lose(generation int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.generation != generation {
		return
	}
	e.lost = true
	for _, a := range e.answering {
		a.cancel(&CancelError{Reason: "the session is lost"})
	}
}

// reopen makes a new handshake and subscribes again. Anything may have changed meanwhile.
func (e *legacyClient) reopen(ctx context.Context, done chan struct{}) (err error) {
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.shaking = nil
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
		err := e.command(ctx, legacySubscribe, map[string]string{"uri": uri})
		if _, refused := errors.AsType[*Error](err); err != nil && !refused {
			return err // or those who listen would be deaf, and not know it
		}
		if err != nil {
			e.conn.client.opts.Logger.WarnContext(ctx, "mcp: a resource was not subscribed to again", "uri", uri, "error", err)
		}
	}
	e.publishEverything()
	return nil
}

// checkTime bounds how long a session is checked. What is checked again within calm waits,
// longer each time, up to checkPause: a server that loses every session that it opens must
// not keep its client busy.
const (
	checkTime  = 10 * time.Second
	checkPause = 30 * time.Second
	calm       = time.Minute
)

// checks are the checks of the session.
type checks struct {
	running bool
	again   bool // asked for while one runs
	last    time.Time
	inRow   int
}

// checkSoon has the session checked in the background, once for all who ask meanwhile.
func (e *legacyClient) checkSoon() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.checks.running {
		e.checks.again = true
		return
	}
	e.checks.running = true
	go func() {
		for e.waitToCheck() {
			e.check()
			if !e.checkAgain() {
				return
			}
		}
	}()
}

// waitToCheck waits until the next check is due, and reports false if it never is.
func (e *legacyClient) waitToCheck() bool {
	e.mu.Lock()
	c := &e.checks
	if time.Since(c.last) > calm {
		c.inRow = 0
	}
	var wait time.Duration
	if c.inRow > 0 {
		wait = min(500*time.Millisecond<<min(c.inRow, 8), checkPause)
	}
	c.inRow++
	e.mu.Unlock()
	err := pause.For(e.conn.ctx, wait)
	e.mu.Lock()
	defer e.mu.Unlock()
	c.last = time.Now()
	return err == nil
}

func (e *legacyClient) checkAgain() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.checks.running, e.checks.again = e.checks.again, false
	return e.checks.running
}

// check finds out whether there is still a session, and makes one if not: those who
// only listen would not find out.
func (e *legacyClient) check() {
	ctx, cancel := context.WithTimeout(e.conn.ctx, checkTime)
	defer cancel()
	if err := e.ping(ctx); err != nil {
		e.conn.client.opts.Logger.DebugContext(ctx, "mcp: the session could not be checked", "error", err)
	}
}
