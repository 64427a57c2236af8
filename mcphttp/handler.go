// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

var core = mcp.Internal(seam.Key{})

// The headers of the protocol, in canonical form.
const (
	headerVersion     = "Mcp-Protocol-Version"
	headerMethod      = "Mcp-Method"
	headerName        = "Mcp-Name"
	headerSession     = "Mcp-Session-Id"
	headerLastEventID = "Last-Event-ID"
)

// A Handler serves an [mcp.Handler] as streamable HTTP, to clients of 2026-07-28
// and, with sessions, of 2025-03-26 to 2025-11-25. Use [NewHandler] to create one.
type Handler struct {
	mcp       mcp.Handler
	opts      Options
	guard     guard
	sessions  *sessions
	requests  tracker
	deadlines deadlineCheck

	// closing ends when Shutdown is called, and with it subscriptions and the streams of
	// sessions. killed ends when Shutdown returns, and with it all other requests.
	closing, killed context.Context
	close, kill     context.CancelCauseFunc
}

// NewHandler returns a Handler that serves h. The options may be nil. It panics if h is nil,
// or if the options list a host or an origin that is none.
func NewHandler(h mcp.Handler, opts *Options) *Handler {
	mustBeHandler("NewHandler", h)
	o := opts.withDefaults()
	s := &Handler{mcp: &abortHandler{h}, opts: o, guard: newGuard(&o)}
	s.closing, s.close = context.WithCancelCause(context.Background())
	s.killed, s.kill = context.WithCancelCause(context.Background())
	s.sessions = newSessions(s.mcp, &s.opts)
	return s
}

// abortHandler lets a handler panic with [http.ErrAbortHandler].
type abortHandler struct{ mcp.Handler }

// ServeMCP implements [mcp.Handler].
func (a *abortHandler) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			panic(mcp.ErrAbortHandler)
		default:
			panic(v)
		}
	}()
	return a.Handler.ServeMCP(ctx, req)
}

// mustBeMade panics if NewHandler did not make the Handler.
func (h *Handler) mustBeMade() {
	made.Check(h != nil && h.sessions != nil, "mcphttp: a Handler", "NewHandler")
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mustBeMade()
	h.deadlines.check(w, r, h.opts.Logger)
	w = limitTime(w, r, &h.opts)
	if h.closing.Err() != nil && !h.mayServeLate(r) {
		writeError(w, http.StatusServiceUnavailable, errShutdown)
		return
	}
	body, ok := receive(w, r, &h.guard, &h.opts)
	if !ok {
		return
	}
	if !h.requests.enter() {
		h.serveLate(w, r, body)
		return
	}
	defer h.requests.leave()
	switch r.Method {
	case http.MethodPost:
		h.servePost(w, r, body)
	case http.MethodGet:
		h.serveGet(w, r)
	case http.MethodDelete:
		h.serveDelete(w, r)
	case http.MethodOptions:
		w.Header().Set("Allow", allowedMethods)
		w.WriteHeader(http.StatusNoContent)
	default:
		writeNotAllowed(w, "the endpoint takes POST, GET and DELETE")
	}
}

const allowedMethods = "POST, GET, DELETE, OPTIONS"

func writeNotAllowed(w http.ResponseWriter, why string) {
	w.Header().Set("Allow", allowedMethods)
	writeError(w, http.StatusMethodNotAllowed, mcp.Errorf(mcp.CodeInvalidRequest, "%s", why))
}

// servePost serves one message of either era, or a batch.
func (h *Handler) servePost(w http.ResponseWriter, r *http.Request, body []byte) {
	if transport.IsBatch(body) {
		h.serveBatch(w, r, body)
		return
	}
	modern, legacy := parsePost(w, r, body)
	switch {
	case modern != nil:
		h.serveModern(w, r, modern)
	case legacy != nil:
		h.serveLegacy(w, r, legacy)
	}
}

// parsePost returns a message as one of its era. If it cannot be read, parsePost writes the
// response and returns neither. It is a function of its own to keep the stacks of
// goroutines that wait in servePost small.
func parsePost(w http.ResponseWriter, r *http.Request, body []byte) (modern *mcp.Request, legacy *legacyCall) {
	m, err := transport.ParseMessage(body)
	if err == nil && m.IsResponse() {
		return nil, &legacyCall{message: m}
	}
	var req *mcp.Request
	if err == nil {
		req, err = originOf(r).NewRequest(&m)
	}
	switch {
	case err != nil:
		writeMessage(w, http.StatusBadRequest, core.AppendError(nil, m.ID, err))
		return nil, nil
	case serving.IsModern(req, r.Header.Get(headerVersion), r.Header.Get(headerSession) != ""):
		return req, nil
	}
	return nil, &legacyCall{message: m, req: req}
}

const (
	typeJSON   = "application/json"
	typeStream = "text/event-stream"
)

// receive checks a request and reads its body. If the request is refused, receive
// writes the response and reports false. A request whose body has not arrived does not
// count as in flight: Shutdown does not wait for it.
func receive(w http.ResponseWriter, r *http.Request, g *guard, o *Options) (body []byte, ok bool) {
	if why := g.check(r); why != "" {
		g.refused.write(o.Logger, r, "mcphttp: a request was refused", why)
		writeError(w, http.StatusForbidden, mcp.Errorf(mcp.CodeInvalidRequest, "%s", why))
		return nil, false
	}
	if r.Method == http.MethodPost && !isJSON(r.Header.Get("Content-Type")) {
		writeError(w, http.StatusUnsupportedMediaType, mcp.Errorf(mcp.CodeInvalidRequest, "the Content-Type must be %s, not %q", typeJSON, r.Header.Get("Content-Type")))
		return nil, false
	}
	body, err := readBody(w, r, o.MaxBody)
	if err != nil {
		writeBodyError(w, err, o)
		return nil, false
	}
	return body, true
}

// readBody reads the whole body. It uses memory for what has arrived only, whatever
// length the client announces.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	return io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
}

func writeBodyError(w http.ResponseWriter, err error, o *Options) {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		writeError(w, http.StatusRequestEntityTooLarge, mcp.Errorf(mcp.CodeInvalidRequest, "the body is longer than %d bytes", tooLarge.Limit))
		return
	}
	if errors.Is(err, os.ErrDeadlineExceeded) { // net/http closes the connection
		writeError(w, http.StatusRequestTimeout, mcp.Errorf(mcp.CodeInvalidRequest, "the body did not arrive within %v", o.BodyTimeout))
		return
	}
	writeError(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeParseError, "the body could not be read"))
}

// accepts says which formats of a response a client accepts.
type accepts struct{ json, stream bool }

// chooseFormat removes the stream from the formats if w cannot write one. If none is left,
// it writes the response and reports false.
func chooseFormat(w http.ResponseWriter, accept accepts) (_ accepts, ok bool) {
	if accept.stream && !canFlush(w) {
		accept.stream = false
		if !accept.json {
			writeError(w, http.StatusInternalServerError, cannotStream(w))
			return accept, false
		}
	}
	if !accept.json && !accept.stream {
		writeError(w, http.StatusNotAcceptable, mcp.Errorf(mcp.CodeInvalidRequest, "the client must accept %s or %s", typeJSON, typeStream))
		return accept, false
	}
	return accept, true
}

// acceptable reads the Accept headers. Without one, everything is accepted.
func acceptable(h http.Header) accepts {
	values := h["Accept"]
	if len(values) == 0 {
		return accepts{true, true}
	}
	if len(values) == 1 && values[0] == typeJSON+", "+typeStream { // as nearly all clients send it
		return accepts{true, true}
	}
	ranges := parseAccept(values)
	return accepts{json: ranges.quality(typeJSON) > 0, stream: ranges.quality(typeStream) > 0}
}

// mediaRange is an element of an Accept header.
type mediaRange struct {
	name    string
	quality float64
}

type mediaRanges []mediaRange

func parseAccept(values []string) mediaRanges {
	var ranges mediaRanges
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, params, _ := strings.Cut(part, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		if name != "" {
			ranges = append(ranges, mediaRange{name, parseQuality(params)})
		}
	}
	return ranges
}

func parseQuality(params string) float64 {
	for p := range strings.SplitSeq(params, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if !strings.EqualFold(key, "q") {
			continue
		}
		if q, err := strconv.ParseFloat(value, 64); err == nil {
			return q
		}
	}
	return 1
}

// quality returns the quality of the most specific range that covers a media type.
func (rs mediaRanges) quality(name string) float64 {
	family, _, _ := strings.Cut(name, "/")
	best, q := 0, 0.0
	for _, r := range rs {
		specific := 0
		switch r.name {
		case name:
			specific = 3
		case family + "/*":
			specific = 2
		case "*/*":
			specific = 1
		}
		if specific > best {
			best, q = specific, r.quality
		}
	}
	return q
}

// isJSON reports whether a Content-Type is that of JSON, in any case and with any
// parameters.
func isJSON(contentType string) bool {
	if contentType == typeJSON {
		return true
	}
	name, _, err := mime.ParseMediaType(contentType)
	return err == nil && name == typeJSON
}
