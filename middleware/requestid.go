// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"crypto/rand"

	"github.com/go-psi/psi/mcp"
)

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
