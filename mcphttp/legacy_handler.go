// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-psi/psi/internal/bufpool"
	"github.com/go-psi/psi/internal/header"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/server"
	"github.com/go-psi/psi/mcp"
)

// A legacyHandler serves the requests of older revisions that arrive at an endpoint. Use
// newLegacyHandler to create one.
type legacyHandler struct {
	*endpoint

	sessions *sessions
}

func newLegacyHandler(e *endpoint) *legacyHandler {
	return &legacyHandler{endpoint: e, sessions: newSessions(e)}
}

// Sessions returns the sessions that are open in this process, in no particular order.
func (h *legacyHandler) Sessions() []*mcp.Session {
	all := h.sessions.all()
	public := make([]*mcp.Session, len(all))
	for i, s := range all {
		public[i] = s.legacy.Public()
	}
	return public
}

// endStreams ends the standalone streams of all sessions without waiting for them.
func (h *legacyHandler) endStreams() { h.sessions.endListeners() }

// closeSessions ends all sessions in this process. No sessions are opened after it, even by
// requests that are still in flight.
func (h *legacyHandler) closeSessions() { h.sessions.closeAll() }

// leftovers describes what the handler still holds for sessions. It returns "" if it holds
// nothing, as must be the case after closeSessions.
func (h *legacyHandler) leftovers() string { return h.sessions.leftovers() }

// methods lists the HTTP methods that the endpoint serves.
const methods = "POST, GET, DELETE, OPTIONS"

// servePost serves a message, or a batch, which only revision 2025-03-26 supports. Its body is
// body.
func (h *legacyHandler) servePost(w http.ResponseWriter, r *http.Request, body []byte, c *server.Call) {
	switch {
	case c.IsHandshake():
		h.serveInitialize(w, r, c)
		return
	case c.IsBatch() && r.Header.Get(header.Session) == "" && !h.Options.Sessions.Stateless:
		writeNoBatch(w)
		return
	}
	about := helpOf(c)
	s := h.sessionOf(w, r, body, about)
	if s == nil {
		return
	}
	defer h.sessions.release(s, r)
	h.post(w, r, s, c)
	if h.sessions.peers != nil && about == (help{isHelp: true}) {
		h.forwardToFormer(nowhere{}, r, h.sessions.formerOf(s), s.id(), body)
	}
}

// post serves a message of a session in this process.
func (h *legacyHandler) post(w http.ResponseWriter, r *http.Request, s *session, c *server.Call) {
	switch err := needsSession(c); {
	case c.IsBatch() && !s.legacy.Batches():
		writeNoBatch(w)
	case s.isTransient && err != nil:
		writeMessage(w, http.StatusOK, core.AppendError(nil, c.ID(), err))
	case c.IsRequest(), c.IsBatch():
		h.answer(w, r, &reply{session: s, call: c})
	default:
		s.legacy.Enter(detachedContext(r, new(httpValues)), c)
		c.Serve(noStream{})
		writeAccepted(w)
	}
}

func writeNoBatch(w http.ResponseWriter) {
	writeError(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest, "a message must be an object, not an array"))
}

// serveIn serves a request of a session in this process, for another replica.
func (h *legacyHandler) serveIn(w http.ResponseWriter, r *http.Request, s *session, body []byte) {
	switch r.Method {
	case http.MethodGet:
		h.get(w, r, s)
	case http.MethodDelete:
		h.delete(w, r, s)
	default:
		from := originOf(r)
		from.IsLegacy = true // as the other replica has found
		c := h.Server.Accept(body, from)
		if c.Err() != nil {
			writeRefusal(w, http.StatusBadRequest, c)
			return
		}
		h.post(w, r, s, c)
	}
}

// serveInitialize opens a session, unless the request names one that its sender has already.
// An ID that names none is ignored, because there are clients that repeat the ID of a session
// lost in a restart and never send an initialize without it. The new session has a new ID and
// belongs to the sender of the request, whoever had the old one.
func (h *legacyHandler) serveInitialize(w http.ResponseWriter, r *http.Request, c *server.Call) {
	id := r.Header.Get(header.Session)
	if id == "" || h.Options.Sessions.Stateless {
		h.initialize(w, r, c)
		return
	}
	if s := h.sessions.findLocal(r, id); s != nil {
		defer h.sessions.release(s, r)
		h.answer(w, r, &reply{session: s, call: c}) // the session refuses it
		return
	}
	switch known, err := h.sessions.isKnown(r, id); {
	case err != nil:
		writeUnavailable(w, c.ID(), err)
	case known:
		writeMessage(w, http.StatusOK, core.AppendError(nil, c.ID(), server.ErrInitialized))
	default:
		h.initialize(w, r, c)
	}
}

// initialize opens a session, and keeps it if the handshake succeeds.
func (h *legacyHandler) initialize(w http.ResponseWriter, r *http.Request, c *server.Call) {
	if h.Options.Sessions.Stateless {
		s := h.sessions.transient(r, true)
		defer h.sessions.release(s, r)
		h.answer(w, r, &reply{session: s, call: c})
		return
	}
	s, err := h.sessions.open(r)
	if err != nil {
		writeUnavailable(w, c.ID(), err)
		return
	}
	defer h.sessions.release(s, r)
	w.Header().Set(header.Session, s.id())
	re := &reply{session: s, call: c}
	h.answer(w, r, re)
	if !re.isOpened { // the client does not know the session
		s.legacy.Close()
	}
}

// sessionOf returns the session that a request names, if this process serves it; the caller
// must release it. Otherwise sessionOf writes the response, or lets another replica write it,
// and returns nil.
func (h *legacyHandler) sessionOf(w http.ResponseWriter, r *http.Request, body []byte, about help) *session {
	id := r.Header.Get(header.Session)
	if id == "" && !h.Options.Sessions.Stateless {
		writeError(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest,
			"the request belongs to no session and names no version for itself: send initialize first and repeat its %s, or name the version in params._meta", header.Session))
		return nil
	}
	if v := r.Header.Get(header.Version); v != "" && revision.Parse(v) == revision.None {
		writeError(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest, "the header %s is %.80q, which no session can speak; expected one of %v", header.Version, v, mcp.LegacyVersions()))
		return nil
	}
	switch {
	case h.Options.Sessions.Stateless: // whatever session ID the platform has chosen
		return h.sessions.transient(r, false)
	case h.sessions.peers != nil:
		return h.route(w, r, id, body, about)
	}
	s := h.sessions.findLocal(r, id)
	if s == nil {
		writeUnknown(w)
	}
	return s
}

// writeUnavailable refuses a request that may succeed later.
func writeUnavailable(w http.ResponseWriter, id mcp.ID, err error) {
	w.Header().Set("Retry-After", "60")
	writeMessage(w, http.StatusServiceUnavailable, core.AppendError(nil, id, err))
}

// serveDelete ends a session.
func (h *legacyHandler) serveDelete(w http.ResponseWriter, r *http.Request) {
	if h.Options.Sessions.Stateless {
		writeStateless(w)
		return
	}
	if r.Header.Get(header.Session) == "" {
		writeNotAllowed(w, methods, "there is nothing to delete: the request names no session")
		return
	}
	s := h.sessionOf(w, r, nil, help{})
	if s == nil {
		return
	}
	defer h.sessions.release(s, r)
	h.delete(w, r, s)
}

func (h *legacyHandler) delete(w http.ResponseWriter, r *http.Request, s *session) {
	if err := h.sessions.end(r.Context(), s); err != nil {
		writeUnavailable(w, mcp.ID{}, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// A reply is the response to a call of a session.
type reply struct {
	inFlight

	session  *session
	call     *server.Call
	values   httpValues
	stream   stream // of the response
	isOpened bool   // the call is a handshake that has succeeded
	isAbsent bool   // it has no client; guarded by sessions.mu
}

// answer serves a call and writes the response: as JSON if nothing was sent before it, and
// otherwise at the end of an event stream. If the client leaves, the call goes on, but its
// connection is closed.
func (h *legacyHandler) answer(w http.ResponseWriter, r *http.Request, c *reply) {
	may, ok := chooseFormats(w, r, formats{JSON: true, Stream: true})
	if !ok {
		return
	}
	buf := bufpool.Get()
	defer buf.Put()
	ctx := detachedContext(r, &c.values)
	c.session.legacy.Enter(ctx, c.call)
	out := h.newEventWriter(w, r)
	defer out.Close()
	defer h.sessions.setAbsent(c, false)
	st := &c.stream
	st.session, st.call, st.sessions, st.out = c.session, c, h.sessions, out
	defer context.AfterFunc(r.Context(), func() {
		if may.Stream {
			st.detach(out) // does nothing if the client has come back already
		} else {
			h.sessions.setAbsent(c, true)
		}
		out.Disconnect()
	})()
	if !may.Stream {
		buf.B = c.serve(buf.B, noStream{})
		err := h.finishCall(ctx, out, c)
		out.Replace(func(w http.ResponseWriter) { c.writeJSON(ctx, w, buf.B, err) })
		return
	}
	c.values.Stream = st
	c.response = st
	h.InFlight.add(&c.inFlight)
	defer h.InFlight.remove(&c.inFlight) // even if the handler panics
	buf.B = c.serve(buf.B, st)
	h.InFlight.remove(&c.inFlight)
	err := h.finishCall(ctx, out, c)
	if (may.JSON || err != nil || c.lacksScope()) && st.closeUnused() {
		out.Replace(func(w http.ResponseWriter) { c.writeJSON(ctx, w, buf.B, err) })
		return
	}
	st.finish(ctx, buf.B)
}

// serve serves the call and appends the response to dst.
func (c *reply) serve(dst []byte, out server.Sender) []byte {
	c.call.Serve(out)
	return c.call.Append(dst)
}

// Limits on the calls that go on without a client, for one session and for one caller. Each
// keeps a goroutine and its arguments.
const (
	maxAbsent          = 32
	maxAbsentPerCaller = 128
)

var errAbsent = mcp.Errorf(mcp.CodeInternalError, "too many calls go on without a client that waits for them")

// setAbsent records whether a call has lost its client. It cancels the call if there are too
// many of them.
func (ss *sessions) setAbsent(c *reply, isAbsent bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if c.isAbsent == isAbsent {
		return
	}
	c.isAbsent = isAbsent
	if !isAbsent {
		c.session.absent--
		c.session.caller.absent--
		return
	}
	c.session.absent++
	c.session.caller.absent++
	if c.session.isTransient || c.session.absent > maxAbsent || c.session.caller.absent > maxAbsentPerCaller {
		c.call.Cancel(errAbsent)
	}
}

// finishCall saves what the call may have changed in its session before the client receives
// the response, because another replica may have to continue the session. If that fails, the
// client is asked to repeat the request, which is harmless, unless the call is a batch. If a
// handshake fails, the client receives no session.
func (h *legacyHandler) finishCall(ctx context.Context, out *eventWriter, c *reply) (err error) {
	if c.call.ChangesSession() && c.call.Err() == nil {
		err = h.sessions.save(ctx, c.session, c.call.IsHandshake())
	}
	c.isOpened = c.call.IsHandshake() && err == nil && c.session.legacy.Initialized()
	if !c.session.legacy.Initialized() || c.call.IsHandshake() && err != nil {
		out.DeleteHeader(header.Session)
	}
	if c.call.IsBatch() {
		return nil
	}
	return err
}

// writeJSON writes the response to a call, or err if the call must be repeated, or only
// acknowledges the call if it was cancelled.
func (c *reply) writeJSON(ctx context.Context, w http.ResponseWriter, message []byte, err error) {
	switch {
	case err != nil:
		writeUnavailable(w, c.call.ID(), err)
		return
	case len(message) == 0:
		writeAccepted(w)
		return
	}
	status := http.StatusOK
	if setErrorHeaders(ctx, w.Header(), c.call.Err()) == http.StatusForbidden {
		status = http.StatusForbidden // legacy clients drop the message of any other error status
	}
	writeMessage(w, status, message)
}

// lacksScope reports whether the handler refused the call because the caller lacks a scope.
func (c *reply) lacksScope() bool {
	_, ok := errors.AsType[*mcp.ScopeError](c.call.Err())
	return ok
}

// noStream is the [server.Sender] of a client that does not accept streams. Only the
// response can be sent to it.
type noStream struct{}

// Send implements [server.Sender].
func (noStream) Send(context.Context, []byte) error { return mcp.ErrNotDelivered }

// mayServeLate reports whether serveLate may accept a request that arrives during Shutdown.
func (h *legacyHandler) mayServeLate(r *http.Request) bool {
	return r.Method == http.MethodPost && r.Header.Get(header.Session) != "" && h.Killed.Err() == nil
}

// serveLate accepts messages during Shutdown that help requests in flight to finish:
// answers to their questions, and cancellations. It refuses all others.
func (h *legacyHandler) serveLate(w http.ResponseWriter, r *http.Request, body []byte) {
	c := h.Server.Accept(body, originOf(r))
	if h.mayServeLate(r) && !c.IsModern() && helpOf(c).isHelp {
		if s := h.sessions.findLocal(r, r.Header.Get(header.Session)); s != nil {
			defer h.sessions.release(s, r)
			h.post(w, r, s, c)
			return
		}
	}
	writeError(w, http.StatusServiceUnavailable, errShutdown)
}
