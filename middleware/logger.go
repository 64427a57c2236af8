// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/mcp"
)

// Logger logs each request and notification to l after it has been served. If l is nil, it
// logs to [slog.Default]. The attributes are
//
//   - method: the method of the request;
//   - name: the name of the tool or prompt, the URI of the resource, or a digest of the ID
//     of the task, if any;
//   - request: the ID assigned by a [RequestID] outside Logger, if any;
//   - version: the protocol version of the request, if it has one;
//   - outcome: "ok"; "isError" if a tool failed; "invalid_arguments" if a tool was not
//     called because its arguments are invalid; "input_required" if the client has to
//     answer a question first; "cancelled" if the request failed after its context was
//     done; "error"; or "panic";
//   - code: the code of an error;
//   - mended: the number of arguments changed to fit the schema, if any;
//   - error: why the request failed, see below;
//   - duration: how long the request took.
//
// Internal errors are logged at level error, and tool failures ([mcp.CallToolResult.Err])
// at level warn, both with the text of the error and its cause, even if the client does not
// see them. Panics are logged at level error, and everything else at level info. For
// invalid arguments, only their locations are logged. Logger does not log arguments,
// results, the text of other errors, which may repeat arguments, or the identity of the
// caller. The query, fragment and user information of URIs are omitted.
//
// A request that asks a question runs again with each answer and is logged each time. A
// panic is logged without its value and then continues; all transports recover it.
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
			return observe(ctx, next, req, func(o outcome) { o.log(ctx, l, req, time.Since(start)) })
		})
	}
}

// log logs one request.
func (o outcome) log(ctx context.Context, l *slog.Logger, req *mcp.Request, duration time.Duration) {
	attrs := identity(ctx, req)
	if version := req.Version(); version != "" {
		attrs = append(attrs, slog.String("version", clip(version)))
	}
	attrs = append(attrs, slog.String("outcome", o.kind))
	if o.code != 0 {
		attrs = append(attrs, slog.Int("code", o.code))
	}
	if o.mended > 0 {
		attrs = append(attrs, slog.Int("mended", o.mended))
	}
	if o.isLogged {
		attrs = append(attrs, slog.Any("error", withoutArguments(o.err)))
	}
	l.LogAttrs(ctx, o.level, "mcp: request", append(attrs, slog.Duration("duration", duration))...)
}

// identity returns the attributes that identify a request.
func identity(ctx context.Context, req *mcp.Request) []slog.Attr {
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs, slog.String("method", clip(req.Method)))
	if name := req.Name(); name != "" {
		attrs = append(attrs, slog.String("name", clip(publicName(req.Method, name))))
	}
	if id := RequestIDFrom(ctx); id != "" {
		attrs = append(attrs, slog.String("request", id))
	}
	return attrs
}

// publicName returns a name that is safe to log: a URI without the parts that can contain
// secrets, or a digest of the ID of a task, which without authentication is all that a
// client needs to use the task.
func publicName(method, name string) string {
	switch {
	case method == mcp.MethodCallTool, method == mcp.MethodGetPrompt:
		return name
	case strings.HasPrefix(method, "tasks/"):
		return redact.Session(name)
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

// maxLogged is the maximum length, in bytes, of logged text from a client.
const maxLogged = 256

func clip(s string) string {
	if len(s) <= maxLogged {
		return s
	}
	return strings.ToValidUTF8(s[:maxLogged], "") + "…"
}

// RequestIDOptions configure [RequestID]. Nil means the zero RequestIDOptions.
type RequestIDOptions struct {
	// Header is the canonical name of the HTTP header that may contain an ID. "" means
	// X-Request-Id, "-" means no header.
	Header string
	// New returns a new ID. Nil means random letters and digits.
	New func() string
}

// RequestID assigns an ID to each request, to correlate the logs of several servers. It is
// the ID already in the context, the ID in the HTTP header, or a new ID, in this order.
// [RequestIDFrom] returns it. [Logger] and [Recover], inside RequestID, log it as the
// attribute request.
//
// The sender of the header chooses the ID, so it must not be trusted. An ID that is longer
// than 128 bytes or contains bytes other than visible ASCII is ignored. The JSON-RPC ID,
// [mcp.Request].ID, is different: it is unique only within one connection. Requests sent by
// a handler do not carry the ID.
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

// RequestIDFrom returns the ID that [RequestID] assigned to the request of ctx, or "".
func RequestIDFrom(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// requestIDOf returns the ID in the values of a header and reports whether it is safe to
// log.
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
