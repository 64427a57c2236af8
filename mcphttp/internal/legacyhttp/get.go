// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyhttp

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/pause"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp/internal/endpoint"
	"github.com/go-psi/psi/mcphttp/internal/header"
)

// ServeGet opens the standalone stream of a session, or resumes any of its streams.
func (h *Handler) ServeGet(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(header.Session) == "" {
		endpoint.WriteNotAllowed(w, Methods, "there is no stream without a session; requests are sent with POST")
		return
	}
	if _, ok := endpoint.ChooseFormats(w, r, endpoint.Formats{Stream: true}); !ok {
		return
	}
	s := h.sessionOf(w, r)
	if s == nil {
		return
	}
	defer h.sessions.release(s, r)
	out := h.NewEventWriter(w, r)
	defer out.Close()
	last := r.Header.Get(header.LastEventID)
	if last == "" {
		h.listen(r, s, out, nil)
		return
	}
	name, position, ok := parseEventID(last)
	switch {
	case !ok:
		endpoint.WriteError(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest, "the header %s is not an event of this session", header.LastEventID))
	case name == standaloneStream:
		h.listen(r, s, out, &position)
	default:
		h.resume(r, s, out, name, position)
	}
}

// resume continues the stream of a request after a position.
func (h *Handler) resume(r *http.Request, s *session, out *endpoint.EventWriter, name string, position uint64) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	st := s.streamOf(name)
	if st == nil {
		h.follow(ctx, cancel, s, out, name, position)
		return
	}
	if err := st.attach(ctx, out, position, cancel); err != nil {
		h.finishReplay(out, err)
		return
	}
	defer st.detach(out)
	st.Beat() // sends the head
	defer h.StartHeartbeat(st).Stop()
	defer context.AfterFunc(h.Killed, cancel)()
	<-ctx.Done()
}

// followInterval is how often follow reads the events that another replica has kept.
const followInterval = time.Second

// follow continues a stream that this process does not write: it is done, or another
// replica writes it. It sends the events in the store until the stream ends or none of
// its events is kept any more.
func (h *Handler) follow(ctx context.Context, cancel context.CancelFunc, s *session, out *endpoint.EventWriter, name string, position uint64) {
	position, done, err := s.events.replay(ctx, s.id(), name, position, out)
	h.finishReplay(out, err)
	if err != nil || done || position == 0 || !s.events.shared { // 0: there never was such a stream
		return
	}
	defer context.AfterFunc(h.Closing, cancel)()
	defer context.AfterFunc(s.legacy.Context(), cancel)()
	out.Beat() // sends the head
	defer h.StartHeartbeat(out).Stop()
	for err == nil && !done {
		isAbandoned := s.events.isAbandoned(name) // then what is in the log now is all
		switch position, done, err = s.events.replay(ctx, s.id(), name, position, out); {
		case err != nil || done:
		case isAbandoned:
			err, done = s.events.sendWill(ctx, s.id(), name, out), true
		default:
			err = pause.For(ctx, followInterval)
		}
	}
}

// finishReplay starts the response after a replay, or writes an error if the events are
// not available.
func (h *Handler) finishReplay(out *endpoint.EventWriter, err error) {
	if err == nil {
		out.Start()
		return
	}
	out.Replace(func(w http.ResponseWriter) {
		if errors.Is(err, store.ErrTrimmed) {
			endpoint.WriteError(w, http.StatusNotFound, mcp.Errorf(mcp.CodeInvalidRequest, "the header %s names an event that this session does not have, or not any more", header.LastEventID))
			return
		}
		h.Logger.Warn("mcphttp: events were not replayed", "error", err)
		writeUnavailable(w, mcp.ID{}, mcp.Errorf(mcp.CodeInternalError, "the events could not be read; try again later"))
	})
}

// standaloneStream is the name of the stream of a session that belongs to no request. All
// replicas write it.
const standaloneStream = "0"

// listenerGrace is how long a session goes on to listen for changes after the client of
// its standalone stream has gone, so that a client which resumes it has missed nothing.
const listenerGrace = time.Minute

// standalone is the standalone stream of a session and its listeners. The current
// listener receives changes, with or without a client. The next one has been started, and
// replaces it when its subscription is in place; of several, the last one started wins.
// So a client that reconnects misses nothing. The lock of the session guards it.
type standalone struct {
	stream  *stream   // nil before the first GET
	current *listener // nil if there is none
	next    *listener // nil if there is none
}

// A listener subscribes to the changes that the standalone stream of a session tells of.
// It is a GET or, with isDetached, what goes on after its client has gone.
type listener struct {
	handler    *Handler
	session    *session
	stream     *stream
	request    *http.Request // the GET
	isDetached bool          // there is no client
	position   *uint64       // the client resumes the stream from here; nil if it starts

	out       *endpoint.EventWriter // nil if it is detached
	ctx       context.Context
	cancel    context.CancelCauseFunc
	heartbeat *endpoint.Heartbeat
	hasLeft   atomic.Bool // the client has gone
}

func (h *Handler) newListener(r *http.Request, s *session) *listener {
	l := &listener{handler: h, session: s, request: r}
	l.ctx, l.cancel = context.WithCancelCause(endpoint.DetachedContext(r, new(endpoint.Values)))
	return l
}

// listen serves the standalone stream of a session until another GET takes it over, or
// the client, the session or the server ends. It writes the head of the response when its
// subscription is in place; the GET before it goes on until then.
func (h *Handler) listen(r *http.Request, s *session, out *endpoint.EventWriter, position *uint64) {
	l := h.newListener(r, s)
	l.out, l.position = out, position
	s.addListener(l)
	defer s.removeListener(l)
	defer l.finish()
	h.sessions.announce(r.Context(), s, h.sessions.replica)
	stopConnection := context.AfterFunc(r.Context(), l.leave)
	defer stopConnection()
	defer endpoint.AfterExpiry(r, l.leave)()
	s.legacy.Listen(l.ctx, endpoint.OriginOf(r), l.stream, l.ready)
}

// finish ends the response. A GET that never had the stream ends as if it had got it.
func (l *listener) finish() {
	if l.heartbeat != nil {
		l.heartbeat.Stop()
	}
	l.stream.detach(l.out)
	l.out.Start()
}

// ready is called when the subscription is in place. It takes the stream over from
// the listener before, which ends. If there was none and the client resumes the stream,
// the client may have missed anything.
func (l *listener) ready() {
	before, err := l.stream.takeOver(l)
	switch {
	case errors.Is(err, errSuperseded): // it has been cancelled
		return
	case err != nil:
		l.handler.finishReplay(l.out, err)
		l.cancel(err)
		return
	case !l.isDetached:
		l.handler.BeatNow(l.stream) // the head, with a comment: some proxies hold it back until there is a body
		l.heartbeat = l.handler.StartHeartbeat(l.stream)
	}
	if before != nil {
		before.cancel(mcp.ErrClosed)
	} else if l.position != nil {
		l.session.legacy.Missed(l.ctx)
	}
}

var errSuperseded = errors.New("mcphttp: a newer GET has the stream")

// takeOver makes l the current listener, attaches its response to the stream, and
// returns the listener before, nil if there was none. The lock of the stream is held
// meanwhile, so that an older GET cannot attach after a newer one.
func (st *stream) takeOver(l *listener) (before *listener, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if l.ctx.Err() != nil {
		return nil, errSuperseded
	}
	if l.position != nil {
		if err := st.replayLocked(l.ctx, l.out, *l.position); err != nil {
			return nil, err
		}
	}
	before, ok := l.session.promoteListener(l)
	if !ok {
		return nil, errSuperseded
	}
	if !l.isDetached {
		st.dropClientLocked()
		st.out, st.onDetach = l.out, l.leave
		if l.position == nil {
			st.isPrimed = false // the client knows no event
		}
		st.registerLocked()
		_ = st.primeLocked(l.ctx) // the next event tries again
	}
	return before, nil
}

// leave is called when the client has gone, or its authentication has expired. The
// listener is replaced by a detached one, which keeps events for the client to resume.
func (l *listener) leave() {
	if l.hasLeft.Swap(true) {
		return
	}
	l.stream.detach(l.out)
	after := l.handler.newListener(l.request, l.session)
	after.isDetached = true
	if !l.session.replaceListener(l, after) {
		l.cancel(context.Canceled)
		return
	}
	go after.runDetached(l) // for listenerGrace, or until the session or the server ends
}

// runDetached listens in place of the listener before, which ends when the subscription is
// in place.
func (l *listener) runDetached(before *listener) {
	defer before.cancel(context.Canceled)
	defer l.handler.sessions.release(l.session, nil)
	defer l.handler.Requests.Leave()
	defer l.session.removeListener(l)
	defer time.AfterFunc(listenerGrace, func() { l.cancel(nil) }).Stop()
	l.session.legacy.Listen(l.ctx, endpoint.OriginOf(l.request), l.stream, l.ready)
}

// addListener makes l the next listener, in place of another one. The current one goes
// on.
func (s *session) addListener(l *listener) {
	s.mu.Lock()
	superseded := s.standalone.next
	s.setNextLocked(l)
	s.mu.Unlock()
	if superseded != nil {
		superseded.cancel(mcp.ErrClosed)
	}
}

func (s *session) setNextLocked(l *listener) {
	if s.standalone.stream == nil {
		s.standalone.stream = &stream{session: s, name: standaloneStream, opts: &l.handler.opts}
	}
	l.stream, s.standalone.next = s.standalone.stream, l
	if l.handler.Closing.Err() != nil {
		l.cancel(mcp.ErrClosed) // Shutdown may have ended the listeners before this one was added
	}
}

// promoteListener makes l, if it is the next listener, the current one. It returns the
// one before, nil if there was none.
func (s *session) promoteListener(l *listener) (before *listener, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.standalone.next != l {
		return nil, false
	}
	before = s.standalone.current
	s.standalone.current, s.standalone.next = l, nil
	return before, true
}

// replaceListener makes after the next listener if l is the current one and there is no
// next one, and counts it as in flight. It reports whether it did; otherwise l is removed.
func (s *session) replaceListener(l, after *listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.standalone.current != l || s.standalone.next != nil || !l.handler.Requests.Enter() {
		s.removeListenerLocked(l)
		return false
	}
	l.handler.sessions.retain(s)
	s.setNextLocked(after)
	return true
}

// removeListener ends a listener.
func (s *session) removeListener(l *listener) {
	l.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeListenerLocked(l)
}

func (s *session) removeListenerLocked(l *listener) {
	if s.standalone.current == l {
		s.standalone.current = nil
	}
	if s.standalone.next == l {
		s.standalone.next = nil
	}
}

// hasListener reports whether this process sends changes on the standalone stream.
func (s *session) hasListener() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.standalone.current != nil || s.standalone.next != nil
}

// endListeners ends the listeners of the session.
func (s *session) endListeners() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range []*listener{s.standalone.current, s.standalone.next} {
		if l != nil {
			l.cancel(mcp.ErrClosed)
		}
	}
}
