// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/mcp"
)

// position is how far a stream has been read, for coming back to it.
type position struct {
	opened   bool          // there has been a stream
	last     string        // the id of the last event, "" if there was none
	retry    time.Duration // how long the server wants to be left alone, 0 if it did not say
	failures int           // how often in a row nothing new came
	idle     int           // how often in a row no message came
}

// errBrokenOff is in the error of a stream that can be come back to.
var errBrokenOff = fmt.Errorf("mcphttp: the stream broke off before the response: %w", io.ErrUnexpectedEOF)

func brokenOff(why error) error {
	if why == io.EOF { //nolint:errorlint // readers return it bare
		return errBrokenOff
	}
	return fmt.Errorf("%w: %w", errBrokenOff, why)
}

// lasting is how long a stream must have lived to have been of use even if
// nothing was said on it.
const lasting = 10 * time.Second

// follow reads a stream until the response to the request want, if that is not
// zero, and delivers all other messages. The response ends the exchange as far as
// the caller is concerned.
func (w *httpWire) follow(x *exchange, res *http.Response, want, about mcp.ID, pos *position) (*mcp.Response, error) {
	r, err := w.readStream(res.Body, want, about, pos)
	if r != nil {
		w.drain(x, res)
		return r, nil
	}
	closeBody(res)
	return nil, err
}

func (w *httpWire) readStream(body io.Reader, want, about mcp.ID, pos *position) (*mcp.Response, error) {
	begun := time.Now()
	defer func() {
		if time.Since(begun) >= lasting {
			pos.failures, pos.idle = 0, 0
		}
	}()
	events := newEventReader(body, w.peer.opts.MaxMessage)
	for {
		e, err := events.next()
		if err != nil {
			return nil, brokenOff(err)
		}
		if e.retry > 0 {
			pos.retry = e.retry
		}
		if e.cut && jsonscan.Valid(e.data, 0) != nil {
			continue // and not passed
		}
		r, err := w.takeEvent(&e, want, about)
		if err != nil {
			return nil, err
		}
		pos.passed(&e)
		if r != nil {
			return r, nil
		}
	}
}

// passed moves the position behind an event. A new id is enough to go on, for servers
// that close the stream while they work, but not to go on without a pause.
func (pos *position) passed(e *event) {
	if e.id != "" && e.id != pos.last || len(e.data) > 0 {
		pos.failures = 0
	}
	if len(e.data) > 0 {
		pos.idle = 0
	}
	if e.id != "" {
		pos.last = e.id
	}
}

// takeEvent takes the message in an event, if there is one. An event that is too
// long fails the request that waits for it; otherwise it is lost.
func (w *httpWire) takeEvent(e *event, want, about mcp.ID) (*mcp.Response, error) {
	switch {
	case e.tooLong && !want.IsZero():
		return nil, ErrMessageTooLong
	case e.tooLong:
		w.deliver(e.unreadable(), about)
		return nil, nil
	case len(e.data) == 0 || !e.isMessage():
		return nil, nil
	}
	return w.take(e.data, want, about), nil
}

// isMessage reports whether the event is of the kind that carries messages.
func (e *event) isMessage() bool { return e.kind == "" || e.kind == "message" }

// attach opens the stream of a session that belongs to no request, or one that was
// broken off, and follows it.
func (w *httpWire) attach(x *exchange, s *clientSession, want, about mcp.ID, pos *position) (*mcp.Response, error) {
	header := s.header(s.negotiated())
	if pos.last != "" {
		header[headerLastEventID] = []string{pos.last}
	}
	res, err := w.peer.get(x.ctx, header)
	s.settle()
	switch {
	case err != nil:
		return nil, brokenOff(err)
	case res.StatusCode == http.StatusOK && isStream(res):
		if want.IsZero() && pos.opened && pos.last == "" {
			w.deliver(mcp.Message{}, about) // what was said meanwhile is lost
		}
		pos.opened = true
		return w.follow(x, res, want, about, pos)
	}
	defer closeBody(res)
	refusal := w.peer.refusal(res)
	refusal.answer = nil // it answers the GET, not the call
	if refusal.Transient() {
		return nil, brokenOff(refusal)
	}
	if want.IsZero() && pos.last != "" && refusal.Status/100 == 4 {
		pos.last = "" // it does not go on from there, but may begin anew
		return nil, brokenOff(refusal)
	}
	if want.IsZero() && refusal.Status == http.StatusNotFound && s.identified() {
		return nil, fmt.Errorf("mcphttp: there is no stream: %w: %w", mcp.ErrSessionLost, refusal)
	}
	return nil, fmt.Errorf("mcphttp: there is no stream: %w: %w", io.ErrUnexpectedEOF, refusal)
}

// comeBack goes on with a stream that has broken off, again and again while it
// brings something new.
func (w *httpWire) comeBack(x *exchange, s *clientSession, want, about mcp.ID, pos *position, broken error) (*mcp.Response, error) {
	for errors.Is(broken, errBrokenOff) && pos.wait(x.ctx, w.peer.opts.ReconnectAttempts) {
		r, err := w.attach(x, s, want, about, pos)
		if r != nil {
			return r, nil
		}
		broken = err
	}
	return nil, broken
}

// The delay before a stream is taken up again: the server's, or firstDelay, and twice as
// much after each failure, up to maxDelay. It is not less than firstDelay, nor, after
// each stream without a message, than twice that, up to idleDelay.
const (
	firstDelay = 500 * time.Millisecond
	idleDelay  = 5 * time.Second
	maxDelay   = 30 * time.Second
)

// wait waits before the next attempt. It reports false if there is to be none.
func (pos *position) wait(ctx context.Context, attempts int) bool {
	if pos.failures >= attempts {
		return false
	}
	delay := max(pos.retry, firstDelay)
	delay = max(delay, min(delay<<min(pos.failures, 8), maxDelay), min(firstDelay<<min(pos.idle, 8), idleDelay))
	pos.failures++
	pos.idle++
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
