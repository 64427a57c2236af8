// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/go-psi/psi/internal/bufpool"
	"github.com/go-psi/psi/internal/legacyserver"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// serveLegacy serves one message of the legacy era.
func (h *Handler) serveLegacy(w http.ResponseWriter, r *http.Request, c *legacyCall) {
	if legacyserver.IsInitialize(&c.message) && r.Header.Get(headerSession) == "" {
		h.initialize(w, r, c)
		return
	}
	if c.session = h.sessionOf(w, r); c.session == nil {
		return
	}
	defer h.sessions.release(c.session, r)
	if c.message.IsRequest() {
		h.answer(w, r, c)
		return
	}
	if err := h.sessions.relay(r.Context(), c.session, &c.message); err != nil {
		writeUnavailable(w, mcp.ID{}, err)
		return
	}
	c.accept(detachedContext(r, &c.values))
	c.call.Serve(noStream{})
	writeAccepted(w)
}

// initialize opens a session, and keeps it if the handshake succeeds.
func (h *Handler) initialize(w http.ResponseWriter, r *http.Request, c *legacyCall) {
	s, err := h.sessions.open(r)
	if err != nil {
		writeUnavailable(w, c.message.ID, err)
		return
	}
	defer h.sessions.release(s, r)
	w.Header().Set(headerSession, s.id)
	c.session = s
	h.answer(w, r, c)
	if !s.legacy.Initialized() || w.Header().Get(headerSession) == "" { // the client does not know it
		s.legacy.Close()
	}
}

// sessionOf returns the session that a request names; release must follow. If there is
// none, it writes the response and returns nil.
func (h *Handler) sessionOf(w http.ResponseWriter, r *http.Request) *session {
	id := r.Header.Get(headerSession)
	if id == "" {
		writeError(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest,
			"the request belongs to no session and names no version for itself: send initialize first and repeat its %s, or name the version in params._meta", headerSession))
		return nil
	}
	if v := r.Header.Get(headerVersion); v != "" && revision.Parse(v) == revision.None {
		writeError(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest, "the header %s is %.80q, which no session can speak; expected one of %v", headerVersion, v, mcp.LegacyVersions()))
		return nil
	}
	s, err := h.sessions.acquire(r, id)
	switch {
	case err != nil:
		writeUnavailable(w, mcp.ID{}, err)
	case s == nil:
		writeError(w, http.StatusNotFound, mcp.Errorf(mcp.CodeInvalidRequest, "the session is not known, or not any more: start again with initialize"))
	}
	return s
}

// writeUnavailable refuses a request that may succeed later.
func writeUnavailable(w http.ResponseWriter, id mcp.ID, err error) {
	w.Header().Set("Retry-After", "60")
	writeMessage(w, http.StatusServiceUnavailable, core.AppendError(nil, id, err))
}

// serveBatch serves an array of messages, which only revision 2025-03-26 has.
func (h *Handler) serveBatch(w http.ResponseWriter, r *http.Request, body []byte) {
	if r.Header.Get(headerSession) == "" {
		writeError(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest, "a message must be an object, not an array"))
		return
	}
	s := h.sessionOf(w, r)
	if s == nil {
		return
	}
	defer h.sessions.release(s, r)
	if !s.legacy.Batches() {
		writeError(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest, "a message must be an object, not an array"))
		return
	}
	h.answer(w, r, &legacyCall{session: s, batch: body})
}

// serveDelete ends a session.
func (h *Handler) serveDelete(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(headerSession) == "" {
		writeNotAllowed(w, "there is nothing to delete: the request names no session")
		return
	}
	s := h.sessionOf(w, r)
	if s == nil {
		return
	}
	defer h.sessions.release(s, r)
	h.sessions.end(r.Context(), s)
	w.WriteHeader(http.StatusNoContent)
}

// legacyCall is a message of the legacy era, or a batch.
type legacyCall struct {
	session *session
	message transport.Message // zero if it is a batch
	req     *mcp.Request      // the message, if it is a request or a notification
	batch   []byte            // nil if it is a single message
	call    *legacyserver.Call
	values  requestValues
}

// accept lets the session accept the message or the batch.
func (c *legacyCall) accept(ctx context.Context) {
	session := c.session.legacy
	switch {
	case c.batch != nil:
		c.call = session.AcceptBatch(ctx, c.batch, originOf(c.values.http))
	case c.req != nil:
		c.call = session.AcceptRequest(ctx, c.req)
	default:
		c.call = session.Accept(ctx, c.message, originOf(c.values.http))
	}
}

// answer serves a call and writes the response: JSON if nothing is sent before it,
// otherwise an event stream that ends with it.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, c *legacyCall) {
	accept, ok := chooseFormat(w, acceptable(r.Header))
	if !ok {
		return
	}
	buf := bufpool.Get()
	defer buf.Put()
	ctx := detachedContext(r, &c.values)
	c.accept(ctx)
	if !accept.stream {
		buf.B = c.serve(buf.B, noStream{})
		if err := h.finishCall(ctx, w, c); err != nil {
			writeUnavailable(w, c.message.ID, err)
			return
		}
		c.writeJSON(ctx, w, buf.B)
		return
	}
	st := &stream{session: c.session, call: c.call, opts: &h.opts, out: newEventWriter(w, r, h.opts.WriteTimeout)}
	c.values.stream = st
	heartbeat := startHeartbeat(&h.opts, st)
	defer heartbeat.stop() // also if the handler panics
	buf.B = c.serve(buf.B, st)
	heartbeat.stop()
	if err := h.finishCall(ctx, w, c); err != nil && st.closeUnused() {
		writeUnavailable(w, c.message.ID, err)
		return
	}
	if (accept.json || c.lacksScope()) && st.closeUnused() {
		c.writeJSON(ctx, w, buf.B)
		return
	}
	if !st.finish(ctx, buf.B) {
		h.keepEnd(ctx, st, bytes.Clone(buf.B))
	}
}

// detachedContext returns a context with the values of an HTTP request that does not end
// with it. In the legacy era a client that disconnects has not cancelled.
func detachedContext(r *http.Request, v *requestValues) context.Context {
	v.http = r
	return contextWithValues(context.WithoutCancel(r.Context()), v)
}

// serve serves the call and appends the response to dst.
func (c *legacyCall) serve(dst []byte, out serving.Sender) []byte {
	c.call.Serve(out)
	return c.call.Append(dst)
}

// finishCall saves the session if the call may have changed it, before the client
// knows: its next request may go to another replica. If that fails, a single request is to
// be repeated, which does no harm. A handshake that has failed gives the client no session.
func (h *Handler) finishCall(ctx context.Context, w http.ResponseWriter, c *legacyCall) error {
	var err error
	isHandshake := c.message.Method == revision.Initialize
	if c.session.legacy.Initialized() && (c.batch != nil || legacyserver.ChangesSession(&c.message)) {
		err = h.sessions.save(ctx, c.session)
		if err == nil && !isHandshake {
			h.sessions.announce(ctx, c.session)
		}
	}
	if !c.session.legacy.Initialized() || isHandshake && err != nil {
		w.Header().Del(headerSession)
	}
	if c.batch != nil {
		return nil
	}
	return err
}

// writeJSON writes the response to a call, or none if the call was cancelled.
func (c *legacyCall) writeJSON(ctx context.Context, w http.ResponseWriter, message []byte) {
	if len(message) == 0 {
		writeAccepted(w)
		return
	}
	status := http.StatusOK
	if setErrorHeaders(ctx, w.Header(), c.call.Err()) == http.StatusForbidden {
		status = http.StatusForbidden // with any other status, clients of this era drop the message
	}
	writeMessage(w, status, message)
}

// lacksScope reports whether the handler refused the call for want of a scope.
func (c *legacyCall) lacksScope() bool {
	_, ok := errors.AsType[*mcp.ScopeError](c.call.Err())
	return ok
}

// noStream is the [serving.Sender] of a client that accepts no stream: it can only be sent
// the response.
type noStream struct{}

// Send implements [serving.Sender].
func (noStream) Send(context.Context, []byte) error { return mcp.ErrNotDelivered }

// mayServeLate reports whether serveLate may accept a request that arrives during
// Shutdown.
func (h *Handler) mayServeLate(r *http.Request) bool {
	return r.Method == http.MethodPost && r.Header.Get(headerSession) != "" && h.killed.Err() == nil
}

// mayHelp reports whether m can help a request in flight to end.
func mayHelp(m *transport.Message) bool {
	return m.IsResponse() || m.Method == mcp.NotificationCancelled && m.IsNotification()
}

// serveLate accepts, while Shutdown waits, messages that help requests in flight to end:
// answers to their questions, and cancellations. It refuses anything else.
func (h *Handler) serveLate(w http.ResponseWriter, r *http.Request, body []byte) {
	if m, err := transport.ParseMessage(body); err == nil && h.mayServeLate(r) && mayHelp(&m) {
		if s, _ := h.sessions.findLocal(r, r.Header.Get(headerSession)); s != nil {
			defer h.sessions.release(s, r)
			s.legacy.Accept(detachedContext(r, new(requestValues)), m, originOf(r)).Serve(noStream{})
			writeAccepted(w)
			return
		}
	}
	writeError(w, http.StatusServiceUnavailable, errShutdown)
}
