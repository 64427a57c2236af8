// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient

import (
	"context"
	"errors"
	"slices"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp/transport"
)

// A refusal is an error response of the server. It wraps the client's own error for it.
type refusal struct {
	response *transport.Error
	own      error
}

func (c *Conn) refusal(e *transport.Error) *refusal { return &refusal{e, c.client.Error(e)} }

func (r *refusal) Error() string { return r.own.Error() }

func (r *refusal) Unwrap() error { return r.own }

// answersAsOlder reports whether an error of server/discover means that the server does not
// speak the newest revision, latest, and whether that is certain. An error is inconclusive
// if the server is unreachable, temporarily unavailable or requires authorization. Silence
// means nothing, and no timeout decides: npx and containers take long to start.
func answersAsOlder(err error, latest string) (older, sure bool) {
	switch {
	case errors.Is(err, transport.ErrUnauthorized), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false, false
	case errors.Is(err, transport.ErrNotUnderstood):
		return true, true
	case errors.Is(err, transport.ErrUnreadable):
		return true, false
	}
	r, ok := errors.AsType[*refusal](err)
	switch {
	case !ok || async.IsTransient(err):
		return false, false
	case r.response.Code == codeUnsupportedVersion:
		return namesOnlyOlder(r, latest), true
	case r.response.Code == codeHeaderMismatch, r.response.Code == codeMissingCapability:
		return false, false
	}
	switch r.response.Code {
	case 401, 403, 407, 429: // HTTP status codes: the server refuses the caller, not the method
		return false, false
	}
	return true, true
}

// namesOnlyOlder reports whether an error for an unsupported version lists older revisions
// but not the newest one.
func namesOnlyOlder(r *refusal, latest string) bool {
	var data struct {
		Supported []string `json:"supported"`
	}
	if r.response.Data == nil || strictjson.Unmarshal(r.response.Data, &data) != nil {
		return false
	}
	isOlder := func(version string) bool { return revision.Parse(version) != revision.None }
	return slices.ContainsFunc(data.Supported, isOlder) && !slices.Contains(data.Supported, latest)
}

// isDone reports whether a connection has ended or is about to end.
func isDone(w transport.Conn) bool {
	select {
	case <-w.Done():
		return true
	default:
		return w.Err() != nil
	}
}
