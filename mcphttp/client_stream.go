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
	"github.com/go-psi/psi/internal/pause"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// streamPosition is how far a stream has been read, to resume it from there.
type streamPosition struct {
	isOpened bool          // there has been a stream
	lastID   string        // of the last event, "" if there was none
	retry    time.Duration // the delay that the server asks for, 0 if it does not
	failures int           // attempts in a row that brought nothing new
	idle     int           // attempts in a row that brought no message
}

// errBrokenOff is the error of a stream that can be resumed.
var errBrokenOff = fmt.Errorf("mcphttp: the stream broke off before the response: %w", io.ErrUnexpectedEOF)

func brokenOff(why error) error {
	if why == io.EOF { //nolint:errorlint // readers return it bare
		return errBrokenOff
	}
	return fmt.Errorf("%w: %w", errBrokenOff, why)
}

// usefulLifetime is how long a stream must have lived to count as a success even if it
// brought nothing.
const usefulLifetime = 10 * time.Second

// readStream reads a stream until the response to the request want, or until its end if
// want is zero, and delivers all other messages. The rest of a stream after the response
// is read in the background.
func (w *httpWire) readStream(scope *callScope, res *http.Response, want, about mcp.ID, pos *streamPosition) (*transport.Message, error) {
	r, err := w.readEvents(res.Body, want, about, pos)
	if r != nil {
		scope.drain(res)
		return r, nil
	}
	closeBody(res)
	return nil, err
}

func (w *httpWire) readEvents(body io.Reader, want, about mcp.ID, pos *streamPosition) (*transport.Message, error) {
	start := time.Now()
	defer func() {
		if time.Since(start) >= usefulLifetime {
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
		if e.isCut && jsonscan.Valid(e.data, 0) != nil {
			continue // it will come again
		}
		r, err := w.handleEvent(&e, want, about)
		if err != nil {
			return nil, err
		}
		pos.advance(&e)
		if r != nil {
			return r, nil
		}
	}
}

// advance moves the position past an event. A new ID alone counts as new, for servers that
// close the stream while they work, but not as a message: the next attempt has to wait.
func (pos *streamPosition) advance(e *event) {
	if e.id != "" && e.id != pos.lastID || len(e.data) > 0 {
		pos.failures = 0
	}
	if len(e.data) > 0 {
		pos.idle = 0
	}
	if e.id != "" {
		pos.lastID = e.id
	}
}

// handleEvent delivers the message in an event, or returns it if it is the response to the
// request want. An event that is too long fails that request, or is reported if want is
// zero.
func (w *httpWire) handleEvent(e *event, want, about mcp.ID) (*transport.Message, error) {
	switch {
	case e.isTooLong && !want.IsZero():
		return nil, ErrMessageTooLong
	case e.isTooLong:
		w.deliver(e.unreadable(), about)
		return nil, nil
	case len(e.data) == 0 || !e.isMessage():
		return nil, nil
	}
	return w.deliverAll(e.data, want, about), nil
}

// isMessage reports whether the event is of the type that carries messages.
func (e *event) isMessage() bool { return e.kind == "" || e.kind == "message" }

// openStream opens the standalone stream of a session, or a stream that has broken off,
// and reads it.
func (w *httpWire) openStream(scope *callScope, s *clientSession, want, about mcp.ID, pos *streamPosition) (*transport.Message, error) {
	header := s.header(s.negotiatedVersion())
	if pos.lastID != "" {
		header[headerLastEventID] = []string{pos.lastID}
	}
	res, err := w.peer.get(scope.ctx, header)
	s.setStreamAnswered()
	switch {
	case err != nil:
		return nil, brokenOff(err)
	case res.StatusCode == http.StatusOK && isStream(res):
		if want.IsZero() && pos.isOpened && pos.lastID == "" {
			w.deliver(transport.Message{}, about) // what was sent meanwhile is lost
		}
		pos.isOpened = true
		return w.readStream(scope, res, want, about, pos)
	}
	defer closeBody(res)
	return nil, w.streamError(s, w.peer.readRefusal(res), want, pos)
}

// streamError returns what it means that the server refuses to open a stream.
func (w *httpWire) streamError(s *clientSession, refusal *StatusError, want mcp.ID, pos *streamPosition) error {
	refusal.answer = nil // it answers the GET, not the call
	isStandalone := want.IsZero()
	switch {
	case refusal.Transient():
		return brokenOff(refusal)
	case isStandalone && pos.lastID != "" && refusal.Status/100 == 4:
		pos.lastID = "" // it cannot be resumed, but may start anew
		return brokenOff(refusal)
	case isStandalone && refusal.Status == http.StatusNotFound && s.hasID():
		return fmt.Errorf("mcphttp: there is no stream: %w: %w", transport.ErrSessionLost, refusal)
	}
	return fmt.Errorf("mcphttp: there is no stream: %w: %w", io.ErrUnexpectedEOF, refusal)
}

// reconnect resumes a stream that has broken off, again and again while that brings
// something new.
func (w *httpWire) reconnect(scope *callScope, s *clientSession, want, about mcp.ID, pos *streamPosition, broken error) (*transport.Message, error) {
	for errors.Is(broken, errBrokenOff) && pos.waitToReconnect(scope.ctx, w.peer.opts.ReconnectAttempts) {
		if t := mcp.ClientTraceFromContext(scope.ctx); t != nil && t.Reconnect != nil {
			t.Reconnect(mcp.ReconnectInfo{Kind: "stream", Err: broken})
		}
		r, err := w.openStream(scope, s, want, about, pos)
		if r != nil {
			return r, nil
		}
		broken = err
	}
	return nil, broken
}

// The delay before reconnecting is the server's or firstDelay, and doubles after each
// failure, up to maxDelay. It is at least firstDelay and, after streams without a message,
// doubles from there, up to idleDelay.
const (
	firstDelay = 500 * time.Millisecond
	idleDelay  = 5 * time.Second
	maxDelay   = 30 * time.Second
)

// waitToReconnect waits before the next attempt. It reports false if there must be none.
func (pos *streamPosition) waitToReconnect(ctx context.Context, attempts int) bool {
	if pos.failures >= attempts {
		return false
	}
	delay := max(pos.retry, firstDelay)
	delay = max(delay, min(delay<<min(pos.failures, 8), maxDelay), min(firstDelay<<min(pos.idle, 8), idleDelay))
	pos.failures++
	pos.idle++
	return pause.For(ctx, delay) == nil
}
