// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// greetings connects, calls the tool, and prints the protocol version and the result.
func greetings(to transport.Transport) {
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, to)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	res, err := conn.CallTool(ctx, &mcp.CallToolParams{Name: "greet"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(conn.Version(), res.Content[0].(*mcp.TextContent).Text)
}

// A transport needs only the URL of a server, whichever revision it speaks.
func ExampleNewTransport() {
	server := httptest.NewServer(mcphttp.NewHandler(greeter("psi"), nil))
	defer server.Close()
	greetings(mcphttp.NewTransport(server.URL+"/mcp", &mcphttp.TransportOptions{
		Header: http.Header{"X-Api-Key": {"secret"}},
	}))
	// Output:
	// 2026-07-28 hello, this is psi
}

// [mcphttp.NewTransport] also connects to old servers, after two failed attempts.
func ExampleNewSSETransport() {
	server := httptest.NewServer(mcphttp.NewSSEHandler(greeter("an old server"), nil))
	defer server.Close()
	greetings(mcphttp.NewSSETransport(server.URL+"/sse", nil))
	// Output:
	// 2025-11-25 hello, this is an old server
}

// The error of an unauthenticated call contains the server's challenge.
func ExampleStatusError() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer scope="tools"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	_, err := mcp.NewClient("host", "v1.0.0", nil).Connect(context.Background(), mcphttp.NewTransport(server.URL, nil))
	var status *mcphttp.StatusError
	if errors.Is(err, mcp.ErrUnauthorized) && errors.As(err, &status) {
		fmt.Println(status.Status, status.Header.Get("WWW-Authenticate"))
	}
	// Output:
	// 401 Bearer scope="tools"
}
