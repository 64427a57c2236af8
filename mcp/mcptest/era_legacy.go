// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"

	"github.com/go-psi/psi/mcp"
)

// legacyEra is a client with a session.
type legacyEra struct {
	*Conn
	opened mcp.InitializeResult
	stream sync.Once // for what the server says of its own accord
	failed error     // of stream
}

func (e *legacyEra) version() string { return cmp.Or(e.opened.ProtocolVersion, e.client.Version) }

func (e *legacyEra) open(ctx context.Context) error {
	init := &mcp.InitializeParams{
		ProtocolVersion: e.client.Version,
		Capabilities:    mustMarshal(e.client.capabilities()),
		ClientInfo:      mustMarshal(self),
	}
	opened, err := send[mcp.InitializeResult](ctx, e.Conn, "initialize", init)
	if err != nil {
		return err
	}
	e.opened = *opened
	if err := e.sendNotification(ctx, "notifications/initialized", nil); err != nil {
		return err
	}
	if e.client.LogLevel == "" {
		return nil
	}
	return e.setLogLevel(ctx, e.client.LogLevel)
}

func (e *legacyEra) addMeta(*params) {}

func (e *legacyEra) request(ctx context.Context, method string, p *params) (json.RawMessage, error) {
	return e.roundTrip(ctx, method, p, nil)
}

func (e *legacyEra) answer(ctx context.Context, req *mcp.Request) (any, error) {
	if req.Method == "ping" {
		return &mcp.EmptyResult{}, nil
	}
	return e.client.answer(ctx, req.Method, req.Params())
}

func (e *legacyEra) discover(context.Context) (*mcp.DiscoverResult, error) {
	d := &mcp.DiscoverResult{Capabilities: e.opened.Capabilities, Instructions: e.opened.Instructions}
	d.SupportedVersions = []string{e.opened.ProtocolVersion}
	d.Meta.Set(mcp.MetaServerInfo, e.opened.ServerInfo)
	return d, nil
}

func (e *legacyEra) setLogLevel(ctx context.Context, level mcp.LoggingLevel) error {
	_, err := e.Request(ctx, "logging/setLevel", map[string]any{"level": level})
	return err
}

// listen subscribes to resources. Of changes to lists, the era tells unasked.
func (e *legacyEra) listen(ctx context.Context, f mcp.SubscriptionFilter) (*Subscription, error) {
	if e.stream.Do(func() { e.failed = e.openStream(ctx) }); e.failed != nil {
		return nil, e.failed
	}
	s := &Subscription{Accepted: e.offered(f), done: make(chan struct{})}
	for _, uri := range f.ResourceSubscriptions {
		if _, err := e.Request(ctx, "resources/subscribe", map[string]any{"uri": uri}); err == nil {
			s.Accepted.ResourceSubscriptions = append(s.Accepted.ResourceSubscriptions, uri)
		}
	}
	e.work.Go(func() {
		defer close(s.done)
		select {
		case <-ctx.Done():
			s.err = context.Cause(ctx)
			e.unsubscribe(e.ctx, s.Accepted.ResourceSubscriptions)
		case <-e.ctx.Done():
			s.err = context.Cause(e.ctx)
		}
	})
	return s, nil
}

// openStream opens the stream for what belongs to no request. The era has no word
// for it being open: what the server does before it answers about subscriptions
// includes that.
func (e *legacyEra) openStream(ctx context.Context) error {
	if err := e.wire.listen(e.ctx); err != nil {
		return err
	}
	e.unsubscribe(ctx, []string{"mcptest:nothing"})
	return nil
}

// offered is the part of a filter that the server's capabilities cover.
func (e *legacyEra) offered(f mcp.SubscriptionFilter) mcp.SubscriptionFilter {
	caps := e.opened.Capabilities
	return mcp.SubscriptionFilter{
		ToolsListChanged:     f.ToolsListChanged && caps.Tools != nil && caps.Tools.ListChanged,
		PromptsListChanged:   f.PromptsListChanged && caps.Prompts != nil && caps.Prompts.ListChanged,
		ResourcesListChanged: f.ResourcesListChanged && caps.Resources != nil && caps.Resources.ListChanged,
	}
}

func (e *legacyEra) unsubscribe(ctx context.Context, uris []string) {
	for _, uri := range uris {
		_, _ = e.Request(ctx, "resources/unsubscribe", map[string]any{"uri": uri})
	}
}
