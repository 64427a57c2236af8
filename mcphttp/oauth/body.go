// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"bytes"
	"io"
	"net/http"
)

// A body is that of a request, for sending it more than once.
type body struct {
	get   func() (io.ReadCloser, error) // nil if there is none
	once  bool                          // it can be sent a single time only
	sent  bool                          // at least once
	first io.ReadCloser                 // the request's own
}

// keep takes over the body of a request. One that cannot be had again is read, up
// to a limit.
func keep(req *http.Request, limit int64) (*body, error) {
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		return &body{}, nil
	case req.GetBody != nil:
		return &body{get: req.GetBody, first: req.Body}, nil
	case limit < 0 || req.ContentLength > limit:
		return onlyOnce(req.Body), nil
	}
	data, err := io.ReadAll(io.LimitReader(req.Body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return onlyOnce(&rest{io.MultiReader(bytes.NewReader(data), req.Body), req.Body}), nil
	}
	get := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	return &body{get: get, first: req.Body}, nil
}

func onlyOnce(r io.ReadCloser) *body {
	return &body{get: func() (io.ReadCloser, error) { return r, nil }, once: true, first: r}
}

// rest is a reader with the closer of another.
type rest struct {
	io.Reader
	io.Closer
}

// attach gives a request the body, from its beginning.
func (b *body) attach(req *http.Request) (err error) {
	if b.get != nil {
		req.Body, err = b.get()
		b.sent = true
	}
	return err
}

// close closes the request's own body. One that was sent itself was closed then.
func (b *body) close() {
	if gone := b.once && b.sent; b.first != nil && !gone {
		_ = b.first.Close()
	}
}

func closeRequest(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
