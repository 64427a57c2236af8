// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/go-psi/psi/internal/header"
	"github.com/go-psi/psi/internal/server"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// This file decides which replica serves a request. Each session has one owner, which its
// record in the store names. Other replicas pass requests on to the owner. If the owner is
// gone, the replica that has noticed continues the session from the record.

// help says that a request concerns another one that is in flight: it answers a question,
// cancels a call, or resumes the stream of one. Such a request is of use only to the process
// that serves the other, even if another replica owns the session now.
type help struct {
	isHelp  bool
	process string // that serves the other request; "" if it is not known
}

// helpOf returns what a message helps.
func helpOf(c *server.Call) help {
	switch {
	case c.IsResponse():
		parts := strings.Split(c.ID().String(), ".") // see questionPrefix
		if len(parts) == 3 {
			return help{true, parts[1]}
		}
		return help{isHelp: true}
	case c.IsCancellation():
		return help{isHelp: true}
	}
	return help{}
}

// questionPrefix returns what the IDs of the questions of a session begin with. A part of
// the session's ID keeps a late answer from answering a question of another session. The
// process, if there are several, is where the answer is awaited.
func (ss *sessions) questionPrefix(session string) string {
	prefix := "psi-" + session[:min(len(session), 10)]
	if ss.peers != nil {
		prefix += "." + ss.peers.self.Process + "."
	}
	return prefix
}

// maxMoves limits how often a request follows a session that moves between replicas.
const maxMoves = 3

var errMoving = mcp.Errorf(mcp.CodeInternalError, "the session moves between replicas; try again later")

// route returns the session that a request belongs to, if this process has it or takes it
// over; the caller must release it. Otherwise route writes the response, which may come from
// the replica that has the session, and returns nil.
func (h *legacyHandler) route(w http.ResponseWriter, r *http.Request, id string, body []byte, about help) *session {
	ss := h.sessions
	if h.forwardToFormer(w, r, ss.formerHelped(r, id, about), id, body) {
		return nil
	}
	if s := ss.findOwned(r, id, about); s != nil {
		return s
	}
	for range maxMoves {
		rec, version, err := ss.load(r, id)
		switch {
		case err != nil:
			writeUnavailable(w, mcp.ID{}, err)
			return nil
		case rec == nil || !rec.principal().Is(PrincipalOf(r)):
			writeUnknown(w)
			return nil
		}
		if h.passOn(w, r, id, body, about, rec) {
			return nil
		}
		s, err := ss.adopt(r, id, rec, version)
		switch {
		case err == nil:
			return s
		case !errors.Is(err, store.ErrConflict):
			writeUnavailable(w, mcp.ID{}, err)
			return nil
		}
	}
	writeUnavailable(w, mcp.ID{}, errMoving)
	return nil
}

// passOn passes a request on to the replica that has its session, and reports whether it has
// written a response. If not, that replica is gone.
func (h *legacyHandler) passOn(w http.ResponseWriter, r *http.Request, id string, body []byte, about help, rec *sessionRecord) (done bool) {
	to := rec.Owner
	if about.process != "" && about.process == rec.Former.Process {
		to = rec.Former
	}
	err := errNotServed
	if to.Process != h.sessions.peers.self.Process {
		err = h.forward(w, r, to, id, body, about.isHelp)
	}
	switch {
	case err == nil:
		if about.isHelp && about.process == "" {
			h.forwardToFormer(nowhere{}, r, rec.Former, id, body) // may serve the request that is cancelled
		}
		return true
	case !about.isHelp:
		return false
	case r.Method == http.MethodGet:
		writeTrimmed(w)
	case errors.Is(err, errNotServed): // the request that it would help has ended with its process
		writeAccepted(w)
	default:
		writeUnavailable(w, mcp.ID{}, errUnreachableOwner)
	}
	return true
}

var errUnreachableOwner = mcp.Errorf(mcp.CodeInternalError, "the replica that serves the request cannot be reached; try again later")

// forwardToFormer passes a request on to the former owner of a session, if there is one,
// because it may still serve the request that this one helps. It reports whether the former
// owner has taken it. If not, the former owner is forgotten: it is gone.
func (h *legacyHandler) forwardToFormer(w http.ResponseWriter, r *http.Request, former owner, id string, body []byte) bool {
	if former.URL == "" || former.Process == h.sessions.peers.self.Process {
		return false
	}
	if h.forward(w, r, former, id, body, true) == nil {
		return true
	}
	h.sessions.forgetFormer(id, former)
	return false
}

// nowhere is the response to a request that has another one.
type nowhere struct{}

// Header implements [http.ResponseWriter].
func (nowhere) Header() http.Header { return http.Header{} }

// Write implements [http.ResponseWriter].
func (nowhere) Write(data []byte) (int, error) { return len(data), nil }

// WriteHeader implements [http.ResponseWriter].
func (nowhere) WriteHeader(int) {}

// Flush implements [http.Flusher].
func (nowhere) Flush() {}

// forward passes a request on to a replica; see peers.forward. A stream ends when this process
// begins to shut down, any other request when it stops.
func (h *legacyHandler) forward(w http.ResponseWriter, r *http.Request, to owner, id string, body []byte, isHelp bool) error {
	end := h.Killed
	if r.Method == http.MethodGet {
		end = h.Closing
	}
	if end.Err() != nil {
		writeError(w, http.StatusServiceUnavailable, errShutdown)
		return nil
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(end, func() { cancel(mcp.ErrClosed) })()
	return h.sessions.peers.forward(w, r.WithContext(ctx), to, id, body, isHelp)
}

// formerHelped returns the former owner of a session of this process, if it serves the
// request that r helps.
func (ss *sessions) formerHelped(r *http.Request, id string, about help) owner {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.byID[id]
	if s == nil || about.process == "" || about.process != s.former.Process || !s.legacy.Public().Principal().Is(PrincipalOf(r)) {
		return owner{}
	}
	return s.former
}

// findOwned returns a session that this process owns, or that it has let go if the request
// helps another one in flight here; the caller must release it.
func (ss *sessions) findOwned(r *http.Request, id string, about help) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.findLocalLocked(r, id)
	if s != nil && s.isReleased && about.process != ss.peers.self.Process {
		ss.releaseLocked(s, r)
		return nil
	}
	return s
}

// findForPeer returns the session that a hop is for; the caller must release it.
func (ss *sessions) findForPeer(client *http.Request, hop *hop) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.findLocalLocked(client, hop.Session)
	if s != nil && s.isReleased && !hop.Help {
		ss.releaseLocked(s, client)
		return nil
	}
	return s
}

// writeUnknown refuses a request of a session that is unknown or belongs to another caller.
func writeUnknown(w http.ResponseWriter) {
	writeError(w, http.StatusNotFound, mcp.Errorf(mcp.CodeInvalidRequest, "the session is unknown or has ended: start again with initialize"))
}

// writeTrimmed refuses to resume a stream.
func writeTrimmed(w http.ResponseWriter) {
	writeError(w, http.StatusNotFound, mcp.Errorf(mcp.CodeInvalidRequest, "the header %s names an event that this session does not have, or no longer has", header.LastEventID))
}
