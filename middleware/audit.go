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

// An AuditRecord records who requested what, when, and with what outcome.
type AuditRecord struct {
	// Start is when the request reached the middleware. Duration is how long it took.
	Start    time.Time
	Duration time.Duration
	// Caller is the authenticated caller, or nil if there is none.
	Caller *mcp.Principal
	// Method is the method of the request. Name is the name of the tool or prompt, the URI
	// of the resource, or the ID of the task; it is "" for other methods. Both are as sent
	// by the caller, of any length. Without authentication, the ID of a task is all that a
	// client needs to use the task.
	Method, Name string
	// Digest identifies the arguments without revealing them. It is the SHA-256 of their
	// canonical JSON (RFC 8785, except that integers keep all digits) in hexadecimal, or
	// the HMAC if [AuditOptions] has a key. It is "" if there are no arguments.
	Digest string
	// RequestID is the ID assigned by a [RequestID] middleware outside Audit, if any.
	RequestID string
	// Outcome is as in [Logger]: "ok", "isError", "error", "input_required" and so on. Code
	// is the code of an error, or 0 for other outcomes.
	Outcome string
	Code    int
	// Err is the reason the request failed. It is nil if the request succeeded or the
	// reason is unknown. Its text can contain arguments and secrets; [AuditLog] does not
	// log it.
	Err error
}

// AuditOptions configure [Audit]. Nil means the zero AuditOptions.
type AuditOptions struct {
	// Key makes the digests of arguments HMACs. Without a key, a reader of the records can
	// find short arguments by guessing. It should be at least 32 bytes long. Nil means
	// SHA-256.
	Key []byte
}

// Audit calls record for each request, including requests rejected by middleware inside
// Audit. It calls record after the request has been served and before the caller receives
// the result. Notifications are not recorded. A request that asks a question runs again
// with each answer and is recorded each time.
//
// Unlike [Logger], which is for diagnosis, Audit records who did what. Use it around a
// whole mux, outside all middleware that rejects requests:
//
//	mux.Use(middleware.Audit(middleware.AuditLog(logger), nil))
//
// record is called concurrently, and the request waits for it; it must not modify or retain
// the principal. opts may be nil. Audit panics if record is nil.
func Audit(record func(ctx context.Context, r AuditRecord), opts *AuditOptions) mcp.Middleware {
	if record == nil {
		panic("middleware.Audit: the function must not be nil")
	}
	var key []byte
	if opts != nil {
		key = append(key, opts.Key...)
	}
	return func(next mcp.Handler) mcp.Handler {
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
	}
}

// digestOf returns the digest of arguments, or "" if there are none. A digest shows that two
// calls were the same, and can be retained longer than the arguments. The key protects those
// that can be guessed.
func digestOf(arguments jsontext.Value, key []byte) string {
	if arguments == nil {
		return ""
	}
	canonical := arguments.Clone()
	if canonical.Canonicalize(jsontext.CanonicalizeRawInts(false)) != nil {
		canonical = arguments // not valid JSON, so not received from a client
	}
	var h hash.Hash
	if h = sha256.New(); len(key) > 0 {
		h = hmac.New(sha256.New, key)
	}
	h.Write(canonical)
	return hex.EncodeToString(h.Sum(nil))
}

// AuditLog returns a function for [Audit] that logs each record to l at level info. If l is
// nil, it logs to [slog.Default]. The attributes are issuer and caller, which are omitted
// for unauthenticated callers, digest, and, as in [Logger], method, name, request, outcome,
// code and duration. As in Logger, text from callers is truncated, URIs are logged without
// query, fragment and user information, and the IDs of tasks are replaced by digests.
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
