// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/go-psi/psi/mcp"
)

// NewRequest makes a request to call a handler with; see [Client.NewRequest].
func NewRequest(method string, params any) *mcp.Request {
	return new(Client).NewRequest(method, params)
}

var lastID atomic.Int64

// NewRequest makes a request of the newest revision, as a server gets it: with an
// id, and with the metadata that every request must have. What params has in its
// _meta stands; a progress token is the request's id unless it has one. Without
// Capabilities, the client can be asked everything.
//
// Params are as in [mcp.NewRequest]; NewRequest panics if they cannot be encoded.
func (cl *Client) NewRequest(method string, params any) *mcp.Request {
	id := mcp.IntID(lastID.Add(1))
	p, err := newParams(params)
	if err != nil {
		panic(fmt.Sprintf("mcptest: NewRequest: params of %s: %v", method, err))
	}
	caps := cl.Capabilities
	if caps == nil {
		caps = everything()
	}
	p.addMeta(cl.LogLevel, caps)
	p.setDefault(mcp.MetaProgressToken, id)
	req, err := mcp.NewRequest(method, p.encode())
	if err != nil {
		panic(fmt.Sprintf("mcptest: NewRequest: %v", err))
	}
	req.ID, req.Principal = id, cl.Principal
	return req
}

// Do has h serve req, as a transport would, and returns the outcome together with
// the notifications about it. It is bounded by the test's context. What a server
// would log, such as the stack of a panic, goes to the test's output.
func Do(tb testing.TB, h mcp.Handler, req *mcp.Request) (mcp.Result, *Recorder, error) {
	tb.Helper()
	rec := new(Recorder)
	res, err := mcp.Serve(tb.Context(), h, req, rec, logger(tb))
	return res, rec, err
}

func logger(tb testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(tb.Output(), nil)) }

// A Notification is one that a client got.
type Notification struct {
	Method string
	Params json.RawMessage // nil if there are none
}

// Decode decodes the params into v.
func (n Notification) Decode(v any) error {
	if n.Params == nil {
		return nil
	}
	return jsonv2.Unmarshal(n.Params, v)
}

// A Recorder is an [mcp.Notifier] that keeps what it is given, in order. The zero
// Recorder is empty. It is safe for concurrent use.
type Recorder struct {
	mu       sync.Mutex
	recorded []Notification
}

// Notify implements [mcp.Notifier].
func (r *Recorder) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorded = append(r.recorded, Notification{method, slices.Clone(params)})
	return nil
}

// Notifications is what was recorded so far.
func (r *Recorder) Notifications() []Notification {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.recorded)
}
