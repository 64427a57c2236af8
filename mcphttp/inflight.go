// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// modernCall is one request of the modern era: its context, its answer and its
// heartbeat, in one allocation.
type modernCall struct {
	reply
	request requestContext
	beat    beat
	cancel  context.CancelCauseFunc
	set     *inflight
	expiry  *time.Timer // nil if the call does not end with its caller's authentication
}

// context ends when the client disconnects, which is how it cancels, and when the
// server does not wait for the calls of the set any more. What may outlast the
// authentication of its caller, a subscription, ends with that.
func (c *modernCall) context(r *http.Request, set *inflight) context.Context {
	c.request.Context = r.Context() //nolint:fatcontext // it is nested once: c is new
	c.request.request = r
	ctx, cancel := context.WithCancelCause(&c.request)
	c.cancel, c.set = cancel, set
	if set.expires {
		c.expiry = atExpiry(r, func() { cancel(context.DeadlineExceeded) })
	}
	set.add(c)
	return ctx
}

// end frees what belongs to a call that has been served.
func (c *modernCall) end() {
	c.beat.stop()
	c.out.end()
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
