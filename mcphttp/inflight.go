// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"net/http"
	"sync"
)

// modernCall is one request of the modern era: its context, its answer and its
// heartbeat, in one allocation.
type modernCall struct {
	reply
	request requestContext
	beat    repeater
	cancel  context.CancelCauseFunc
}

// context ends when the client disconnects, which is how it cancels, and when the
// server does not wait for the call any more.
func (c *modernCall) context(r *http.Request, all *inflight) context.Context {
	c.request.Context = r.Context() //nolint:fatcontext // it is nested once: c is new
	c.request.request = r
	ctx, cancel := context.WithCancelCause(&c.request)
	c.cancel = cancel
	all.add(c)
	return ctx
}

// inflight are the calls that are being served. They are kept in a set, and not each
// told by a context of the server's, because every call would pay for that.
type inflight struct {
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

// remove frees what belongs to the context of a call that has been served.
func (f *inflight) remove(c *modernCall) {
	f.mu.Lock()
	delete(f.calls, c)
	f.mu.Unlock()
	c.cancel(nil)
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
