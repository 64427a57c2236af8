// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/mcp"
)

// An AuditRecord says who requested what, when, and how it ended.
type AuditRecord struct {
	// Start is when the request arrived at the middleware, and Duration how long it took.
	Start    time.Time
	Duration time.Duration
	// Caller is the authenticated caller, nil if there is none.
	Caller *mcp.Principal
	// Method is the method of the request, and Name the tool or prompt, the URI of the resource,
	// or the ID of the task, "" for other methods. Both are as the caller wrote them, however
	// long. Without authentication, the ID of a task is all that a client needs to use it.
	Method, Name string
	// Digest identifies the arguments without revealing them: the SHA-256 of their canonical
	// JSON (RFC 8785, except that integers keep all digits) in hexadecimal, or the HMAC if
	// [AuditOptions] has a key. It is "" if there are no arguments.
	Digest string
	// RequestID is the ID that a [RequestID] outside of Audit assigned, if any.
	RequestID string
	// Outcome is as in [Logger]: "ok", "isError", "error", "input_required" and so on. Code
	// is the code of an error, 0 for other outcomes.
	Outcome string
	Code    int
	// Err is why the request failed, nil if it did not, or if that is not known. Its text
	// can contain arguments and secrets; [AuditLog] does not write it.
	Err error
}

// AuditOptions configure [Audit]. Nil means the zero AuditOptions.
type AuditOptions struct {
	// Key makes the digests of arguments HMACs. Without a key, a reader of the records can
	// find short arguments by trying. It should have 32 bytes or more. Nil means SHA-256.
	Key []byte
}

// Audit calls record for each request, also for one that is rejected by middleware inside
// of it, after it has been served and before the caller gets the result. Notifications are
// not recorded. A request that asks a question runs again with each answer, and is
// recorded each time.
//
// Unlike [Logger], which is for finding out what is wrong, Audit says who has done what.
// Use it around a whole mux, outside of everything that rejects requests:
//
//	mux.Use(middleware.Audit(middleware.AuditLog(logger), nil))
//
// record is called concurrently, and the request waits for it; it must not change or keep
// the principal. opts may be nil. Audit panics if record is nil.
func Audit(record func(ctx context.Context, r AuditRecord), opts *AuditOptions) mcp.Middleware {
	if record == nil {
		panic("middleware.Audit: the function must not be nil")
	}
	var key []byte
	if opts != nil {
		key = append(key, opts.Key...)
	}
	return mcp.NewMiddleware(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.IsNotification() {
				return next.ServeMCP(ctx, req)
			}
			r := AuditRecord{
				Start: time.Now(), Caller: principalOf(ctx, req), Method: req.Method, Name: req.Name(),
				Digest: digestOf(jsontext.Value(req.Arguments()), key), RequestID: RequestIDFrom(ctx),
			}
			return observe(ctx, next, req, func(o outcome) {
				r.Duration, r.Outcome, r.Code, r.Err = time.Since(r.Start), o.kind, o.code, o.err
				record(ctx, r)
			})
		})
	})
}

// digestOf returns the digest of arguments, "" if there are none.
func digestOf(arguments jsontext.Value, key []byte) string {
	if arguments == nil {
		return ""
	}
	canonical := arguments.Clone()
	if canonical.Canonicalize(jsontext.CanonicalizeRawInts(false)) != nil {
		canonical = arguments // it is not JSON, and was not received
	}
	var h hash.Hash
	if h = sha256.New(); len(key) > 0 {
		h = hmac.New(sha256.New, key)
	}
	h.Write(canonical)
	return hex.EncodeToString(h.Sum(nil))
}

// AuditLog returns a function for [Audit] that logs each record to l at level info. Nil
// means [slog.Default]. The attributes are issuer and caller, which are left out for
// unauthenticated callers, and then, as in [Logger], method, name, request, outcome, code
// and duration, and digest. As there, texts of callers are cut, URIs are written without query,
// fragment and user information, and digests in place of IDs of tasks.
func AuditLog(l *slog.Logger) func(ctx context.Context, r AuditRecord) {
	if l == nil {
		l = slog.Default()
	}
	return func(ctx context.Context, r AuditRecord) {
		attrs := make([]slog.Attr, 0, 10)
		if r.Caller != nil {
			attrs = append(attrs, slog.String("issuer", r.Caller.Issuer), slog.String("caller", r.Caller.Subject))
		}
		attrs = append(attrs, slog.String("method", clip(r.Method)))
		for _, attr := range []slog.Attr{
			slog.String("name", clip(publicName(r.Method, r.Name))), slog.String("digest", r.Digest), slog.String("request", r.RequestID),
		} {
			if attr.Value.String() != "" {
				attrs = append(attrs, attr)
			}
		}
		attrs = append(attrs, slog.String("outcome", r.Outcome))
		if r.Code != 0 {
			attrs = append(attrs, slog.Int("code", r.Code))
		}
		l.LogAttrs(ctx, slog.LevelInfo, "mcp: audit", append(attrs, slog.Duration("duration", r.Duration))...)
	}
}
