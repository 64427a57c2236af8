// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// streamPosition records how far a stream has been read, so that it can be resumed from there.
type streamPosition struct {
	isOpened bool          // a stream has been open
	lastID   string        // the ID of the last event, "" if there was none
	retry    time.Duration // the delay requested by the server, 0 if there is none
	failures int           // consecutive attempts that delivered nothing new
	idle     int           // consecutive attempts that delivered no message
}

// errBrokenOff is the error of a stream that can be resumed.
var errBrokenOff = fmt.Errorf("mcphttp: the stream broke off before the response: %w", io.ErrUnexpectedEOF)

func brokenOff(why error) error {
	if why == io.EOF { //nolint:errorlint // readers return it bare
		return errBrokenOff
	}
	return fmt.Errorf("%w: %w", errBrokenOff, why)
}

// usefulLifetime is how long a stream must have been open to count as a success even if it
// delivered nothing.
const usefulLifetime = 10 * time.Second

// readStream reads a stream until the response to the request want, or until its end if
// want is zero, and delivers all other messages. After the response, the rest of the stream
// is read in the background.
func (w wire) readStream(scope *callScope, res *http.Response, want, about mcp.ID, pos *streamPosition) (*transport.Message, error) {
	r, err := w.readEvents(res.Body, want, about, pos)
	if r != nil {
		scope.drain(res)
		return r, nil
	}
	closeBody(res)
	return nil, err
}

func (w wire) readEvents(body io.Reader, want, about mcp.ID, pos *streamPosition) (*transport.Message, error) {
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
			continue // the server will send it again
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

// advance moves the position past an event. A new ID alone counts as something new, for
// servers that close the stream while they work, but not as a message, so the delay before
// the next attempt still grows, up to idleDelay.
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
// request want. An event that is too long fails that request. If want is zero, the event is
// reported to the receiver instead.
func (w wire) handleEvent(e *event, want, about mcp.ID) (*transport.Message, error) {
	switch {
	case e.isTooLong && !want.IsZero():
		return nil, ErrMessageTooLong
	case e.isTooLong:
		m := e.unreadable()
		m.About = about
		w.deliver(&m)
		return nil, nil
	case len(e.data) == 0 || !e.isMessage():
		return nil, nil
	}
	return w.deliverAll(e.data, want, about), nil
}

// isMessage reports whether the event is of the type that carries messages.
func (e *event) isMessage() bool { return e.kind == "" || e.kind == "message" }
