// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-psi/psi/internal/pending"
	"github.com/go-psi/psi/mcp"
)

// sseWire is a connection in the transport of 2024-11-05: one stream for all that
// the server says, and a URL to post to. It ends with its stream.
type sseWire struct {
	*inbox
	peer     *peer
	endpoint *url.URL
	calls    pending.Map[mcp.ID, *mcp.Response]
}

// openSSEWire opens the stream and waits for its first event, until ctx is done.
func openSSEWire(ctx context.Context, p *peer, b *inbox) (*sseWire, error) {
	w := &sseWire{inbox: b, peer: p}
	x := b.exchange(context.WithoutCancel(ctx)) // the stream lives longer than the opening
	stop := context.AfterFunc(ctx, func() { x.cancel(context.Cause(ctx)) })
	events, res, err := w.open(x)
	if inTime := stop(); err == nil && !inTime {
		closeBody(res)
		err = context.Cause(ctx)
	}
	if err != nil {
		err = x.blame(err)
		x.end()
		return nil, err
	}
	if !b.run(func() { w.read(x, res, events) }) {
		closeBody(res)
		x.end()
		return nil, b.Err()
	}
	return w, nil
}

func (w *sseWire) open(x *exchange) (*eventReader, *http.Response, error) {
	res, err := w.peer.get(x.ctx, make(http.Header, 1))
	if err != nil {
		return nil, nil, fmt.Errorf("mcphttp: %w", err)
	}
	events := newEventReader(res.Body, w.peer.opts.MaxMessage)
	switch {
	case res.StatusCode != http.StatusOK:
		refusal := w.peer.refusal(res)
		if err = error(refusal); refusal.unauthorized() {
			err = refusal.of(mcp.ErrUnauthorized)
		}
	case !isStream(res):
		err = fmt.Errorf("%w: the answer is %q, not an event stream", mcp.ErrNotUnderstood, res.Header.Get("Content-Type"))
	default:
		w.endpoint, err = firstEvent(events, res.Request.URL)
	}
	if err != nil {
		closeBody(res)
		return nil, nil, err
	}
	return events, res, nil
}

// firstEvent reads where to post. It may not be at another origin: a server does
// not decide where its client sends what it knows.
func firstEvent(events *eventReader, from *url.URL) (*url.URL, error) {
	e, err := events.next()
	for err == nil && e.isMessage() && len(e.data) == 0 {
		e, err = events.next()
	}
	if err != nil {
		return nil, brokenOff(err)
	}
	if e.kind != "endpoint" {
		return nil, fmt.Errorf("%w: the first event is not %q", mcp.ErrNotUnderstood, "endpoint")
	}
	to, err := from.Parse(strings.TrimSpace(string(e.data)))
	if err != nil {
		return nil, fmt.Errorf("mcphttp: the endpoint: %w", err)
	}
	if origin(to) != origin(from) {
		return nil, fmt.Errorf("mcphttp: the endpoint %q is at another origin than %q", to, origin(from))
	}
	return to, nil
}

// read takes what the server says until it says no more, which is the end.
func (w *sseWire) read(x *exchange, res *http.Response, events *eventReader) {
	defer x.end()
	defer closeBody(res)
	for {
		e, err := events.next()
		switch {
		case err != nil:
			w.end(brokenOff(err))
			w.finish()
			return
		case e.tooLong:
			w.accept(e.unreadable())
		case e.isMessage() && len(e.data) > 0:
			for m := range mcp.Messages(e.data) {
				w.accept(m)
			}
		}
	}
}

// accept takes a message. What could not be read is delivered even if it is the response
// to a call: somebody should know.
func (w *sseWire) accept(m mcp.Message) {
	if m.Response == nil || m.Err != nil {
		w.deliver(m, mcp.ID{})
	}
	if m.Response != nil {
		w.calls.Deliver(m.Response.ID, m.Response)
	}
}

// Call implements [mcp.Wire].
func (w *sseWire) Call(ctx context.Context, m *mcp.Envelope) (*mcp.Response, error) {
	if speaksModern(m.Version) {
		return nil, mcp.ErrNotUnderstood // no server of that age does
	}
	response, remove := w.calls.Add(m.ID)
	defer remove()
	x := w.exchange(ctx)
	defer x.end()
	// There are servers that answer the POST after the request is served.
	posted := make(chan error, 1)
	if !w.run(func() { posted <- w.post(x, m.Body) }) {
		return nil, w.Err()
	}
	for posting := posted; ; {
		select {
		case r := <-response:
			if posting != nil {
				w.detach(x, func() { <-posted }) //nolint:errcheck // the call was answered otherwise
			}
			return r, nil
		case err := <-posting:
			if err != nil && x.ctx.Err() == nil {
				return respondTo(m.ID, err)
			}
			posting = nil
		case <-x.ctx.Done():
			if ctx.Err() != nil && w.ctx.Err() == nil && m.Method != methodInitialize {
				w.cancelled(ctx, m.ID, w.peer, w.post)
			}
			return pending.ReceivedOr(response, context.Cause(x.ctx))
		}
	}
}

// respondTo makes a response of a refusal that is one.
func respondTo(id mcp.ID, err error) (*mcp.Response, error) {
	var refusal *StatusError
	if errors.As(err, &refusal) && refusal.answer != nil && !errors.Is(err, mcp.ErrSessionLost) {
		return &mcp.Response{ID: id, Error: refusal.answer}, nil
	}
	return nil, err
}

func (w *sseWire) post(x *exchange, body []byte) error {
	return w.peer.tell(x, w.endpoint, make(http.Header, 2), body, func(e *StatusError) (*mcp.Error, error) { return e.legacy(true) })
}

// Send implements [mcp.Wire].
func (w *sseWire) Send(ctx context.Context, m *mcp.Envelope) error {
	if !w.enter() {
		return w.Err()
	}
	defer w.leave()
	x := w.exchange(ctx)
	defer x.end()
	if x.ctx.Err() != nil {
		return context.Cause(x.ctx)
	}
	return x.blame(w.post(x, m.Body))
}

// Close implements [mcp.Wire].
func (w *sseWire) Close() error {
	w.close(func(context.Context) {})
	w.peer.close()
	return nil
}
