// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"net/http"
	"time"
)

// deadlineWriter bounds the time that a client may take to read a response. The
// deadline is set when the response begins, not when the request arrives: a handler
// may take as long as it likes. It is left in place, because net/http writes a small
// response after the handler has returned; net/http removes it before the next request
// of an HTTP/1 connection, and on HTTP/2 it belongs to the stream. An output, which
// writes more than one part, sets a deadline for each of them.
type deadlineWriter struct {
	http.ResponseWriter
	timeout time.Duration
}

// WriteHeader implements [http.ResponseWriter].
func (w *deadlineWriter) WriteHeader(status int) {
	control := http.NewResponseController(w.ResponseWriter)
	_ = control.SetWriteDeadline(time.Now().Add(w.timeout)) // not all writers have deadlines
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// limitTime replaces the timeouts of http.Server, which bound a whole request, by those
// of the options: BodyTimeout for the body, from now on, and WriteTimeout for each
// write.
func limitTime(w http.ResponseWriter, r *http.Request, o *Options) http.ResponseWriter {
	control := http.NewResponseController(w)
	if r.ContentLength != 0 && o.BodyTimeout > 0 {
		_ = control.SetReadDeadline(time.Now().Add(o.BodyTimeout)) // net/http removes it at the end of the body
	}
	switch {
	case r.ProtoMajor > 1:
		_ = control.SetWriteDeadline(time.Time{}) // http.Server's would reset the stream while the handler works
	case r.Header["Expect"] != nil:
		_ = control.SetWriteDeadline(time.Now().Add(o.WriteTimeout)) // net/http writes what is expected when the body is read
	}
	return &deadlineWriter{w, o.WriteTimeout}
}
