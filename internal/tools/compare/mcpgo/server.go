// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpgo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/go-psi/psi/internal/tools/compare/side"
	"github.com/go-psi/psi/internal/tools/compare/work"
)

// Side is mcp-go with schema validation enabled.
var Side = side.Side{Name: "mcp-go", New: newServer, Dial: dial, Start: start}

type peer struct {
	*server.MCPServer
	o       side.Options
	changes int
}

func newServer(o side.Options) side.Server {
	s := &peer{o: o, MCPServer: server.NewMCPServer("mcp-go", "v1", server.WithToolCapabilities(true),
		server.WithInputSchemaValidation(), server.WithOutputSchemaValidation())}
	add(s, "add", "Add two integers.", work.Add)
	add(s, "echo", "Say it again.", work.Repeat)
	for i := range o.Tools {
		add(s, fmt.Sprintf("tool%04d", i), "Add two integers.", work.Add)
	}
	return s
}

func add[In, Out any](s *peer, name, description string, fn func(context.Context, In) (Out, error)) {
	tool := mcp.NewTool(name, mcp.WithDescription(description), mcp.WithInputSchema[In](), mcp.WithOutputSchema[Out]())
	s.AddTool(tool, mcp.NewStructuredToolHandler(func(ctx context.Context, _ mcp.CallToolRequest, in In) (Out, error) {
		if s.o.Stream {
			stream(ctx)
		}
		return fn(ctx, in)
	}))
}

// stream makes the server answer with an event stream.
func stream(ctx context.Context) {
	if session, ok := server.ClientSessionFromContext(ctx).(server.SessionWithStreamableHTTPConfig); ok {
		session.UpgradeToSSEWhenReceiveNotification()
	}
}

func (s *peer) HTTP() http.Handler {
	return server.NewStreamableHTTPServer(s.MCPServer, server.WithStateful(!s.o.Modern))
}

func (s *peer) Stdio(context.Context) error { return server.ServeStdio(s.MCPServer) }

func (s *peer) Dispatcher(ctx context.Context) (func([]byte) ([]byte, error), error) {
	return func(message []byte) ([]byte, error) { return json.Marshal(s.HandleMessage(ctx, message)) }, nil
}

func (s *peer) Connect(ctx context.Context, version string) (side.Caller, error) {
	c, err := client.NewInProcessClientWithOptions(s.MCPServer, client.WithProtocolVersion(version))
	if err != nil {
		return nil, err
	}
	return connect(ctx, c, version)
}

func (s *peer) Change() {
	s.changes++
	add(s, fmt.Sprintf("change%04d", s.changes), "", work.Add)
}
