// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
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
			return watched(ctx, next, req, func(o outcome) { o.log(ctx, l, req, start) })
		})
	}
}

// log hands the record to the handler itself: a Logger would look up from where it was
// called, which is always here, and the time once more.
func (o outcome) log(ctx context.Context, l *slog.Logger, req *mcp.Request, start time.Time) {
	if !l.Enabled(ctx, o.level) {
		return
	}
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
	now := time.Now()
	record := slog.NewRecord(now, o.level, "mcp: request", 0)
	record.AddAttrs(append(attrs, slog.Duration("duration", now.Sub(start)))...)
	_ = l.Handler().Handle(ctx, record) // nor could a Logger do anything about an error
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
