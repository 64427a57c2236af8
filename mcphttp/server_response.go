// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-psi/psi/mcp"
)

// writeMessage writes one JSON message as the whole response.
func writeMessage(w http.ResponseWriter, status int, message []byte) {
	header := w.Header()
	header.Set("Content-Type", typeJSON)
	header.Set("Content-Length", strconv.Itoa(len(message)))
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(message) //nolint:gosec // it is JSON and says so; a client that has gone needs no answer
}

// writeAccepted acknowledges a message that has no response.
func writeAccepted(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) }

// writeError writes an error response that belongs to no request.
func writeError(w http.ResponseWriter, status int, err error) {
	writeMessage(w, status, mcp.AppendErrorResponse(nil, mcp.ID{}, err))
}

// writeUnavailable refuses a request that may succeed later.
func writeUnavailable(w http.ResponseWriter, id mcp.ID, err error) {
	w.Header().Set("Retry-After", "60")
	writeMessage(w, http.StatusServiceUnavailable, mcp.AppendErrorResponse(nil, id, err))
}

// statusOf returns the HTTP status of a modern response. Errors for which the
// specification names no status are sent with 200.
func statusOf(err error) int {
	switch mcp.CodeOf(err) {
	case mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedVersion:
		return http.StatusBadRequest
	case mcp.CodeMethodNotFound:
		return http.StatusNotFound
	default:
		return http.StatusOK
	}
}

// setErrorHeaders sets the headers of an error that HTTP has a status for and returns
// that status. It returns 0 for any other error and for nil.
func setErrorHeaders(ctx context.Context, header http.Header, err error) int {
	if err == nil {
		return 0
	}
	if scope, ok := errors.AsType[*mcp.ScopeError](err); ok {
		header.Set("WWW-Authenticate", challengeFor(ctx, scope.Required))
		return http.StatusForbidden
	}
	if after, ok := mcp.RetryAfter(err); ok {
		header.Set("Retry-After", strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10))
		return http.StatusTooManyRequests
	}
	return 0
}

func challengeFor(ctx context.Context, scopes []string) string {
	if challenge, _ := ctx.Value(challengeKey{}).(func([]string) string); challenge != nil {
		return challenge(scopes)
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(strings.Join(scopes, " "))
	return `Bearer error="insufficient_scope", scope="` + quoted + `"`
}

// deadlineWriter bounds the time that a client may take to read a response. The
// deadline is set when the response starts, not when the request arrives, so a handler
// may take as long as it needs. The deadline stays in place because net/http writes
// small responses after the handler has returned. net/http removes it before the next
// request of an HTTP/1 connection; on HTTP/2 it belongs to the stream. An eventWriter
// sets a new deadline for each event.
type deadlineWriter struct {
	http.ResponseWriter
	timeout time.Duration
}

// WriteHeader implements [http.ResponseWriter].
func (w *deadlineWriter) WriteHeader(status int) {
	control := http.NewResponseController(w.ResponseWriter)
	_ = control.SetWriteDeadline(time.Now().Add(w.timeout)) // not all writers support deadlines
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// limitTime replaces the timeouts of http.Server, which bound a whole request, by
// BodyTimeout for the body and WriteTimeout for each write.
func limitTime(w http.ResponseWriter, r *http.Request, o *Options) http.ResponseWriter {
	control := http.NewResponseController(w)
	if r.ContentLength != 0 && o.BodyTimeout > 0 {
		_ = control.SetReadDeadline(time.Now().Add(o.BodyTimeout)) // net/http removes it at the end of the body
	}
	switch {
	case r.ProtoMajor > 1:
		_ = control.SetWriteDeadline(time.Time{}) // http.Server's would reset the stream while the handler works
	case r.Header["Expect"] != nil:
		_ = control.SetWriteDeadline(time.Now().Add(o.WriteTimeout)) // net/http sends 100 Continue when the body is read
	}
	return &deadlineWriter{w, o.WriteTimeout}
}
