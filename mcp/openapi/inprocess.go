// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/go-chi/chi/v5"
)

// inProcess is a transport that calls a handler in the goroutine of the caller.
type inProcess struct{ handler http.Handler }

var errAborted = errors.New("openapi: the handler aborted the response")

func (t inProcess) RoundTrip(r *http.Request) (_ *http.Response, err error) {
	defer func() {
		if v := recover(); v == http.ErrAbortHandler { //nolint:errorlint // it is a sentinel of net/http
			err = errAborted
		} else if v != nil {
			panic(v)
		}
	}()
	// The context may be of a request to a chi router, which would take this one for a request
	// to its sub-router.
	ctx := context.WithValue(r.Context(), chi.RouteCtxKey, (*chi.Context)(nil))
	in := r.Clone(ctx)
	in.RequestURI, in.Host = in.URL.RequestURI(), in.URL.Host
	if in.RemoteAddr == "" {
		in.RemoteAddr = "192.0.2.1:0" // of no network; a loopback address would be trusted
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := &response{header: http.Header{}}
	t.handler.ServeHTTP(w, in)
	w.WriteHeader(http.StatusOK)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if w.sent.Get("Content-Type") == "" && w.body.Len() > 0 {
		w.sent.Set("Content-Type", http.DetectContentType(w.body.Bytes()))
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// A response is a bounded http.ResponseWriter.
type response struct {
	header, sent http.Header
	status       int
	body         bytes.Buffer
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	if w.status == 0 && (status < 100 || status >= 200) {
		w.status, w.sent = status, w.header.Clone()
	}
}

// Write keeps one byte more than a response may have, so that the reader notices.
func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	n, _ := w.body.Write(p[:min(len(p), maxResponse+1-w.body.Len())])
	if n < len(p) {
		return n, errors.New("openapi: the response is too large")
	}
	return n, nil
}

// Flush implements http.Flusher. It does nothing.
func (*response) Flush() {}
