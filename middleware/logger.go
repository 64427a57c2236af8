// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"time"

	"github.com/go-psi/psi/mcp"
)

// Logger logs one line for each request and notification, when it is done, to l,
// or to [slog.Default] if l is nil. Its attributes are
//
//   - method: of the request;
//   - name: of the tool or prompt, or the URI of the resource, if there is one;
//   - request: the id that [RequestID], outside of Logger, gave to it;
//   - version: the protocol version that the request speaks, if it says so;
//   - outcome: "ok"; "isError", if a tool failed; "input_required", if the client
//     has to answer a question first; "cancelled"; "error"; or "panic";
//   - code: of an error;
//   - duration: how long it took.
//
// An internal error is logged at level error, with its text and cause as the
// attribute error; everything else at level info. Neither arguments nor results
// are logged, nor the text of any other error, which may repeat them, nor who
// called. What follows a question mark or a number sign in a URI, and the user
// information in it, are left out, too.
//
// A request that asks runs once more for each answer, and has a line each time. A
// panic is logged, without its value, and goes on to whoever recovers it, which
// all transports do.
func Logger(l *slog.Logger) mcp.Middleware {
	if l == nil {
		l = slog.Default()
	}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if !l.Enabled(ctx, slog.LevelError) && !l.Enabled(ctx, slog.LevelInfo) {
				return next.ServeMCP(ctx, req)
			}
			start := time.Now()
			return watched(ctx, next, req, func(o outcome) { o.log(ctx, l, req, time.Since(start)) })
		})
	}
}

// log logs one request.
func (o outcome) log(ctx context.Context, l *slog.Logger, req *mcp.Request, duration time.Duration) {
	attrs := identity(ctx, req)
	if version := req.Version(); version != "" {
		attrs = append(attrs, slog.String("version", clipped(version)))
	}
	attrs = append(attrs, slog.String("outcome", o.kind))
	if o.code != 0 {
		attrs = append(attrs, slog.Int("code", o.code))
	}
	if o.err != nil {
		attrs = append(attrs, slog.Any("error", o.err))
	}
	l.LogAttrs(ctx, o.level, "mcp: request", append(attrs, slog.Duration("duration", duration))...)
}

// identity are the attributes that say which request something is about.
func identity(ctx context.Context, req *mcp.Request) []slog.Attr {
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs, slog.String("method", clipped(req.Method)))
	if name := req.Name(); name != "" {
		attrs = append(attrs, slog.String("name", clipped(publicName(req.Method, name))))
	}
	if id := RequestIDFrom(ctx); id != "" {
		attrs = append(attrs, slog.String("request", id))
	}
	return attrs
}

// publicName is a name without the parts of a URI in which secrets travel.
func publicName(method, name string) string {
	if method == mcp.MethodCallTool || method == mcp.MethodGetPrompt {
		return name
	}
	if i := strings.IndexAny(name, "?#"); i >= 0 {
		name = name[:i]
	}
	scheme, rest, ok := strings.Cut(name, "://")
	if !ok {
		return name
	}
	authority, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + rest[strings.LastIndexByte(authority, '@')+1:]
}

// maxLogged is how much of what a client chose is logged.
const maxLogged = 256

func clipped(s string) string {
	if len(s) <= maxLogged {
		return s
	}
	return strings.ToValidUTF8(s[:maxLogged], "") + "…"
}

// watched serves a request and tells how it ended, also if that is in a panic, which
// goes on to whoever recovers it.
func watched(ctx context.Context, next mcp.Handler, req *mcp.Request, tell func(outcome)) (res mcp.Result, err error) {
	returned := false
	defer func() {
		o := outcome{kind: panicked, level: slog.LevelError}
		if returned {
			o = outcomeOf(ctx, res, err)
		}
		tell(o)
	}()
	res, err = next.ServeMCP(ctx, req)
	returned = true
	return res, err
}

// panicked is the kind of an outcome that is none: whoever recovers it answers with an
// internal error.
const panicked = "panic"

// outcome is what the operator may know of how a request ended.
type outcome struct {
	kind  string
	level slog.Level
	code  int   // 0 unless it is an error
	err   error // that the operator should see
}

func outcomeOf(ctx context.Context, res mcp.Result, err error) outcome {
	switch {
	case err != nil && ctx.Err() != nil:
		return outcome{kind: "cancelled"}
	case mcp.CodeOf(err) == mcp.CodeInternalError:
		return outcome{kind: "error", level: slog.LevelError, code: mcp.CodeInternalError, err: err}
	case err != nil:
		return outcome{kind: "error", code: mcp.CodeOf(err)}
	}
	switch r := res.(type) {
	case *mcp.InputRequired:
		return outcome{kind: "input_required"}
	case *mcp.CallToolResult:
		if r != nil && r.IsError {
			return outcome{kind: "isError"}
		}
	}
	return outcome{kind: "ok"}
}

// RequestIDOptions configure [RequestID]. Nil means the zero RequestIDOptions.
type RequestIDOptions struct {
	// Header is the canonical name of the HTTP header that may bring an id. ""
	// means X-Request-Id, "-" that none does.
	Header string
	// New makes an id. Nil means one of 26 random letters and digits.
	New func() string
}

// RequestID gives requests an id by which the log lines of several servers can be
// brought together: that of the middleware before it, that of the request's HTTP
// header, or a new one. [RequestIDFrom] finds it, and [Logger] and [Recover], inside
// of RequestID, log it as the attribute request.
//
// Whoever sends the header chooses the id, so that nothing may depend on it. One
// that is longer than 128 bytes, or has anything in it but visible ASCII, is not
// taken. The id of JSON-RPC, [mcp.Request].ID, is something else: it is unique on one
// connection only. Requests that a handler sends do not carry the id.
func RequestID(opts *RequestIDOptions) mcp.Middleware {
	var o RequestIDOptions
	if opts != nil {
		o = *opts
	}
	if o.Header == "" {
		o.Header = "X-Request-Id"
	}
	if o.New == nil {
		o.New = rand.Text
	}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if RequestIDFrom(ctx) != "" {
				return next.ServeMCP(ctx, req)
			}
			id, ok := requestIDOf(req.Header[o.Header])
			if !ok {
				id = o.New()
			}
			return next.ServeMCP(context.WithValue(ctx, requestIDKey{}, id), req)
		})
	}
}

type requestIDKey struct{}

// RequestIDFrom is the id that [RequestID] gave to the request of ctx, or "".
func RequestIDFrom(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// requestIDOf is the id that the values of a header bring, if it can be logged.
func requestIDOf(values []string) (id string, ok bool) {
	if len(values) != 1 || values[0] == "" || len(values[0]) > 128 {
		return "", false
	}
	for _, c := range []byte(values[0]) {
		if c <= ' ' || c > '~' {
			return "", false
		}
	}
	return values[0], true
}
