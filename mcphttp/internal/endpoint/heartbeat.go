// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package endpoint

import (
	"fmt"
	"sync"
	"time"
)

// A Beater is a response that is kept alive. Beat sends data that the client ignores.
type Beater interface{ Beat() }

// A Heartbeat keeps a response alive by calling Beat at regular intervals.
type Heartbeat struct {
	endpoint *Endpoint
	response Beater

	mu    sync.Mutex  // held while fire calls Beat
	timer *time.Timer // nil if it is stopped
}

// StartHeartbeat calls Beat at intervals of Options.Heartbeat until Stop is called, or
// never if the interval is not positive. Each call has its own goroutine, so that a client
// that does not read delays no other client.
func (e *Endpoint) StartHeartbeat(response Beater) *Heartbeat {
	h := &Heartbeat{endpoint: e, response: response}
	if e.Heartbeat > 0 {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.timer = time.AfterFunc(e.Heartbeat, h.fire)
	}
	return h
}

func (h *Heartbeat) fire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil && h.endpoint.beat(h.response) {
		h.timer.Reset(h.endpoint.Heartbeat)
	}
}

// Stop ends the heartbeat and waits for a call of Beat to return. It may be called more
// than once. The caller must not hold a lock that Beat acquires.
func (h *Heartbeat) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
		h.timer, h.response = nil, nil // the runtime may keep a stopped timer for a while, and what it refers to
	}
}

// BeatNow calls Beat in a separate goroutine and waits for it. The stack that net/http
// needs to send a response header is freed with that goroutine, whereas the goroutine of
// the request may wait for a long time.
func (e *Endpoint) BeatNow(response Beater) {
	var sending sync.WaitGroup
	sending.Go(func() { e.beat(response) })
	sending.Wait()
}

// beat calls Beat outside the goroutine of the request, where a panic of the response
// writer, which may belong to middleware, would end the process. It recovers from a panic
// and returns false.
func (e *Endpoint) beat(response Beater) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			e.Logger.Error("mcphttp: the response writer panicked when a heartbeat was sent", "panic", fmt.Sprint(v))
		}
	}()
	response.Beat()
	return true
}
