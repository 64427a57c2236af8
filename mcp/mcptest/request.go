// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/go-psi/psi/mcp"
)

// NewRequest returns a request of the zero [Client]; see [Client.NewRequest].
func NewRequest(method string, params any) *mcp.Request {
	return new(Client).NewRequest(method, params)
}

var lastID atomic.Int64

// NewRequest returns a request of the newest revision as a server receives it: with an id and
// the metadata that every request must have. Members of _meta in params are kept. If there is
// no progress token, the id of the request is used. If Options.Capabilities is nil, the
// client has all capabilities.
//
// The params are as in [mcp.NewRequest]; NewRequest panics if they cannot be encoded.
func (cl *Client) NewRequest(method string, params any) *mcp.Request {
	bare := must(mcp.NewRequest(method, params))
	members := map[string]json.RawMessage{}
	if raw := bare.Params(); raw != nil {
		if err := jsonv2.Unmarshal(raw, &members); err != nil {
			panic(err) // mcp.NewRequest has checked that they are an object
		}
	}
	id, meta := mcp.IntID(lastID.Add(1)), bare.Meta()
	cl.addMeta(&meta, id)
	members["_meta"] = must(jsonv2.Marshal(meta))
	req := must(mcp.NewRequest(method, members))
	req.ID, req.Principal = id, cl.Principal
	return req
}

// must returns v, and panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic("mcptest: " + err.Error())
	}
	return v
}

// addMeta adds missing metadata of the modern era.
func (cl *Client) addMeta(meta *mcp.Meta, id mcp.ID) {
	addDefault := func(key string, value any) {
		if _, ok := (*meta)[key]; !ok {
			meta.Set(key, value)
		}
	}
	addDefault(mcp.MetaProtocolVersion, mcp.LatestVersion)
	addDefault(mcp.MetaClientCapabilities, cmp.Or(cl.Options.Capabilities, allCapabilities()))
	addDefault(mcp.MetaClientInfo, self)
	addDefault(mcp.MetaProgressToken, id)
	if level := cl.Options.LogLevel; level != "" {
		addDefault(mcp.MetaLogLevel, level)
	}
}

func allCapabilities() *mcp.ClientCapabilities {
	yes := new(struct{})
	return &mcp.ClientCapabilities{
		Elicitation: &mcp.ElicitationCapability{Form: yes, URL: yes},
		Sampling:    &mcp.SamplingCapability{Context: yes, Tools: yes},
		Roots:       &mcp.RootsCapability{},
	}
}

// Do serves req with h, as a transport would, and returns the result, the notifications about
// the request, and the error. The request is cancelled with the context of the test. Logs,
// such as the stack of a panic, are written to the output of the test.
func Do(tb testing.TB, h mcp.Handler, req *mcp.Request) (mcp.Result, *Recorder, error) {
	tb.Helper()
	if h == nil {
		tb.Fatal("mcptest: Do: the handler is nil")
	}
	rec := new(Recorder)
	res, err := core.Serve(tb.Context(), h, req, rec, logger(tb))
	return res, rec, err
}

// As returns middleware that makes p the authenticated caller of every request. Use it where
// a [Client] cannot be used, such as around the handler of [mcp.InProcess] or below an HTTP
// router. Sessions of the legacy era still belong to the caller that the transport
// authenticated, which is not p.
func As(p *mcp.Principal) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			req = req.Clone()
			req.Principal = p
			return next.ServeMCP(core.ContextWithRequest(ctx, req), req)
		})
	}
}

func logger(tb testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(tb.Output(), nil)) }

// A Notification is a notification as a client receives it.
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

// A Recorder records notifications in order. The zero Recorder is empty and ready to use. It
// is safe for concurrent use.
type Recorder struct {
	mu       sync.Mutex
	recorded []Notification
}

// Notify records a notification.
func (r *Recorder) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorded = append(r.recorded, Notification{method, slices.Clone(params)})
	return nil
}

// Notifications returns the recorded notifications.
func (r *Recorder) Notifications() []Notification {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.recorded)
}
