// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"fmt"
	"sync"
	"time"
)

// A beater is a response that is kept alive. Beat sends data that the client ignores.
type beater interface{ Beat() }

// A heartbeat keeps a response alive by calling Beat at regular intervals. One list of
// heartbeats was rejected: it takes a process-wide lock twice for each call.
type heartbeat struct {
	endpoint *endpoint
	response beater

	mu    sync.Mutex  // held while fire calls Beat
	timer *time.Timer // nil if it is stopped
}

// startHeartbeat calls Beat at intervals of Options.Heartbeat until Stop is called, or
// never if the interval is not positive. Each call has its own goroutine, so that a client
// that does not read delays no other client.
func (e *endpoint) startHeartbeat(response beater) *heartbeat {
	h := &heartbeat{endpoint: e, response: response}
	if e.Heartbeat > 0 {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.timer = time.AfterFunc(e.Heartbeat, h.fire)
	}
	return h
}

func (h *heartbeat) fire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil && h.endpoint.beat(h.response) {
		h.timer.Reset(h.endpoint.Heartbeat)
	}
}

// Stop ends the heartbeat and waits for a call of Beat to return. It may be called more
// than once. The caller must not hold a lock that Beat acquires.
func (h *heartbeat) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
		h.timer, h.response = nil, nil // the runtime may keep a stopped timer for a while, and what it refers to
	}
}

// beatNow calls Beat in a separate goroutine and waits for it. The stack that net/http
// needs to send a response header is freed with that goroutine, whereas the goroutine of
// the request may wait for a long time.
func (e *endpoint) beatNow(response beater) {
	var sending sync.WaitGroup
	sending.Go(func() { e.beat(response) })
	sending.Wait()
}

// beat calls Beat outside the goroutine of the request, where a panic of the response
// writer, which may belong to middleware, would end the process. It recovers from a panic
// and returns false.
func (e *endpoint) beat(response beater) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			e.Logger.Error("mcphttp: the response writer panicked when a heartbeat was sent", "panic", fmt.Sprint(v))
		}
	}()
	response.Beat()
	return true
}
