// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-psi/psi/mcp"
)

// Whatever carries whole messages is a transport: served at one end, and connected to
// at the other.
func ExampleServeStream() {
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("hello", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil))
	here, there := mcp.Pipe() // or two ends of a web socket, a message queue, …
	ctx := context.Background()
	served := make(chan error)
	go func() { served <- mcp.ServeStream(ctx, mux, there, nil) }()

	transport := mcp.StreamTransport(func(context.Context) (mcp.Stream, error) { return here, nil })
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

// Every message can be seen on its way.
func ExampleLogTransport() {
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
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.LogTransport(mcp.InProcess(mux), logger))
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

// A server that keeps neither sessions nor connections, such as a function in a cloud,
// reads a message, checks that it stands alone, serves it, and writes what came of it.
func ExampleServe() {
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("hello", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil))
	answer := func(ctx context.Context, message []byte) []byte {
		m, err := mcp.ParseMessage(message)
		switch {
		case err != nil:
			return mcp.AppendErrorResponse(nil, m.ID, err)
		case m.Request == nil || m.Request.IsNotification():
			return nil
		}
		if err = m.Request.CheckMeta(); err == nil {
			err = m.Request.CheckVersion()
		}
		if err != nil {
			return mcp.AppendErrorResponse(nil, m.ID, err)
		}
		res, err := mcp.Serve(ctx, mux, m.Request, nil, nil)
		return mcp.AppendResponse(nil, m.Request, res, err)
	}

	message := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"` + mcp.LatestVersion + `","io.modelcontextprotocol/clientCapabilities":{}}}}`
	fmt.Printf("%s\n", answer(context.Background(), []byte(message)))
	fmt.Printf("%s\n", answer(context.Background(), []byte(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)))
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"greeter","version":"v1.0.0"}},"content":[{"type":"text","text":"hello"}]}}
	// {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"params._meta must have the member \"io.modelcontextprotocol/protocolVersion\""}}
}

// A transport keeps one Legacy for each client of the legacy era, and gives it what
// that client sends.
func ExampleNewLegacy() {
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("hello", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil))
	session := mcp.NewLegacy(mux, &mcp.LegacyOptions{ID: "a-random-id"})
	defer session.Close()

	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + mcp.Version20250618 + `","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello"}}`,
	} {
		m, err := mcp.ParseMessage([]byte(message))
		if err != nil {
			fmt.Println(err)
			return
		}
		if answer := session.Serve(context.Background(), nil, m, stdout{}); len(answer) > 0 {
			fmt.Printf("%s\n", answer)
		}
	}
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"greeter","version":"v1.0.0"}}}
	// {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"hello"}]}}
}

// stdout is the way to the client, for what is said besides responses.
type stdout struct{}

func (stdout) Send(_ context.Context, message []byte) error {
	_, err := fmt.Printf("%s\n", message)
	return err
}

// A transport of one's own makes a Wire. For a Stream there is one.
func ExampleNewStreamWire() {
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

// dialer is a transport that makes a new pipe to a handler for each connection.
type dialer struct{ h mcp.Handler }

func (d dialer) Connect(_ context.Context, receive mcp.Receiver) (mcp.Wire, error) {
	fmt.Println("connecting")
	here, there := mcp.Pipe()
	go func() { _ = mcp.ServeStream(context.Background(), d.h, there, nil) }() // ends with the pipe
	return mcp.NewStreamWire(here, receive), nil
}
