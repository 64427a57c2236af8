// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// A request can fail because the previous request on its connection was cancelled at that
// moment. This is a race in net/http. The error reports a cancellation although this
// request was not cancelled, or a connection closed by this side.

// unreachable responds to a request that no replica answered.
func (b *balancer) unreachable(w http.ResponseWriter, r *http.Request, err error) {
	b.blame(r, err)
	http.Error(w, err.Error(), http.StatusBadGateway)
}

// watch observes how the response of a replica ends.
func (b *balancer) watch(res *http.Response) error {
	res.Body = &watchedBody{ReadCloser: res.Body, b: b, r: res.Request}
	return nil
}

type watchedBody struct {
	io.ReadCloser

	b *balancer
	r *http.Request
}

func (w *watchedBody) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err != nil {
		w.b.blame(w.r, err)
	}
	return n, err
}

// blame records the client of a request that was ended by this side.
func (b *balancer) blame(r *http.Request, err error) {
	if !errors.Is(err, context.Canceled) && !errors.Is(err, net.ErrClosed) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hurt[flightOf(r.Context()).client] = time.Now()
}
