// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// lossyTransport sends nothing but calls while it loses messages.
type lossyTransport struct {
	transport.Transport
	loses atomic.Bool
}

func (l *lossyTransport) Connect(ctx context.Context, receive transport.Receiver) (transport.Conn, error) {
	c, err := l.Transport.Connect(ctx, receive)
	return &lossyConn{c, l}, err
}

type lossyConn struct {
	transport.Conn
	transport *lossyTransport
}

func (c *lossyConn) Send(ctx context.Context, m *transport.Outgoing) error {
	if c.transport.loses.Load() {
		return errors.New("the network is down")
	}
	return c.Conn.Send(ctx, m)
}

// The sender of a call learns that its answer did not get to the older server that asked,
// and can send it again.
func TestForwardedAnswerNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := transport.Pipe()
		served := make(chan error, 1)
		go func() { served <- mcpstdio.ServeStream(t.Context(), welcoming(), far, nil) }()
		lossy := &lossyTransport{Transport: transport.FromStream(func(context.Context) (transport.Stream, error) { return near, nil })}
		c := connectTo(t, lossy, &mcp.ClientOptions{Version: "2025-11-25", Forward: true, Logger: quiet().Logger})
		call := func(params map[string]any) (mcp.Result, error) {
			res, _, err := mcptest.Do(t, c, mcptest.NewRequest(mcp.MethodCallTool, params))
			return res, err
		}
		res, err := call(map[string]any{"name": "greet"})
		asked, ok := res.(*mcp.InputRequired)
		if !ok || len(asked.InputRequests) != 1 {
			t.Fatalf("got %+v, %v", res, err)
		}
		answers := map[string]any{}
		for key := range asked.InputRequests {
			answers[key] = json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`)
		}
		again := map[string]any{"name": "greet", "requestState": asked.RequestState, "inputResponses": answers}
		lossy.loses.Store(true)
		if res, err := call(again); mcp.CodeOf(err) != mcp.CodeInternalError {
			t.Errorf("the answer was not sent: got %+v, %v", res, err)
		}
		lossy.loses.Store(false)
		res, err = call(again)
		if next, ok := res.(*mcp.InputRequired); !ok || len(next.InputRequests) != 1 {
			t.Errorf("the answer was sent again: got %+v, %v", res, err)
		}
		_ = c.Close()
		<-served
	})
}
