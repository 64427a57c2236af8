// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-psi/psi/mcp"
)

// A client connects to a server of any revision, over any transport. This one connects in
// process; use mcphttp.NewTransport(url, nil) or mcpstdio.NewCommand for other servers.
func ExampleClient() {
	type operands struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	type sum struct {
		Sum int `json:"sum"`
	}
	mux := mcp.NewMux("calculator", "v1.0.0", nil)
	mux.Tool("add", mcp.ToolFunc(func(_ context.Context, in operands) (sum, error) { return sum{in.A + in.B}, nil }, nil))
	ctx := context.Background()

	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	for tool, err := range conn.Tools(ctx, nil) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(tool.Name)
	}
	out, err := mcp.Call[sum](ctx, conn, "add", operands{2, 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Sum)
	// Output:
	// add
	// 5
}

// An Upstream reconnects whenever its server goes away. Mounted on a mux, it makes a
// gateway that stays available. Conn returns the current connection.
func ExampleClient_Maintain() {
	weather := mcp.NewMux("weather", "v1.0.0", nil)
	weather.Tool("today", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "sunny", nil }, nil))
	ctx := context.Background()

	client := mcp.NewClient("gateway", "v1.0.0", &mcp.ClientOptions{Forward: true, KeepAlive: 30 * time.Second})
	up := client.Maintain(ctx, mcp.InProcess(weather), &mcp.UpstreamOptions{ // or any other transport
		Logger: slog.New(slog.DiscardHandler),
	})
	defer up.Close()
	gateway := mcp.NewMux("gateway", "v1.0.0", nil)
	gateway.Mount("weather_", up)

	conn, err := up.Conn(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mcp.Call[string](ctx, conn, "today", nil))
	fmt.Println(up.State().Err)
	// Output:
	// sunny <nil>
	// <nil>
}

// A connection is a Handler, so a gateway is a mux with mounted connections. Questions from
// a server are passed on to the client of the gateway.
func ExampleConn_gateway() {
	weather := mcp.NewMux("weather", "v1.0.0", nil)
	weather.Tool("today", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "sunny", nil }, nil))
	ctx := context.Background()

	client := mcp.NewClient("gateway", "v1.0.0", &mcp.ClientOptions{Forward: true})
	remote, err := client.Connect(ctx, mcp.InProcess(weather)) // or any other transport
	if err != nil {
		fmt.Println(err)
		return
	}
	defer remote.Close()
	gateway := mcp.NewMux("gateway", "v1.0.0", nil)
	gateway.Mount("weather_", remote)

	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(gateway))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	today, err := mcp.Call[string](ctx, conn, "weather_today", nil)
	fmt.Println(today, err)
	// Output: sunny <nil>
}
