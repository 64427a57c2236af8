// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package transport_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// Anything that carries whole messages can be a transport: it is served at one end and
// connected to at the other.
func ExampleServeStream() {
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("hello", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil))
	here, there := transport.Pipe() // or two ends of a web socket, a message queue, …
	ctx := context.Background()
	served := make(chan error)
	go func() { served <- mcpstdio.ServeStream(ctx, mux, there, nil) }()

	transport := transport.FromStream(func(context.Context) (transport.Stream, error) { return here, nil })
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, transport)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mcp.Call[string](ctx, conn, "hello", nil))
	fmt.Println(conn.Close())
	fmt.Println(<-served)
	// Output:
	// hello <nil>
	// <nil>
	// <nil>
}

// Every message is logged.
func ExampleWithLogging() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key != "msg" && a.Key != "method" {
				return slog.Attr{} // an example must print the same every time
			}
			return a
		},
	}))
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("hello", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil))
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, transport.WithLogging(mcp.InProcess(mux), logger))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(mcp.Call[string](ctx, conn, "hello", nil))
	// Output:
	// msg="mcp: sent" method=server/discover
	// msg="mcp: answered" method=server/discover
	// msg="mcp: sent" method=tools/call
	// msg="mcp: answered" method=tools/call
	// hello <nil>
}

// A custom transport implements Wire. For a Stream, there is a ready-made one.
func ExampleNewConn() {
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("hello", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil))
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, dialer{mux})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(mcp.Call[string](ctx, conn, "hello", nil))
	// Output:
	// connecting
	// hello <nil>
}

// dialer is a transport that opens a new pipe to a handler for each connection.
type dialer struct{ h mcp.Handler }

func (d dialer) Connect(_ context.Context, receive transport.Receiver) (transport.Conn, error) {
	fmt.Println("connecting")
	here, there := transport.Pipe()
	go func() { _ = mcpstdio.ServeStream(context.Background(), d.h, there, nil) }() // ends with the pipe
	return transport.NewConn(here, receive), nil
}
