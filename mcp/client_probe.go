// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
)

// probe finds out the era of a server: it asks server/discover. What is not
// recognizably an answer of the modern era, silence included, means that the
// server is older, and is connected to anew, since it may have closed or exited
// (basic/versioning).
func (c *Client) probe(ctx context.Context, t Transport) (*Conn, error) {
	conn, err := c.connectModern(ctx, t)
	if err == nil || !isNotUnderstood(err) {
		return conn, err
	}
	c.opts.Logger.DebugContext(ctx, "mcp: the server does not speak the modern era", "answer", err)
	legacy, legacyErr := c.connectLegacy(ctx, t, newestLegacy.String())
	if legacyErr != nil {
		return nil, fmt.Errorf("mcp: neither era is spoken: %w (modern: %w)", legacyErr, err)
	}
	return legacy, nil
}

// connectModern makes a connection that speaks the modern era, after discovery. An
// error for which isNotUnderstood is true means that the server is older.
func (c *Client) connectModern(ctx context.Context, t Transport) (*Conn, error) {
	conn := newConn(c)
	era := &modernClient{conn: conn}
	if err := conn.open(ctx, t, era); err != nil {
		return nil, err
	}
	probing, done := withProbeClock(ctx, c.opts.ProbeTimeout)
	defer done()
	if err := era.discover(probing); err != nil {
		_ = conn.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	return conn, nil
}

// errSilent is why a probe ends that nobody answers.
var errSilent = fmt.Errorf("%w: no answer to %s in time", ErrNotUnderstood, MethodDiscover)

// errNotOpened is what a [openError] is.
var errNotOpened = errors.New("mcp: the connection could not be opened")

// openError is the error of a transport that could not connect: a missing program,
// say. It reads as the transport's.
type openError struct{ error }

func (e openError) Unwrap() error      { return e.error }
func (openError) Is(target error) bool { return target == errNotOpened }

// isNotUnderstood tells an older server from one that fails: what the modern era
// has codes for comes from a server that speaks it.
func isNotUnderstood(err error) bool {
	var coded *Error
	switch {
	case errors.As(err, &coded):
		return coded.Code > CodeHeaderMismatch || coded.Code < CodeUnsupportedVersion ||
			coded.Code == CodeUnsupportedVersion && onlyLegacy(coded)
	case errors.Is(err, ErrUnauthorized), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.Is(err, errNotOpened):
		return false
	}
	op, network := errors.AsType[*net.OpError](err)
	return !network || op.Op != "dial" // who is not there speaks nothing
}

// onlyLegacy reports whether a refusal of a version names one of the legacy era, and
// none of this one that can be used.
func onlyLegacy(e *Error) bool {
	var data struct {
		Supported []string `json:"supported"`
	}
	if e.Data == nil || unmarshal(e.Data, &data) != nil {
		return false
	}
	names := func(versions []string) bool {
		return slices.ContainsFunc(data.Supported, func(v string) bool { return slices.Contains(versions, v) })
	}
	return names(LegacyVersions()) && !names(ModernVersions())
}
