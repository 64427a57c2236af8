// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
)

// modernCall is one request of the modern era: its context, its answer and its
// heartbeat, in one allocation.
type modernCall struct {
	reply
	request requestContext
	beat    beat
	cancel  context.CancelCauseFunc
	stay    func() bool // keeps it from being cancelled by its client
	set     *inflight
	expiry  *time.Timer // nil if the call does not end with its caller's authentication
}

// context ends when the client disconnects, which is how it cancels, and when the
// server does not wait for the calls of the set any more. What may outlast the
// authentication of its caller, a subscription, ends with that.
func (c *modernCall) context(r *http.Request, set *inflight) context.Context {
	c.request.request, c.request.attached = r, true
	ctx, cancel := context.WithCancelCause(&c.request)
	c.cancel, c.set = cancel, set
	c.stay = context.AfterFunc(r.Context(), c.disconnected)
	if set.expires {
		c.expiry = atExpiry(r, func() { cancel(context.DeadlineExceeded) })
	}
	set.add(c)
	return ctx
}

// disconnected is called when the context of the HTTP request is done. If nothing says
// why, as middleware with a timeout does, it was the client.
func (c *modernCall) disconnected() {
	cause := context.Cause(c.request.request.Context())
	if errors.Is(cause, context.Canceled) {
		cause = &mcp.CancelError{}
	}
	c.cancel(cause)
}

// end frees what belongs to a call that has been served.
func (c *modernCall) end() {
	c.beat.stop()
	c.stay()
	c.set.remove(c)
	c.cancel(nil)
	if c.expiry != nil {
		c.expiry.Stop()
	}
}

// inflight are the calls that are being served. They are kept in a set, and not each
// told by a context of the server's, because every call would pay for that.
type inflight struct {
	expires bool // they end with the authentication of their callers

	mu    sync.Mutex
	calls map[*modernCall]struct{}
	ended error // why all are cancelled, nil before
}

func (f *inflight) add(c *modernCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended != nil {
		c.cancel(f.ended)
		return
	}
	if f.calls == nil {
		f.calls = map[*modernCall]struct{}{}
	}
	f.calls[c] = struct{}{}
}

func (f *inflight) remove(c *modernCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.calls, c)
}

// end cancels all calls, and those that come.
func (f *inflight) end(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = why
	for c := range f.calls {
		c.cancel(why)
	}
}
