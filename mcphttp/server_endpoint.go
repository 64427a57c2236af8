// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/header"
	"github.com/go-psi/psi/internal/server"
	"github.com/go-psi/psi/mcp"
)

// An endpoint is the part of an HTTP endpoint for MCP that is independent of the revision
// of a request. Use newEndpoint to create one.
type endpoint struct {
	Options

	// Server serves the MCP requests.
	Server *server.Server
	// Requests tracks the HTTP requests in flight, and the work that continues after them.
	Requests async.Tracker
	// InFlight lists what is served, which Kill cancels, and keeps responses alive.
	InFlight inFlightList
	// Close cancels Closing, which ends subscriptions and the streams of sessions. Kill
	// cancels Killed.
	Closing, Killed context.Context

	close, kill context.CancelCauseFunc
	refusal     func(r *http.Request) string
	writers     writerCheck
}

// newEndpoint returns an endpoint that serves h. The defaults of o must have been applied.
func newEndpoint(h mcp.Handler, o *Options) *endpoint {
	g := newGuard(o)
	e := &endpoint{Options: *o, refusal: g.refusal}
	e.Server = server.New(&abortHandler{h}, &server.Options{AskTimeout: o.Sessions.AskTimeout, KeepAlive: o.Sessions.KeepAlive, Logger: o.Logger})
	e.Closing, e.close = context.WithCancelCause(context.Background())
	e.Killed, e.kill = context.WithCancelCause(context.Background())
	e.InFlight.interval, e.InFlight.beat = e.Heartbeat, e.beat
	return e
}

// abortHandler converts a panic with [http.ErrAbortHandler] to one with
// [mcp.ErrAbortHandler].
type abortHandler struct{ mcp.Handler }

// ServeMCP implements [mcp.Handler].
func (a *abortHandler) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			panic(mcp.ErrAbortHandler)
		default:
			panic(v)
		}
	}()
	return a.Handler.ServeMCP(ctx, req)
}

// errShutdown is the error of requests that arrive after Close.
var errShutdown = mcp.Errorf(mcp.CodeInternalError, "the server is shutting down")

// Close refuses new requests and cancels Closing. The returned channel is closed when no
// request is in flight.
func (e *endpoint) Close() (drained <-chan struct{}) {
	drained = e.Requests.Drain()
	e.close(mcp.ErrClosed)
	return drained
}

// Kill cancels Killed and everything that is served.
func (e *endpoint) Kill() {
	e.kill(mcp.ErrClosed)
	e.InFlight.kill()
}

// receive checks a request and reads its body. If the request is refused, receive writes
// the response and returns false. A request whose body has not arrived does not count as in
// flight: a shutdown does not wait for it.
func (e *endpoint) receive(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	if why := e.refusal(r); why != "" {
		writeError(w, http.StatusForbidden, mcp.Errorf(mcp.CodeInvalidRequest, "%s", why))
		return nil, false
	}
	if kind := r.Header.Get("Content-Type"); r.Method == http.MethodPost && !isJSON(kind) {
		writeError(w, http.StatusUnsupportedMediaType, mcp.Errorf(mcp.CodeInvalidRequest, "the Content-Type must be %s, not %q", header.JSON, kind))
		return nil, false
	}
	if encoding := strings.Join(r.Header["Content-Encoding"], ", "); encoding != "" && !strings.EqualFold(encoding, "identity") {
		w.Header().Set("Accept-Encoding", "identity")
		writeError(w, http.StatusUnsupportedMediaType, mcp.Errorf(mcp.CodeInvalidRequest,
			"the Content-Encoding %q is not supported: send the body uncompressed; middleware that decompresses it must delete the header", encoding))
		return nil, false
	}
	return e.receiveBody(w, r)
}

// isJSON reports whether a Content-Type is JSON, ignoring case and parameters.
func isJSON(contentType string) bool {
	if contentType == header.JSON {
		return true
	}
	name, _, err := mime.ParseMediaType(contentType)
	return err == nil && name == header.JSON
}

// receiveBody reads the whole body of a request. If that fails, it writes the response and
// returns false.
func (e *endpoint) receiveBody(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	body, err := e.readBody(w, r)
	if err != nil {
		e.writeBodyError(w, err)
		return nil, false
	}
	e.endBodyTime(w, r)
	return body, true
}

// readBody reads the whole body. A short body whose length is known, the common case, gets only
// the memory it needs, because the handler retains it while it runs. Beyond maxExact, memory is
// allocated only for data that has arrived, whatever length the client announces.
func (e *endpoint) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	length := r.ContentLength
	switch {
	case length > e.MaxBody:
		return nil, &http.MaxBytesError{Limit: e.MaxBody}
	case length <= 0, length > maxExact, length == e.MaxBody: // one byte more would be too long
		return io.ReadAll(http.MaxBytesReader(w, r.Body, e.MaxBody))
	}
	body := make([]byte, 0, length+1) // one more, so that the last Read can find the end
	for len(body) < cap(body) {
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return body, err
		}
	}
	rest, err := io.ReadAll(http.MaxBytesReader(w, r.Body, e.MaxBody-int64(len(body)))) // middleware has made the body longer
	return append(body, rest...), err
}

// maxExact is the maximum announced length for which memory is allocated before the body arrives.
const maxExact = 4 << 10

func (e *endpoint) writeBodyError(w http.ResponseWriter, err error) {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		writeError(w, http.StatusRequestEntityTooLarge, mcp.Errorf(mcp.CodeInvalidRequest, "the body is longer than %d bytes", e.MaxBody))
		return
	}
	if errors.Is(err, os.ErrDeadlineExceeded) { // net/http closes the connection
		writeError(w, http.StatusRequestTimeout, mcp.Errorf(mcp.CodeInvalidRequest, "the body did not arrive within %v", e.BodyTimeout))
		return
	}
	writeError(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeParseError, "the body could not be read"))
}
