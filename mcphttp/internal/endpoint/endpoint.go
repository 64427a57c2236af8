// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package endpoint

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"time"

	"github.com/go-psi/psi/internal/drain"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/internal/header"
)

var core = mcp.Internal(seam.Key{})

// Options configure an [Endpoint]. They have no defaults; see those of mcphttp.
type Options struct {
	// MaxBody is the maximum size of a request body, in bytes.
	MaxBody int64
	// Heartbeat is the interval between comments on a silent stream. 0 means none.
	Heartbeat time.Duration
	// WriteTimeout bounds each write to a client.
	WriteTimeout time.Duration
	// BodyTimeout bounds the arrival of a body. 0 means that http.Server does.
	BodyTimeout time.Duration
	// Logger receives diagnostic messages.
	Logger *slog.Logger
}

// An Endpoint is what an HTTP endpoint for MCP knows and does, whatever the revision of a
// request. Use [New] to make one.
type Endpoint struct {
	Options

	// MCP serves the MCP requests.
	MCP mcp.Handler
	// Requests are the HTTP requests in flight, and what goes on after them.
	Requests drain.Tracker
	// Closing ends with Close, and with it subscriptions and the streams of sessions.
	// Killed ends with Kill, and with it all other requests.
	Closing, Killed context.Context

	close, kill context.CancelCauseFunc
	refusal     func(r *http.Request) string
	writers     writerCheck
}

// New returns an Endpoint that serves h. The function refusal says why a request is refused,
// and returns "" if it is not.
func New(h mcp.Handler, opts Options, refusal func(r *http.Request) string) *Endpoint {
	e := &Endpoint{Options: opts, MCP: &abortHandler{h}, refusal: refusal}
	e.Closing, e.close = context.WithCancelCause(context.Background())
	e.Killed, e.kill = context.WithCancelCause(context.Background())
	return e
}

// abortHandler lets a handler panic with [http.ErrAbortHandler].
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

// ErrShutdown is the error of requests after Close.
var ErrShutdown = mcp.Errorf(mcp.CodeInternalError, "the server is shutting down")

// Close lets no request start any more and ends Closing. The channel is closed when no
// request is in flight.
func (e *Endpoint) Close() (drained <-chan struct{}) {
	drained = e.Requests.Drain()
	e.close(mcp.ErrClosed)
	return drained
}

// Kill ends Killed.
func (e *Endpoint) Kill() { e.kill(mcp.ErrClosed) }

// Receive checks a request and reads its body. If the request is refused, Receive
// writes the response and reports false. A request whose body has not arrived does not
// count as in flight: a shutdown does not wait for it.
func (e *Endpoint) Receive(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	if why := e.refusal(r); why != "" {
		WriteError(w, http.StatusForbidden, mcp.Errorf(mcp.CodeInvalidRequest, "%s", why))
		return nil, false
	}
	if kind := r.Header.Get("Content-Type"); r.Method == http.MethodPost && !isJSON(kind) {
		WriteError(w, http.StatusUnsupportedMediaType, mcp.Errorf(mcp.CodeInvalidRequest, "the Content-Type must be %s, not %q", header.JSON, kind))
		return nil, false
	}
	body, err := e.readBody(w, r)
	if err != nil {
		e.writeBodyError(w, err)
		return nil, false
	}
	e.endBodyTime(w, r)
	return body, true
}

// isJSON reports whether a Content-Type is that of JSON, in any case and with any
// parameters.
func isJSON(contentType string) bool {
	if contentType == header.JSON {
		return true
	}
	name, _, err := mime.ParseMediaType(contentType)
	return err == nil && name == header.JSON
}

// readBody reads the whole body. It uses memory for what has arrived only, whatever
// length the client announces.
func (e *Endpoint) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > e.MaxBody {
		return nil, &http.MaxBytesError{Limit: e.MaxBody}
	}
	return readAll(http.MaxBytesReader(w, r.Body, e.MaxBody), r.ContentLength)
}

// readAll is [io.ReadAll] for a body whose length may be known. A short one, as most are, gets
// what it needs: the handler keeps it for as long as it works.
func readAll(r io.Reader, length int64) ([]byte, error) {
	if length <= 0 || length > maxExact {
		return io.ReadAll(r)
	}
	body := make([]byte, 0, length+1) // so that a last Read can find the end
	for len(body) < cap(body) {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return body, err
		}
	}
	rest, err := io.ReadAll(r) // middleware has made the body longer
	return append(body, rest...), err
}

// maxExact is the length up to which a body is trusted to be as long as announced: so much is
// taken before any of it has arrived.
const maxExact = 4 << 10

func (e *Endpoint) writeBodyError(w http.ResponseWriter, err error) {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		WriteError(w, http.StatusRequestEntityTooLarge, mcp.Errorf(mcp.CodeInvalidRequest, "the body is longer than %d bytes", tooLarge.Limit))
		return
	}
	if errors.Is(err, os.ErrDeadlineExceeded) { // net/http closes the connection
		WriteError(w, http.StatusRequestTimeout, mcp.Errorf(mcp.CodeInvalidRequest, "the body did not arrive within %v", e.BodyTimeout))
		return
	}
	WriteError(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeParseError, "the body could not be read"))
}
