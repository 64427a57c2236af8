// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/header"
	"github.com/go-psi/psi/internal/server"
	"github.com/go-psi/psi/mcp"
)

// Values of headers, which are not copied for every response. Middleware must not modify them in
// place.
var (
	valueJSON    = []string{header.JSON}
	valueNoSniff = []string{"nosniff"}
)

// writeMessage writes one JSON message as the whole response.
func writeMessage(w http.ResponseWriter, status int, message []byte) {
	h := w.Header()
	h["Content-Type"] = valueJSON
	h["Content-Length"] = []string{strconv.Itoa(len(message))}
	h["X-Content-Type-Options"] = valueNoSniff
	w.WriteHeader(status)
	_, _ = w.Write(message) //nolint:gosec // it is JSON and says so; a client that has gone needs no answer
}

// writeAccepted acknowledges a message that has no response.
func writeAccepted(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) }

// writeError writes an error response that belongs to no request.
func writeError(w http.ResponseWriter, status int, err error) {
	writeMessage(w, status, core.AppendError(nil, mcp.ID{}, err))
}

// writeRefusal writes the error of a call that is not served.
func writeRefusal(w http.ResponseWriter, status int, c *server.Call) {
	writeMessage(w, status, core.AppendError(nil, c.ID(), c.Err()))
}

// writeNotAllowed refuses a request because of its method. allow lists the permitted methods.
func writeNotAllowed(w http.ResponseWriter, allow, why string) {
	w.Header().Set("Allow", allow)
	writeError(w, http.StatusMethodNotAllowed, mcp.Errorf(mcp.CodeInvalidRequest, "%s", why))
}

// hasStatus reports whether err has an HTTP status in every revision; see
// [setErrorHeaders].
func hasStatus(err error) bool {
	_, lacksScope := errors.AsType[*mcp.ScopeError](err)
	_, isLimited := rateLimit(err)
	return lacksScope || isLimited
}

// rateLimit returns when a caller that is limited may retry. A limit that another server sets
// this one is not the caller's, unless its error is passed on.
func rateLimit(err error) (after time.Duration, isLimited bool) {
	if mcp.CodeOf(err) != mcp.CodeRateLimited {
		return 0, false
	}
	return mcp.RetryAfter(err)
}

// setErrorHeaders sets the headers of an error that has an HTTP status, and returns that
// status. It returns 0 for any other error and for nil.
func setErrorHeaders(ctx context.Context, h http.Header, err error) int {
	if err == nil {
		return 0
	}
	if scope, ok := errors.AsType[*mcp.ScopeError](err); ok {
		h.Set("WWW-Authenticate", challengeFor(ctx, scope.Required))
		return http.StatusForbidden
	}
	if after, ok := rateLimit(err); ok {
		h.Set("Retry-After", strconv.FormatFloat(math.Ceil(after.Seconds()), 'f', 0, 64))
		return http.StatusTooManyRequests
	}
	return 0
}

// challengeFor returns the WWW-Authenticate header for a caller that lacks scopes; see
// [WithChallenge].
func challengeFor(ctx context.Context, scopes []string) string {
	if challenge, _ := ctx.Value(challengeKey{}).(func([]string) string); challenge != nil {
		return challenge(scopes)
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(strings.Join(scopes, " "))
	return `Bearer error="insufficient_scope", scope="` + quoted + `"`
}
