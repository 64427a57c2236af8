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

type challengeKey struct{}

// WithChallenge returns r with the challenge for a caller who was not granted the
// scopes that a handler needs ([mcp.ScopeError]), for authenticating middleware
// around a [Handler]: challenge makes the value of WWW-Authenticate. Without one,
// the challenge names the scopes alone.
func WithChallenge(r *http.Request, challenge func(scopes []string) string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), challengeKey{}, challenge))
}

func challengeOf(ctx context.Context, scopes []string) string {
	if challenge, _ := ctx.Value(challengeKey{}).(func([]string) string); challenge != nil {
		return challenge(scopes)
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(strings.Join(scopes, " "))
	return `Bearer error="insufficient_scope", scope="` + quoted + `"`
}

// refuse sets the headers of an error that HTTP has a status for, and reports that
// status, or 0 if there is none.
func refuse(ctx context.Context, w http.ResponseWriter, err error) int {
	if err == nil {
		return 0
	}
	if scope, ok := errors.AsType[*mcp.ScopeError](err); ok {
		w.Header().Set("WWW-Authenticate", challengeOf(ctx, scope.Required))
		return http.StatusForbidden
	}
	if after, ok := mcp.RetryAfter(err); ok {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10))
		return http.StatusTooManyRequests
	}
	return 0
}

// refusing keeps the error of a request where the HTTP side finds it: a session of
// the legacy era answers with bytes.
type refusing struct{ mcp.Handler }

func (h *refusing) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	res, err := h.Handler.ServeMCP(ctx, req)
	if c, _ := ctx.Value(refusalKey{}).(*requestContext); c != nil {
		c.note(err)
	}
	return res, err
}

// note keeps the last outcome.
func (c *requestContext) note(err error) {
	if err != nil {
		noted := err // a copy, so that only errors cost an allocation
		c.refusal.Store(&noted)
	} else if c.refusal.Load() != nil {
		c.refusal.Store(nil)
	}
}

// outcome is the error that was noted last, or nil.
func (c *requestContext) outcome() error {
	if err := c.refusal.Load(); err != nil {
		return *err
	}
	return nil
}

// forbidden reports whether the caller lacks a scope.
func (c *requestContext) forbidden() bool {
	_, ok := errors.AsType[*mcp.ScopeError](c.outcome())
	return ok
}
