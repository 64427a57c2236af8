// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
	"time"
)

// A balancer sends each request to the next replica, regardless of its session.
type balancer struct {
	replicas []string // addresses
	turn     atomic.Uint64
	next     http.RoundTripper
}

func newBalancer(replicas []string) http.Handler {
	b := &balancer{replicas: replicas, next: &http.Transport{
		MaxIdleConnsPerHost: 64, DialContext: (&net.Dialer{Timeout: time.Second}).DialContext,
	}}
	return &httputil.ReverseProxy{
		Transport: b,
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.Host = "http", "" },
		ErrorLog:  slog.NewLogLogger(slog.DiscardHandler, 0), // failing replicas are expected here
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
}

// RoundTrip sends a request to the next replica that accepts the connection. A request that
// may have reached a replica is not sent again, because the replica may have executed it.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	var err error
	first := b.turn.Add(1)
	for i := range uint64(len(b.replicas)) {
		attempt := r.Clone(r.Context())
		attempt.URL.Host = b.replicas[(first+i)%uint64(len(b.replicas))]
		attempt.Body = io.NopCloser(http.NoBody) // http.Transport would send it again if it knew that there is none
		if r.Body != nil {
			attempt.Body = io.NopCloser(r.Body) // a failed attempt closes the body
		}
		var res *http.Response
		if res, err = b.next.RoundTrip(attempt); err == nil {
			return res, nil
		}
		if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
			break
		}
	}
	return nil, err
}
