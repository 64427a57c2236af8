// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Codes of refusals that the specification leaves to applications. They lie outside
// its range, and are the numbers that HTTP has for the same.
const (
	CodeInsufficientScope = 403
	CodeTimeout           = 408
	CodeTooLarge          = 413
	CodeRateLimited       = 429
)

// A ScopeError says which scopes the caller of a request would need. It is the
// cause of [InsufficientScope]; over HTTP it becomes a challenge, with which a
// client can ask its user for more (basic/authorization#scope-challenge-handling).
type ScopeError struct {
	Required []string // all that the operation needs, also what was granted
}

func (e *ScopeError) Error() string {
	return "mcp: the operation needs the scopes " + strings.Join(e.Required, " ")
}

// InsufficientScope is the error for a caller who was not granted what an operation
// needs. required are all scopes that it needs, not only those that are missing.
func InsufficientScope(required ...string) *Error {
	e := Errorf(CodeInsufficientScope, "the caller was not granted the scopes that this needs: %s", strings.Join(required, " "))
	e.Cause = &ScopeError{required}
	return e.WithData(map[string][]string{"requiredScopes": required})
}

// retryData is the data of [RateLimited].
type retryData struct {
	RetryAfterMs *int64 `json:"retryAfterMs"`
}

// RateLimited is the error for a caller who asks too often or when there is too
// much to do. after is when it may try again, rounded up to milliseconds; negative
// counts as zero.
func RateLimited(after time.Duration, format string, args ...any) *Error {
	ms := max(0, int64((after+time.Millisecond-1)/time.Millisecond))
	return Errorf(CodeRateLimited, "%s", fmt.Sprintf(format, args...)).WithData(retryData{&ms})
}

// RetryAfter reports when the peer who answered with err may be asked again, if err
// is one of [RateLimited], also one that came over a wire.
func RetryAfter(err error) (time.Duration, bool) {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code != CodeRateLimited {
		return 0, false
	}
	var data retryData
	if unmarshal(e.Data, &data) != nil || data.RetryAfterMs == nil {
		return 0, false
	}
	const most = int64(24 * time.Hour / time.Millisecond) // keeps a peer's mistake from overflowing
	return time.Duration(min(max(0, *data.RetryAfterMs), most)) * time.Millisecond, true
}
