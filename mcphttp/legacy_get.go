// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/header"
	"github.com/go-psi/psi/mcp"
)

// serveGet opens the standalone stream of a session, or resumes any of its streams.
func (h *legacyHandler) serveGet(w http.ResponseWriter, r *http.Request) {
	if h.Options.Sessions.Stateless {
		writeStateless(w)
		return
	}
	if r.Header.Get(header.Session) == "" {
		writeNotAllowed(w, methods, "there is no stream without a session; requests are sent with POST")
		return
	}
	if _, ok := chooseFormats(w, r, formats{Stream: true}); !ok {
		return
	}
	about := help{}
	if name, _, ok := parseEventID(r.Header.Get(header.LastEventID)); ok && !isStandalone(name) && processOf(name) != "" {
		about = help{isHelp: true, process: processOf(name)}
	}
	s := h.sessionOf(w, r, nil, about)
	if s == nil {
		return
	}
	defer h.sessions.release(s, r)
	if h.sessions.peers != nil && !about.isHelp && !h.sessions.extend(r.Context(), s) { // a former owner learns it here
		writeUnavailable(w, mcp.ID{}, errMoving)
		return
	}
	h.get(w, r, s)
}

// get opens or resumes a stream of a session in this process.
func (h *legacyHandler) get(w http.ResponseWriter, r *http.Request, s *session) {
	out := h.newEventWriter(w, r)
	defer out.Close()
	last := r.Header.Get(header.LastEventID)
	if last == "" {
		h.listen(r, s, out, nil)
		return
	}
	name, position, ok := parseEventID(last)
	switch {
	case !ok:
		writeError(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest, "the header %s is not an event of this session", header.LastEventID))
	case isStandalone(name):
		h.listen(r, s, out, &eventPlace{name, position})
	default:
		h.resume(r, s, out, name, position)
	}
}

// eventPlace is where a client resumes a stream.
type eventPlace struct {
	stream   string
	position uint64
}

// resume continues the stream of a request after a position.
func (h *legacyHandler) resume(r *http.Request, s *session, out *eventWriter, name string, position uint64) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	st := s.streamOf(name)
	if st == nil { // it has ended
		events, ok := h.sessions.kept.after(s, name, position)
		if !ok {
			out.Replace(writeTrimmed)
			return
		}
		_ = replay(out, name, events) // a disconnected client needs none
		out.Start()
		return
	}
	if st.attach(out, position, func() { cancel(nil) }) != nil {
		out.Replace(writeTrimmed)
		return
	}
	defer st.detach(out)
	st.Beat() // sends the response header
	f := &inFlight{cancel: cancel, response: st}
	h.InFlight.add(f)
	defer h.InFlight.remove(f)
	<-ctx.Done()
}

// standaloneStream is the number of the stream of a session that belongs to no request.
const standaloneStream = 0

// isStandalone reports whether a stream belongs to no request.
func isStandalone(name string) bool {
	number, _, _ := strings.Cut(name, ".")
	return number == strconv.Itoa(standaloneStream)
}

// listenerGrace is how long a session continues to listen for changes after the client of
// its standalone stream has disconnected, so that a client that resumes the stream misses
// nothing.
const listenerGrace = time.Minute

// standalone is the standalone stream of a session and its listeners. The current listener
// receives changes, with or without a client. The next listener has been started and
// replaces the current one when its subscription is in place, so that a client that
// reconnects misses nothing. If several are started, the last one wins. standalone is
// guarded by the lock of the session.
type standalone struct {
	stream  *stream   // nil before the first GET
	current *listener // nil if there is none
	next    *listener // nil if there is none
}

// A listener subscribes to the changes that are sent on the standalone stream of a session.
// It belongs to a GET or, if isDetached, continues after the client of the GET has disconnected.
type listener struct {
	handler    *legacyHandler
	session    *session
	stream     *stream
	request    *http.Request // the GET
	isDetached bool          // there is no client
	place      *eventPlace   // where the client resumes the stream; nil for a new stream

	out       *eventWriter // nil if it is detached
	ctx       context.Context
	cancel    context.CancelCauseFunc
	heartbeat inFlight
	hasLeft   atomic.Bool // the client has disconnected, or its authentication has expired
}

func (h *legacyHandler) newListener(r *http.Request, s *session) *listener {
	l := &listener{handler: h, session: s, request: r}
	l.ctx, l.cancel = context.WithCancelCause(detachedContext(r, new(httpValues)))
	return l
}

// listen serves the standalone stream of a session until another GET takes it over, the
// client disconnects, or the session or the server ends. It writes the response header when
// its subscription is in place; until then, the previous GET continues.
func (h *legacyHandler) listen(r *http.Request, s *session, out *eventWriter, place *eventPlace) {
	l := h.newListener(r, s)
	l.out, l.place = out, place
	s.addListener(l)
	defer s.removeListener(l)
	defer l.finish()
	stopConnection := context.AfterFunc(r.Context(), l.detachClient)
	defer stopConnection()
	defer afterExpiry(r, l.detachClient)()
	s.legacy.Listen(l.ctx, originOf(r), l.stream, l.ready)
}

// finish ends the response. A GET that never took over the stream ends with an empty stream.
func (l *listener) finish() {
	l.handler.InFlight.remove(&l.heartbeat)
	l.stream.detach(l.out)
	l.out.Start()
}

// ready is called when the subscription is in place. It takes over the stream from the
// previous listener, which ends. If there was none and the client resumes the stream, or if
// the session was at another replica, the client is notified of everything, because it may
// have missed changes.
func (l *listener) ready() {
	before, err := l.stream.takeOver(l)
	switch {
	case errors.Is(err, errSuperseded): // it has been cancelled
		return
	case err != nil:
		l.out.Replace(writeTrimmed)
		l.cancel(err)
		return
	case !l.isDetached:
		l.handler.beatNow(l.stream) // the header, with a comment: some proxies hold it back until there is a body
		l.heartbeat.response = l.stream
		l.handler.InFlight.add(&l.heartbeat)
	}
	hasMoved := !l.isDetached && l.handler.sessions.tookOver(l.session)
	if before != nil {
		before.cancel(mcp.ErrClosed)
	}
	if hasMoved || before == nil && l.place != nil {
		l.session.legacy.Missed(l.ctx)
	}
}

var errSuperseded = errors.New("mcphttp: a newer GET has the stream")

// takeOver makes l the current listener, attaches its response to the stream, and returns
// the previous listener, or nil if there was none. It holds the lock of the stream
// throughout, so that an older GET cannot attach after a newer one. The new listener starts
// before the previous one stops: a change in between may be sent twice, but is not lost.
func (st *stream) takeOver(l *listener) (before *listener, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if l.ctx.Err() != nil {
		return nil, errSuperseded
	}
	if l.place != nil && l.place.stream == st.name { // otherwise another replica has the events
		if err := st.replayLocked(l.out, l.place.position); err != nil {
			return nil, err
		}
	}
	before, ok := l.session.promoteListener(l)
	if !ok {
		return nil, errSuperseded
	}
	if !l.isDetached {
		st.dropClientLocked()
		st.out, st.onDetach, st.broken = l.out, l.detachClient, nil
		if l.place == nil || l.place.stream != st.name {
			st.isPrimed = false // the client has received no event
		}
		st.registerLocked()
		_ = st.primeLocked() // the next event tries again
	}
	return before, nil
}

// detachClient is called when the client has disconnected or its authentication has expired. It
// replaces the listener by a detached one, which keeps events for the client to resume.
func (l *listener) detachClient() {
	if l.hasLeft.Swap(true) {
		return
	}
	l.stream.detach(l.out)
	if headerSize(l.request) > maxDetachedHeader {
		l.cancel(context.Canceled)
		return
	}
	after := l.handler.newListener(l.request, l.session)
	after.isDetached = true
	if !l.session.replaceListener(l, after) {
		l.cancel(context.Canceled)
		return
	}
	go after.runDetached(l) // for listenerGrace, or until the session or the server ends
}

// maxDetachedHeader limits the header of a GET whose client has disconnected, in bytes: a
// detached listener keeps the request, because handlers may read its header. A client with
// a larger one is told, when it reconnects, that everything may have changed.
const maxDetachedHeader = 16 << 10

// headerSize returns the size of the header of a request, without separators.
func headerSize(r *http.Request) int {
	size := len(r.RequestURI) + len(r.Host)
	for key, values := range r.Header {
		for _, v := range values {
			size += len(key) + len(v)
		}
	}
	return size
}

// runDetached listens in place of the previous listener, which ends when the subscription
// is in place.
func (l *listener) runDetached(before *listener) {
	defer before.cancel(context.Canceled)
	defer l.handler.sessions.release(l.session, nil)
	defer l.handler.Requests.Leave()
	defer l.session.removeListener(l)
	defer time.AfterFunc(listenerGrace, func() { l.cancel(nil) }).Stop()
	l.session.legacy.Listen(l.ctx, originOf(l.request), l.stream, l.ready)
}

// addListener makes l the next listener and cancels the next listener that it replaces, if
// any. The current listener continues.
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
		s.standalone.stream = &stream{session: s, name: l.handler.sessions.streamName(standaloneStream), sessions: l.handler.sessions}
	}
	l.stream, s.standalone.next = s.standalone.stream, l
	if l.handler.Closing.Err() != nil {
		l.cancel(mcp.ErrClosed) // Shutdown may have ended the listeners before this one was added
	}
}

// promoteListener makes l the current listener if it is the next one, and reports whether
// it did. It returns the previous listener, or nil if there was none.
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

// replaceListener makes after the next listener, and counts it as in flight, if l is the
// current listener, there is no next one and the server is not shutting down. It reports
// whether it did; otherwise it removes l.
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

// removeListener cancels and removes a listener.
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

// endListeners cancels the listeners of the session.
func (s *session) endListeners() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range []*listener{s.standalone.current, s.standalone.next} {
		if l != nil {
			l.cancel(mcp.ErrClosed)
		}
	}
}
