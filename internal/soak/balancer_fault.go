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

// A request can fail because the one before it on its connection was cancelled just
// then. That is net/http's doing. Its error is that of a cancellation, though nobody
// has cancelled this request, or of a connection that this side has closed.

// unreachable answers what no replica has answered.
func (b *balancer) unreachable(w http.ResponseWriter, r *http.Request, err error) {
	b.blame(r, err)
	http.Error(w, err.Error(), http.StatusBadGateway)
}

// watch sees how the answer of a replica ends.
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

// blame remembers a client whose request this side has ended.
func (b *balancer) blame(r *http.Request, err error) {
	if !errors.Is(err, context.Canceled) && !errors.Is(err, net.ErrClosed) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hurt[flightOf(r.Context()).client] = time.Now()
}
