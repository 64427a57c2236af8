// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// A worker serves a message that it has received in any way, such as from a queue, and
// returns the response. Notifications about the request are sent before it.
func ExampleServeRequest() {
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("hello", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 2, "halfway")
		return "hello", nil
	}, nil))
	work := func(ctx context.Context, raw []byte, send func([]byte) error) error {
		m, err := transport.ParseMessage(raw)
		if err != nil {
			return send(mcp.AppendResponse(nil, nil, nil, err))
		}
		req, err := mcp.ParseRequest(&m)
		var res mcp.Result
		if err == nil {
			res, err = mcp.ServeRequest(ctx, mux, req, func(_ context.Context, method string, params json.RawMessage) error {
				return send(transport.AppendNotification(nil, method, params))
			})
		}
		return send(mcp.AppendResponse(nil, req, res, err))
	}

	message := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","_meta":{"progressToken":"p",
		"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	err := work(context.Background(), []byte(message), func(raw []byte) error {
		m, err := transport.ParseMessage(raw)
		fmt.Printf("%s %s%.44s\n", m.Method, string(m.Params), string(m.Result))
		return err
	})
	fmt.Println(err)
	// Output:
	// notifications/progress {"progressToken":"p","progress":1,"total":2,"message":"halfway"}
	//  {"resultType":"complete","_meta":{"io.modelc
	// <nil>
}
