// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-psi/psi/internal/legacyclient"
	"github.com/go-psi/psi/mcp/transport"
)

// openLegacy connects to a server of any revision. The connection translates for the older
// ones.
func (c *Conn) openLegacy(ctx context.Context, t transport.Transport, version string) (err error) {
	o := &c.client.opts
	if slices.Contains(ModernVersions(), version) {
		version = ""
	}
	c.legacy, err = legacyclient.Connect(ctx, t, c.receive, legacyCallbacks{c}, legacyclient.Options{
		Version: version, Pinned: o.Version != "", Capabilities: c.client.sessionCapsJSON,
		Forward: o.Forward, MaxQuestions: o.MaxQuestions, Logger: o.Logger,
	})
	c.wire = privateWire{c.legacy}
	return err
}

// legacyCallbacks implements [legacyclient.Client].
type legacyCallbacks struct{ conn *Conn }

func (b legacyCallbacks) NextID() ID { return b.conn.nextID() }

func (b legacyCallbacks) CheckDiscovery(result json.RawMessage) error {
	d, err := decodeDiscovery(result)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(d.SupportedVersions, func(v string) bool { return slices.Contains(ModernVersions(), v) }) {
		// Some servers answer server/discover but serve only requests of older revisions.
		return fmt.Errorf("%w: the answer to %s names no version that this client speaks", transport.ErrNotUnderstood, MethodDiscover)
	}
	return nil
}

func (b legacyCallbacks) CheckRequest(m *transport.Message) *transport.Error {
	if _, err := requestOf(m); err != nil {
		return toWire(err)
	}
	return nil
}

func (b legacyCallbacks) Answers(method string, params json.RawMessage) bool {
	return b.conn.client.answers(InputRequest{Method: method, Params: params})
}

// Answer pauses all calls: the question may be about any of them.
func (b legacyCallbacks) Answer(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, *transport.Error) {
	resume := b.conn.pauseCalls()
	defer resume()
	answer, err := b.conn.answer(ctx, InputRequest{Method: method, Params: params})
	if err != nil {
		return nil, toWire(err)
	}
	return answer, nil
}

func (b legacyCallbacks) MayAsk(capabilities json.RawMessage, method string, params json.RawMessage) *transport.Error {
	caller := &Request{peer: peer{caps: capabilities}}
	if err := checkCapability(caller, InputRequest{Method: method, Params: params}); err != nil {
		return toWire(err)
	}
	return nil
}

func (b legacyCallbacks) Error(e *transport.Error) error { return fromWire(e) }

func (b legacyCallbacks) Withdrawn(reason string) error { return &CancelError{Reason: reason} }

func (b legacyCallbacks) ProbeSent(ctx context.Context, method string) {
	trace(traceOf(ctx).ProbeSent, method)
}

func (b legacyCallbacks) Retrying(ctx context.Context, method string, err error) {
	_, t := inheritTrace(ctx, b.conn.trace)
	if t != nil {
		trace(t.Retry, RetryInfo{Method: method, Err: err})
	}
}

func (b legacyCallbacks) Reconnecting(ctx context.Context, kind string, err error) {
	_, t := inheritTrace(ctx, b.conn.trace)
	if t != nil {
		trace(t.Reconnect, ReconnectInfo{kind, err})
	}
}

func (b legacyCallbacks) LogDropped(why string, args ...any) { b.conn.logDropped(why, args...) }
