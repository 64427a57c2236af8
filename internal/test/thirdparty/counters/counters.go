// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package counters

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/go-psi/psi/mcp"
)

// The names of the extension, of its method and of its notification.
const (
	Extension           = "example.com/counters"
	MethodAdd           = "counters/add"
	NotificationReached = "notifications/counters/reached"
)

// AddParams are the params of counters/add.
type AddParams struct {
	Counter string `json:"counter"`
	By      int    `json:"by"`
}

// AddResult is the result of counters/add.
type AddResult struct {
	mcp.ResultBase
	Total int `json:"total"`
}

// ReachedParams are the params of notifications/counters/reached.
type ReachedParams struct {
	Counter string `json:"counter"`
	At      int    `json:"at"`
}

// Register adds the extension to a mux, which declares it. A notification is sent each time a
// counter passes a multiple of round.
func Register(mux *mcp.Mux, round int) {
	mux.Handle(MethodAdd, &handler{round: round, totals: map[string]int{}})
}

// A handler serves counters/add, and declares the extension.
type handler struct {
	round int

	mu     sync.Mutex
	totals map[string]int
}

// Extension implements mcp.ServerExtension.
func (h *handler) Extension() (string, json.RawMessage) {
	settings, _ := json.Marshal(map[string]int{"round": h.round})
	return Extension, settings
}

// ServeMCP implements mcp.Handler.
func (h *handler) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if !req.ClientCapabilities().HasExtension(Extension) {
		return nil, mcp.NewMethodNotFoundError(req.Method)
	}
	var p AddParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	if p.Counter == "" || p.By <= 0 {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "params.counter must not be empty, and params.by must be above 0")
	}
	h.mu.Lock()
	before := h.totals[p.Counter]
	after := before + p.By
	h.totals[p.Counter] = after
	h.mu.Unlock()
	if at := after - after%h.round; at > before {
		_ = req.Notify(ctx, NotificationReached, &ReachedParams{p.Counter, at}) // the client may have gone
	}
	return &AddResult{Total: after}, nil
}

// Client returns the extension for [mcp.ClientOptions].
func Client() *mcp.ClientExtension {
	return &mcp.ClientExtension{ID: Extension, NewResult: func(method, _ string) mcp.Result {
		if method == MethodAdd {
			return new(AddResult)
		}
		return nil
	}}
}

// Add adds to a counter of the server and returns the new total.
func Add(ctx context.Context, c mcp.Doer, counter string, by int) (int, error) {
	res, err := mcp.Do[*AddResult](ctx, c, MethodAdd, &AddParams{counter, by})
	if err != nil {
		return 0, err
	}
	return res.Total, nil
}

// OnReached returns a function for [mcp.ClientOptions] that calls reached for each
// notification of the extension, and next, unless it is nil, for all others.
func OnReached(reached func(ReachedParams), next func(context.Context, *mcp.Conn, *mcp.Request)) func(context.Context, *mcp.Conn, *mcp.Request) {
	return func(ctx context.Context, c *mcp.Conn, note *mcp.Request) {
		var p ReachedParams
		switch {
		case note.Method == NotificationReached && note.Decode(&p) == nil:
			reached(p)
		case next != nil:
			next(ctx, c, note)
		}
	}
}
