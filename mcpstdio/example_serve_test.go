// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcpstdio"
)

func pinger() *mcp.Mux {
	mux := mcp.NewMux("pinger", "v1.0.0", nil)
	mux.Tool("ping", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "pong", nil }, nil))
	return mux
}

// The main function of a server program calls Serve. Serve returns when the client closes
// its end, which is immediately in this example.
func ExampleServe() {
	if err := mcpstdio.Serve(context.Background(), pinger(), nil); err != nil {
		fmt.Println(err)
	}
	// Output:
}

func ExampleOptions() {
	opts := &mcpstdio.Options{
		In: strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"example","version":"v1.0.0"}}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ping"}}
`),
		Out: os.Stdout,
	}
	if err := mcpstdio.Serve(context.Background(), pinger(), opts); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"pinger","version":"v1.0.0"}}}
	// {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"pong"}]}}
}

// Messages can be sent over any byte stream, such as a network connection.
func ExampleNewStream() {
	here, there := net.Pipe()
	go func() {
		stream := mcpstdio.NewStream(there, there, &mcpstdio.LineOptions{Close: there.Close})
		_ = mcpstdio.ServeStream(context.Background(), pinger(), stream, nil) // ends with the connection
	}()

	fmt.Fprintln(here, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ping","_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	answer, err := bufio.NewReader(here).ReadString('\n')
	fmt.Print(answer)
	if err != nil {
		fmt.Println(err)
	}
	_ = here.Close()
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"pinger","version":"v1.0.0"}},"content":[{"type":"text","text":"pong"}]}}
}
