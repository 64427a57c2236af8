// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"net/http"

	"github.com/go-psi/psi/internal/bufpool"
	"github.com/go-psi/psi/mcp"
)

// legacyCall is one request of the legacy era, or a batch: its context, its answer,
// its stream and its heartbeat, in one allocation.
type legacyCall struct {
	reply
	session  *session
	request  *mcp.Request // nil if it is a batch
	batch    []byte       // nil if it is a single message
	about    requestContext
	admitted mcp.Admitted
	stream   stream
	beat     beat
}

// answer serves a call and answers: with JSON if nothing was said before the
// answer, otherwise with the end of a stream.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, c *legacyCall) {
	if !h.prepare(&c.reply, w, r, acceptable(r.Header)) {
		return
	}
	c.about.request = r
	buf := bufpool.Get()
	defer buf.Put()
	if !c.accept.stream {
		buf.B = c.serve(buf.B, refused{})
		h.keep(c)
		c.finishJSON(buf.B)
		return
	}
	c.stream.of(c.session, &h.opts, &c.out)
	c.stream.about, c.about.stream = &c.about, &c.stream //nolint:fatcontext // it is not nested: the stream's context is the call's
	h.pulse.start(&c.beat, &c.stream)
	defer c.beat.stop()
	buf.B = c.serve(buf.B, &c.stream)
	h.keep(c)
	if (c.accept.json || c.about.forbidden()) && c.stream.abandon() {
		c.finishJSON(buf.B)
		return
	}
	c.stream.finish(&c.about, buf.B)
}

// keep saves the session if the call may have changed it, before its client knows:
// the next request may go to another replica.
func (h *Handler) keep(c *legacyCall) {
	m := c.message()
	if c.session.legacy.Initialized() && (c.batch != nil || m.ChangesSession()) {
		h.sessions.save(&c.about, c.session)
	}
}

// serve appends the answer to dst.
func (c *legacyCall) serve(dst []byte, out mcp.Sender) []byte {
	m := c.message()
	if c.batch != nil {
		several := context.WithValue(&c.about, refusalKey{}, nil) // what is refused to one is not refused to all
		c.admitted = c.session.legacy.AdmitBatch(several, c.batch, originOf(c.about.request))
	} else {
		c.admitted = c.session.legacy.Admit(&c.about, m)
	}
	dst = c.admitted.Serve(dst, out)
	if m.IsInitialize() && !c.session.legacy.Initialized() {
		c.out.w.Header().Del(headerSession)
	}
	return dst
}

// message is the single message, zero if it is a batch.
func (c *legacyCall) message() (m mcp.Message) {
	if c.request != nil {
		m.Request, m.ID = c.request, c.request.ID
	}
	return m
}

// finishJSON answers with a message, or, if there is none because the request was
// cancelled, without.
func (c *legacyCall) finishJSON(message []byte) {
	if len(message) == 0 {
		accepted(c.out.w)
		return
	}
	status := http.StatusOK
	if refuse(&c.about, c.out.w, c.about.outcome()) == http.StatusForbidden {
		status = http.StatusForbidden // clients of this era lose the message with any other status
	}
	c.out.answer(status, message)
}
