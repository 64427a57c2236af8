// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/header"
	"github.com/go-psi/psi/internal/seal"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// This file passes a request on to the replica that has its session. The replica serves it
// as if the client had sent it there, but checks no origin and authenticates nobody: the
// first replica has done both, and says so under seal.

// owner is a process that has a session, and the URL of its peer handler.
type owner struct {
	URL     string `json:"url"`
	Process string `json:"process"`
}

// peers are the other replicas.
type peers struct {
	values    store.Values
	ring      *seal.Ring
	self      owner
	transport *http.Transport
	timeout   time.Duration // of each write to a client
	logger    *slog.Logger
	nonces    nonces
}

// check returns an error that says what is missing.
func (s *SharedSessions) check() error {
	switch u, err := url.Parse(s.URL); {
	case s.Values == nil:
		return errors.New("values are missing: all replicas need the same store, such as one of package natsstore or redisstore")
	case len(s.Keys) == 0:
		return errors.New("keys are missing: all replicas need the same secret of at least 16 random bytes")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("the URL is %q: it must be the http or https URL at which the other replicas reach the PeerHandler of this one, and of no other", s.URL)
	}
	_, err := seal.NewRing(s.Keys...)
	return err
}

// newPeers returns nil if sessions are not shared. The options must have been checked.
func newPeers(s *SharedSessions, e *endpoint) *peers {
	if s == nil {
		return nil
	}
	ring, err := seal.NewRing(s.Keys...)
	if err != nil {
		panic("mcphttp: " + err.Error())
	}
	p := &peers{
		values: s.Values, ring: ring, self: owner{s.URL, rand.Text()[:13]}, // short, because every event names the process
		timeout: e.WriteTimeout, logger: e.Logger,
	}
	if s.Transport != nil {
		p.transport = s.Transport.Clone()
	} else {
		p.transport = &http.Transport{IdleConnTimeout: time.Minute} // without the proxies of the environment, which lead out
	}
	p.transport.ExpectContinueTimeout = 2 * reachTimeout // a replica that has not acknowledged the hop never gets the body
	return p
}

// reachTimeout is how long a replica may take to acknowledge a hop, before it counts as gone.
// A timeout on the response could not tell a slow tool from a dead host.
const reachTimeout = 5 * time.Second

// errNotServed means that a replica did not take a request, so that another one may serve it.
var errNotServed = errors.New("the replica does not have the session, or is shutting down")

var errUnreachable = fmt.Errorf("not acknowledged within %v", reachTimeout)

// forward passes a request on to a replica and copies the response. If the replica did not
// take the request, forward has written nothing and returns an error. If it may have, forward
// writes an error.
func (p *peers) forward(w http.ResponseWriter, r *http.Request, to owner, id string, body []byte, isHelp bool) (failed error) {
	token, hopBody, err := p.seal(r, to, id, body, isHelp)
	if err != nil {
		status := http.StatusInternalServerError
		if errors.Is(err, errHopTooLarge) {
			status = http.StatusRequestHeaderFieldsTooLarge
		}
		writeError(w, status, err)
		return nil
	}
	target, err := url.Parse(to.URL)
	if err != nil {
		return err
	}
	sent := &delivery{body: bytes.NewReader(hopBody)}
	proxy := httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			out := pr.Out
			out.Method, out.URL, out.Host = http.MethodPost, target, target.Host
			out.Header = http.Header{peerHeader: {token}, "Content-Type": {header.JSON}, "Expect": {"100-continue"}}
			out.Body, out.ContentLength = sent, int64(len(hopBody))
		},
		Transport:      roundTripper(func(out *http.Request) (*http.Response, error) { return p.roundTrip(out, sent) }),
		FlushInterval:  -1, // at once
		ModifyResponse: func(res *http.Response) error { return p.complete(r, res) },
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
		ErrorLog:       slog.NewLogLogger(p.logger.Handler(), slog.LevelDebug), // a client or a replica that is gone
	}
	proxy.ServeHTTP(&hopWriter{w, p.timeout, r.ProtoMajor > 1}, r)
	switch {
	case failed == nil:
		return nil
	case r.Context().Err() != nil: // the client has left, or this process ends
		writeError(w, http.StatusServiceUnavailable, errShutdown)
		return nil
	case sent.isSent() && !errors.Is(failed, errNotServed):
		p.logger.WarnContext(r.Context(), "mcphttp: a replica was lost while it served a request", "replica", to.URL, "error", failed)
		writeError(w, http.StatusBadGateway, errLost)
		return nil
	case !errors.Is(failed, errNotServed):
		p.logger.WarnContext(r.Context(), "mcphttp: a replica cannot be reached", "replica", to.URL, "error", failed)
	}
	return failed
}

var errLost = mcp.Errorf(mcp.CodeInternalError, "the replica that served the request is gone; the request may have been executed")

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// roundTrip sends a hop. It fails if the other replica does not acknowledge it within
// reachTimeout, by asking for the body: then nothing was executed, and the replica may be
// taken for gone.
func (p *peers) roundTrip(out *http.Request, sent *delivery) (*http.Response, error) {
	// The context has no values, because ReverseProxy would pass the acknowledgement on.
	ctx, cancel := context.WithCancelCause(context.Background())
	context.AfterFunc(out.Context(), func() { cancel(context.Cause(out.Context())) }) // also after the response
	timer := time.AfterFunc(reachTimeout, func() {
		if sent.abandon() {
			cancel(errUnreachable)
		}
	})
	res, err := p.transport.RoundTrip(out.WithContext(ctx))
	timer.Stop()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return res, err
}

// A delivery is the body of a hop. It is read once the other replica has acknowledged the
// hop, or never.
type delivery struct {
	body  *bytes.Reader
	state atomic.Int32
}

// The states of a delivery.
const (
	deliveryWaiting = iota
	deliverySent
	deliveryAbandoned
)

// Read implements [io.Reader].
func (d *delivery) Read(data []byte) (int, error) {
	if !d.state.CompareAndSwap(deliveryWaiting, deliverySent) && !d.isSent() {
		return 0, errUnreachable
	}
	return d.body.Read(data)
}

// Close implements [io.Closer].
func (d *delivery) Close() error { return nil }

func (d *delivery) isSent() bool { return d.state.Load() == deliverySent }

// abandon keeps the body from being sent. It returns false if it was.
func (d *delivery) abandon() bool {
	return d.state.CompareAndSwap(deliveryWaiting, deliveryAbandoned)
}

// complete returns an error if a response does not come from a replica that has served the
// request. Otherwise it completes the response with what only this replica knows.
func (p *peers) complete(r *http.Request, res *http.Response) error {
	result := res.Header.Get(peerHeader)
	res.Header.Del(peerHeader)
	switch result {
	case hopServed:
		if scopes := res.Header.Get("WWW-Authenticate"); scopes != "" {
			res.Header.Set("WWW-Authenticate", challengeFor(r.Context(), strings.Fields(scopes)))
		}
		return nil
	case hopGone:
		return errNotServed
	}
	why, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
	p.logger.WarnContext(r.Context(), "mcphttp: a replica does not serve what is passed on to it: its PeerHandler must be at the URL, and have the same keys and time",
		"replica", res.Request.URL.Redacted(), "status", res.StatusCode, "body", string(why))
	return errNotServed
}

// hopWriter bounds each write to a client, as an [eventWriter] does.
type hopWriter struct {
	http.ResponseWriter

	timeout time.Duration
	isHTTP2 bool
}

// Write implements [http.ResponseWriter].
func (w *hopWriter) Write(data []byte) (int, error) {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.timeout)) // not all writers support deadlines
	return w.ResponseWriter.Write(data)
}

// FlushError supports [http.ResponseController]. On HTTP/2, a deadline that passes resets an
// idle stream.
func (w *hopWriter) FlushError() error {
	control := http.NewResponseController(w.ResponseWriter)
	err := control.Flush()
	if w.isHTTP2 {
		_ = control.SetWriteDeadline(time.Time{})
	}
	return err
}

// Unwrap supports [http.ResponseController].
func (w *hopWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// servePeer serves a hop.
func (h *legacyHandler) servePeer(w http.ResponseWriter, r *http.Request) {
	p := h.sessions.peers
	if p == nil {
		refuseHop(w, errors.New("the sessions of this handler are not shared: set Options.Sessions.Shared"))
		return
	}
	w = h.limitTime(w, r)
	hop, err := p.open(r)
	switch {
	case errors.Is(err, errOtherProcess):
		w.Header().Set(peerHeader, hopGone)
		writeError(w, http.StatusMisdirectedRequest, mcp.Errorf(mcp.CodeInvalidRequest, "%w", err))
		return
	case errors.Is(err, errBusy): // the session is here, so no other replica should take it over
		w.Header().Set(peerHeader, hopServed)
		writeUnavailable(w, mcp.ID{}, err)
		return
	case err != nil:
		refuseHop(w, err)
		return
	}
	client, err := hop.request(r)
	if err != nil {
		refuseHop(w, err)
		return
	}
	s := h.sessions.findForPeer(client, hop)
	if s == nil || !hop.Help && h.Closing.Err() != nil {
		if s != nil {
			h.sessions.release(s, client)
		}
		w.Header().Set(peerHeader, hopGone)
		writeError(w, http.StatusMisdirectedRequest, mcp.Errorf(mcp.CodeInvalidRequest, "%w", errNotServed))
		return
	}
	defer h.sessions.release(s, client)
	body, ok := h.receiveBody(w, r) // which acknowledges the hop
	if !ok {
		return
	}
	if body, ok = hop.checkBody(body); !ok {
		refuseHop(w, errors.New("the body of the hop is not the one that was sealed"))
		return
	}
	w.Header().Set(peerHeader, hopServed)
	if h.Requests.Enter() {
		defer h.Requests.Leave()
	} else if !hop.Help {
		w.Header().Set(peerHeader, hopGone)
		writeError(w, http.StatusServiceUnavailable, errShutdown)
		return
	}
	h.serveIn(w, client, s, body)
}

func refuseHop(w http.ResponseWriter, err error) {
	w.Header().Set(peerHeader, hopRefused)
	writeError(w, http.StatusForbidden, mcp.Errorf(mcp.CodeInvalidRequest, "%w", err))
}
