// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/go-psi/psi/mcp"
)

// modernEra is a client whose requests stand alone.
type modernEra struct{ *Conn }

// maxRounds is how often one request may ask.
const maxRounds = 64

func (e *modernEra) version() string { return cmp.Or(e.client.Version, mcp.LatestVersion) }

func (e *modernEra) open(context.Context) error { return nil }

func (e *modernEra) addMeta(p *params) {
	p.setDefault(mcp.MetaProtocolVersion, e.version())
	p.addMeta(e.logLevel(), e.client.capabilities())
}

func (c *Conn) logLevel() mcp.LoggingLevel {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level
}

// request sends the request again, with the answers, as long as the server asks.
func (e *modernEra) request(ctx context.Context, method string, p *params) (json.RawMessage, error) {
	for range maxRounds {
		raw, err := e.roundTrip(ctx, method, p, nil)
		if err != nil {
			return nil, err
		}
		var res mcp.InputRequired
		if err := jsonv2.Unmarshal(raw, &res); err != nil || res.ResultType != mcp.ResultInputRequired {
			return raw, checkType(method, &res.ResultBase)
		}
		answers, err := e.answers(ctx, res.InputRequests)
		if err != nil {
			return nil, err
		}
		p = p.answered(answers, res.RequestState)
	}
	return nil, fmt.Errorf("mcptest: the server asked in %d rounds without coming to an end", maxRounds)
}

// checkType holds a server to saying of what type its result is.
func checkType(method string, base *mcp.ResultBase) error {
	if base.ResultType == "" {
		return fmt.Errorf("mcptest: the result of %s has no resultType", method)
	}
	return nil
}

func (e *modernEra) answers(ctx context.Context, questions map[string]mcp.InputRequest) (map[string]json.RawMessage, error) {
	answers := map[string]json.RawMessage{}
	for key, q := range questions {
		answer, err := e.client.answer(ctx, q.Method, q.Params)
		if err != nil {
			return nil, fmt.Errorf("mcptest: question %q of the server: %w", key, err)
		}
		answers[key] = mustMarshal(answer)
	}
	return answers, nil
}

// answer refuses: the era has no requests of the server.
func (e *modernEra) answer(_ context.Context, req *mcp.Request) (any, error) {
	e.tb.Errorf("mcptest: the server sent a request, %s, which %s does not allow", req.Method, e.version())
	return nil, mcp.MethodNotFound(req.Method)
}

func (e *modernEra) discover(ctx context.Context) (*mcp.DiscoverResult, error) {
	return send[mcp.DiscoverResult](ctx, e.Conn, mcp.MethodDiscover, nil)
}

func (e *modernEra) setLogLevel(_ context.Context, level mcp.LoggingLevel) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.level = level
	return nil
}

func (e *modernEra) listen(ctx context.Context, f mcp.SubscriptionFilter) (*Subscription, error) {
	p, err := newParams(&mcp.ListenParams{Notifications: f})
	if err != nil {
		return nil, err
	}
	e.addMeta(p)
	s := &Subscription{done: make(chan struct{})}
	acknowledged := make(chan mcp.SubscriptionFilter, 1)
	e.work.Go(func() {
		defer close(s.done)
		_, s.err = e.roundTrip(ctx, mcp.MethodListen, p, func(n Notification) { e.acknowledge(n, acknowledged) })
	})
	select {
	case s.Accepted = <-acknowledged:
		return s, nil
	case <-s.done:
		return nil, cmp.Or(s.err, errNotAcknowledged)
	}
}

func (e *modernEra) acknowledge(n Notification, to chan<- mcp.SubscriptionFilter) {
	var p mcp.AcknowledgedParams
	if n.Method != mcp.NotificationAcknowledged || n.Decode(&p) != nil {
		return
	}
	select {
	case to <- p.Notifications:
	default:
		e.tb.Errorf("mcptest: a subscription was acknowledged twice")
	}
}
