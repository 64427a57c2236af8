// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyhttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-psi/psi/internal/bufpool"
	"github.com/go-psi/psi/internal/legacyserver"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp/internal/endpoint"
	"github.com/go-psi/psi/mcphttp/internal/header"
)

var core = mcp.Internal(seam.Key{})

// A Handler serves the requests of older revisions that arrive at an endpoint. Use [New] to
// create one.
type Handler struct {
	*endpoint.Endpoint

	opts     Options
	sessions *sessions
}

// New returns a Handler for the endpoint e.
func New(e *endpoint.Endpoint, opts Options) *Handler {
	h := &Handler{Endpoint: e, opts: opts}
	h.sessions = newSessions(e, &h.opts)
	return h
}

// Sessions returns the sessions that are open in this process, in no particular order.
func (h *Handler) Sessions() []*mcp.Session {
	all := h.sessions.all()
	public := make([]*mcp.Session, len(all))
	for i, s := range all {
		public[i] = s.legacy.Public()
	}
	return public
}

// EndStreams ends the standalone streams of all sessions without waiting for them.
func (h *Handler) EndStreams() { h.sessions.endListeners() }

// CloseSessions ends all sessions in this process. No sessions are opened after it, even by
// requests that are still in flight.
func (h *Handler) CloseSessions() { h.sessions.closeAll() }

// Leftovers describes what the handler still holds for sessions. It returns "" if it holds
// nothing, as must be the case after CloseSessions.
func (h *Handler) Leftovers() string { return h.sessions.leftovers() }

// Methods lists the HTTP methods that the endpoint serves.
const Methods = "POST, GET, DELETE, OPTIONS"

// ServePost serves one message, whose body is body.
func (h *Handler) ServePost(w http.ResponseWriter, r *http.Request, body []byte, c *Call) {
	if legacyserver.IsInitialize(&c.Message) {
		h.serveInitialize(w, r, c)
		return
	}
	about := helpOf(&c.Message)
	if c.session = h.sessionOf(w, r, body, about); c.session == nil {
		return
	}
	defer h.sessions.release(c.session, r)
	h.post(w, r, c)
	if h.sessions.peers != nil && about == (help{isHelp: true}) {
		h.forwardToFormer(nowhere{}, r, h.sessions.formerOf(c.session), c.session.id(), body)
	}
}

// post serves a message of a session in this process.
func (h *Handler) post(w http.ResponseWriter, r *http.Request, c *Call) {
	if c.Message.IsRequest() {
		if err := needsSession(c); c.session.isTransient && err != nil {
			endpoint.WriteMessage(w, http.StatusOK, core.AppendError(nil, c.Message.ID, err))
			return
		}
		h.answer(w, r, c)
		return
	}
	c.accept(endpoint.DetachedContext(r, &c.values))
	c.call.Serve(noStream{})
	endpoint.WriteAccepted(w)
}

// serveIn serves a request of a session in this process, for another replica.
func (h *Handler) serveIn(w http.ResponseWriter, r *http.Request, s *session, body []byte) {
	switch {
	case r.Method == http.MethodGet:
		h.get(w, r, s)
	case r.Method == http.MethodDelete:
		h.delete(w, r, s)
	case transport.IsBatch(body):
		h.postBatch(w, r, s, body)
	default:
		c := &Call{session: s}
		var err error
		if c.Message, err = transport.ParseMessage(body); err == nil && !c.Message.IsResponse() {
			c.Request, err = endpoint.OriginOf(r).NewRequest(&c.Message)
		}
		if err != nil {
			endpoint.WriteMessage(w, http.StatusBadRequest, core.AppendError(nil, c.Message.ID, err))
			return
		}
		h.post(w, r, c)
	}
}

// serveInitialize opens a session, unless the request names one that its sender has already.
// An ID that names none is ignored, because there are clients that repeat the ID of a session
// lost in a restart and never send an initialize without it. The new session has a new ID and
// belongs to the sender of the request, whoever had the old one.
func (h *Handler) serveInitialize(w http.ResponseWriter, r *http.Request, c *Call) {
	id := r.Header.Get(header.Session)
	if id == "" || h.opts.Stateless {
		h.initialize(w, r, c)
		return
	}
	if s := h.sessions.findLocal(r, id); s != nil {
		defer h.sessions.release(s, r)
		c.session = s
		h.answer(w, r, c) // the session refuses it
		return
	}
	switch known, err := h.sessions.isKnown(r, id); {
	case err != nil:
		writeUnavailable(w, c.Message.ID, err)
	case known:
		endpoint.WriteMessage(w, http.StatusOK, core.AppendError(nil, c.Message.ID, legacyserver.ErrInitialized))
	default:
		h.initialize(w, r, c)
	}
}

// initialize opens a session, and keeps it if the handshake succeeds.
func (h *Handler) initialize(w http.ResponseWriter, r *http.Request, c *Call) {
	if h.opts.Stateless {
		c.session = h.sessions.transient(r, true)
		defer h.sessions.release(c.session, r)
		h.answer(w, r, c)
		return
	}
	s, err := h.sessions.open(r)
	if err != nil {
		writeUnavailable(w, c.Message.ID, err)
		return
	}
	defer h.sessions.release(s, r)
	w.Header().Set(header.Session, s.id())
	c.session = s
	h.answer(w, r, c)
	if !c.isOpened { // the client does not know the session
		s.legacy.Close()
	}
}

// sessionOf returns the session that a request names, if this process serves it; the caller
// must release it. Otherwise sessionOf writes the response, or lets another replica write it,
// and returns nil.
func (h *Handler) sessionOf(w http.ResponseWriter, r *http.Request, body []byte, about help) *session {
	id := r.Header.Get(header.Session)
	if id == "" && !h.opts.Stateless {
		endpoint.WriteError(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest,
			"the request belongs to no session and names no version for itself: send initialize first and repeat its %s, or name the version in params._meta", header.Session))
		return nil
	}
	if v := r.Header.Get(header.Version); v != "" && revision.Parse(v) == revision.None {
		endpoint.WriteError(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest, "the header %s is %.80q, which no session can speak; expected one of %v", header.Version, v, mcp.LegacyVersions()))
		return nil
	}
	switch {
	case h.opts.Stateless: // whatever session ID the platform has chosen
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
	endpoint.WriteMessage(w, http.StatusServiceUnavailable, core.AppendError(nil, id, err))
}

// ServeBatch serves an array of messages, which only revision 2025-03-26 supports.
func (h *Handler) ServeBatch(w http.ResponseWriter, r *http.Request, body []byte) {
	if r.Header.Get(header.Session) == "" && !h.opts.Stateless {
		endpoint.WriteError(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest, "a message must be an object, not an array"))
		return
	}
	s := h.sessionOf(w, r, body, help{})
	if s == nil {
		return
	}
	defer h.sessions.release(s, r)
	h.postBatch(w, r, s, body)
}

func (h *Handler) postBatch(w http.ResponseWriter, r *http.Request, s *session, body []byte) {
	if !s.legacy.Batches() {
		endpoint.WriteError(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeInvalidRequest, "a message must be an object, not an array"))
		return
	}
	h.answer(w, r, &Call{session: s, batch: body})
}

// ServeDelete ends a session.
func (h *Handler) ServeDelete(w http.ResponseWriter, r *http.Request) {
	if h.opts.Stateless {
		writeStateless(w)
		return
	}
	if r.Header.Get(header.Session) == "" {
		endpoint.WriteNotAllowed(w, Methods, "there is nothing to delete: the request names no session")
		return
	}
	s := h.sessionOf(w, r, nil, help{})
	if s == nil {
		return
	}
	defer h.sessions.release(s, r)
	h.delete(w, r, s)
}

func (h *Handler) delete(w http.ResponseWriter, r *http.Request, s *session) {
	if err := h.sessions.end(r.Context(), s); err != nil {
		writeUnavailable(w, mcp.ID{}, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// A Call is a message of an older revision, or a batch.
type Call struct {
	Message transport.Message // zero if it is a batch
	Request *mcp.Request      // the message, if it is a request or a notification

	batch    []byte // nil if it is a single message
	session  *session
	call     *legacyserver.Call
	values   endpoint.Values
	isOpened bool // it is a handshake that has succeeded
	isAbsent bool // it has no client; guarded by sessions.mu
}

// accept passes the message or the batch to the session.
func (c *Call) accept(ctx context.Context) {
	session := c.session.legacy
	switch {
	case c.batch != nil:
		c.call = session.AcceptBatch(ctx, c.batch, endpoint.OriginOf(c.values.HTTP))
	case c.Request != nil:
		c.call = session.AcceptRequest(ctx, c.Request)
	default:
		c.call = session.Accept(ctx, c.Message, endpoint.OriginOf(c.values.HTTP))
	}
}

// answer serves a call and writes the response: as JSON if nothing was sent before it, and
// otherwise at the end of an event stream. If the client leaves, the call goes on, but its
// connection is closed.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, c *Call) {
	may, ok := endpoint.ChooseFormats(w, r, endpoint.Formats{JSON: true, Stream: true})
	if !ok {
		return
	}
	buf := bufpool.Get()
	defer buf.Put()
	ctx := endpoint.DetachedContext(r, &c.values)
	c.accept(ctx)
	out := h.NewEventWriter(w, r)
	defer out.Close()
	defer h.sessions.setAbsent(c, false)
	st := &stream{session: c.session, call: c, sessions: h.sessions, out: out}
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
	heartbeat := h.StartHeartbeat(st)
	defer heartbeat.Stop() // even if the handler panics
	buf.B = c.serve(buf.B, st)
	heartbeat.Stop()
	err := h.finishCall(ctx, out, c)
	if (may.JSON || err != nil || c.lacksScope()) && st.closeUnused() {
		out.Replace(func(w http.ResponseWriter) { c.writeJSON(ctx, w, buf.B, err) })
		return
	}
	st.finish(ctx, buf.B)
}

// serve serves the call and appends the response to dst.
func (c *Call) serve(dst []byte, out serving.Sender) []byte {
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
func (ss *sessions) setAbsent(c *Call, isAbsent bool) {
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
func (h *Handler) finishCall(ctx context.Context, out *endpoint.EventWriter, c *Call) (err error) {
	if c.batch != nil || legacyserver.ChangesSession(&c.Message) && c.call.Err() == nil {
		err = h.sessions.save(ctx, c.session, c.isHandshake())
	}
	c.isOpened = c.isHandshake() && err == nil && c.session.legacy.Initialized()
	if !c.session.legacy.Initialized() || c.isHandshake() && err != nil {
		out.DeleteHeader(header.Session)
	}
	if c.batch != nil {
		return nil
	}
	return err
}

func (c *Call) isHandshake() bool { return c.Message.Method == revision.Initialize }

// writeJSON writes the response to a call, or err if the call must be repeated, or only
// acknowledges the call if it was cancelled.
func (c *Call) writeJSON(ctx context.Context, w http.ResponseWriter, message []byte, err error) {
	switch {
	case err != nil:
		writeUnavailable(w, c.Message.ID, err)
		return
	case len(message) == 0:
		endpoint.WriteAccepted(w)
		return
	}
	status := http.StatusOK
	if endpoint.SetErrorHeaders(ctx, w.Header(), c.call.Err()) == http.StatusForbidden {
		status = http.StatusForbidden // legacy clients drop the message of any other error status
	}
	endpoint.WriteMessage(w, status, message)
}

// lacksScope reports whether the handler refused the call because the caller lacks a scope.
func (c *Call) lacksScope() bool {
	_, ok := errors.AsType[*mcp.ScopeError](c.call.Err())
	return ok
}

// noStream is the [serving.Sender] of a client that does not accept streams. Only the
// response can be sent to it.
type noStream struct{}

// Send implements [serving.Sender].
func (noStream) Send(context.Context, []byte) error { return mcp.ErrNotDelivered }

// MayServeLate reports whether ServeLate may accept a request that arrives during Shutdown.
func (h *Handler) MayServeLate(r *http.Request) bool {
	return r.Method == http.MethodPost && r.Header.Get(header.Session) != "" && h.Killed.Err() == nil
}

// mayHelp reports whether m, a response or a cancellation, may help a request in flight to finish.
func mayHelp(m *transport.Message) bool {
	return m.IsResponse() || m.Method == mcp.NotificationCancelled && m.IsNotification()
}

// ServeLate accepts messages during Shutdown that help requests in flight to finish:
// answers to their questions, and cancellations. It refuses all others.
func (h *Handler) ServeLate(w http.ResponseWriter, r *http.Request, body []byte) {
	if m, err := transport.ParseMessage(body); err == nil && h.MayServeLate(r) && mayHelp(&m) {
		if s := h.sessions.findLocal(r, r.Header.Get(header.Session)); s != nil {
			defer h.sessions.release(s, r)
			s.legacy.Accept(endpoint.DetachedContext(r, new(endpoint.Values)), m, endpoint.OriginOf(r)).Serve(noStream{})
			endpoint.WriteAccepted(w)
			return
		}
	}
	endpoint.WriteError(w, http.StatusServiceUnavailable, endpoint.ErrShutdown)
}
