// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/go-psi/psi/internal/legacyclient"
	"github.com/go-psi/psi/mcp/transport"
)

// TestChangeWhileAcknowledged changes a list while its subscription is being acknowledged.
// The client already knows of the subscription and may have caused the change, so the
// change must not be lost.
func TestChangeWhileAcknowledged(t *testing.T) {
	server := &listServer{done: make(chan struct{})}
	var told []string
	changed := make(chan struct{})
	receive := func(m *transport.Message) {
		told = append(told, m.Method)
		switch m.Method {
		case "notifications/subscriptions/acknowledged":
			arrived := make(chan struct{})
			go func() {
				defer close(arrived)
				server.receive(&transport.Message{Method: "notifications/tools/list_changed"})
			}()
			<-arrived
		case "notifications/tools/list_changed":
			close(changed)
		}
	}
	mayAsk := func(method string) bool { return method == "tools/call" }
	opts := legacyclient.Options{MayAsk: mayAsk, Version: "2025-11-25", Pinned: true, Capabilities: json.RawMessage(`{}`)}
	conn, err := legacyclient.Connect(t.Context(), server, receive, &countingClient{}, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Call(t.Context(), request(1, "server/discover", `{}`)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = conn.Call(ctx, request(2, "subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`)) // ends with ctx
	}()
	<-changed
	cancel()
	<-ended
	want := []string{"notifications/subscriptions/acknowledged", "notifications/tools/list_changed"}
	if !slices.Equal(told, want) {
		t.Errorf("the client was told %q, want %q", told, want)
	}
}

func request(id int64, method, params string) *transport.Outgoing {
	return &transport.Outgoing{
		ID: transport.IntID(id), Method: method, Version: "2026-07-28",
		Body: transport.AppendRequest(nil, transport.IntID(id), method, json.RawMessage(params)),
	}
}

// countingClient is a [legacyclient.Client] of a server that sends no requests.
type countingClient struct {
	legacyclient.Client

	last int64
}

func (c *countingClient) NextID() transport.ID {
	c.last--
	return transport.IntID(c.last)
}

// listServer is a connection to a server of 2025-11-25 that announces tool list changes.
type listServer struct {
	receive transport.Receiver
	done    chan struct{}
}

func (s *listServer) Connect(_ context.Context, receive transport.Receiver) (transport.Conn, error) {
	s.receive = receive
	return s, nil
}

func (s *listServer) Call(_ context.Context, m *transport.Outgoing) (*transport.Message, error) {
	return &transport.Message{ID: m.ID, Result: json.RawMessage(
		`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"lists","version":"1"}}`)}, nil
}

func (s *listServer) Send(context.Context, *transport.Outgoing) error { return nil }

func (s *listServer) Close() error {
	close(s.done)
	return nil
}

func (s *listServer) Done() <-chan struct{} { return s.done }

func (s *listServer) Err() error { return nil }

func (s *listServer) Info() transport.Info { return transport.Info{} }
