// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gosdk

import (
	"context"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/go-psi/psi/internal/tools/compare/side"
	"github.com/go-psi/psi/internal/tools/compare/work"
)

// Side is the Go SDK.
var Side = side.Side{Name: "go-sdk", New: newServer, Dial: dial, Start: start}

type server struct {
	*sdk.Server
	o       side.Options
	changes int
}

func typed[In, Out any](fn func(context.Context, In) (Out, error)) sdk.ToolHandlerFor[In, Out] {
	return func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, Out, error) {
		out, err := fn(ctx, in)
		return nil, out, err
	}
}

func newServer(o side.Options) side.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "go-sdk", Version: "v1"}, &sdk.ServerOptions{PageSize: o.Tools + 10})
	sdk.AddTool(s, &sdk.Tool{Name: "add", Description: "Add two integers."}, typed(work.Add))
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "Say it again."}, typed(work.Repeat))
	for i := range o.Tools {
		sdk.AddTool(s, &sdk.Tool{Name: fmt.Sprintf("tool%04d", i), Description: "Add two integers."}, typed(work.Add))
	}
	return &server{Server: s, o: o}
}

func (s *server) HTTP() http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.Server },
		&sdk.StreamableHTTPOptions{Stateless: s.o.Modern, JSONResponse: !s.o.Stream})
}

func (s *server) Stdio(ctx context.Context) error { return s.Run(ctx, &sdk.StdioTransport{}) }

func (s *server) Connect(ctx context.Context, version string) (side.Caller, error) {
	ours, theirs := sdk.NewInMemoryTransports()
	if _, err := s.Server.Connect(ctx, ours, nil); err != nil {
		return nil, err
	}
	return connect(ctx, theirs, version)
}

func (s *server) Change() {
	s.changes++
	sdk.AddTool(s.Server, &sdk.Tool{Name: fmt.Sprintf("change%04d", s.changes)}, typed(work.Add))
}

// Dispatcher passes messages to the server as a transport does.
func (s *server) Dispatcher(ctx context.Context) (func([]byte) ([]byte, error), error) {
	c := direct{make(chan []byte), make(chan []byte, 1)}
	if _, err := s.Server.Connect(ctx, c, nil); err != nil {
		return nil, err
	}
	return func(message []byte) ([]byte, error) {
		c.in <- message
		return <-c.out, nil
	}, nil
}

// direct is a transport, and its connection, that passes messages through channels.
type direct struct{ in, out chan []byte }

func (d direct) Connect(context.Context) (sdk.Connection, error) { return d, nil }

func (d direct) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case data := <-d.in:
		return jsonrpc.DecodeMessage(data)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (d direct) Write(_ context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	d.out <- data
	return err
}

func (d direct) Close() error      { return nil }
func (d direct) SessionID() string { return "" }
