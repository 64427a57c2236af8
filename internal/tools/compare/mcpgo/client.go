// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpgo

import (
	"context"
	"fmt"
	"net/http"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/go-psi/psi/internal/tools/compare/side"
	"github.com/go-psi/psi/internal/tools/compare/work"
)

type caller struct{ *client.Client }

func connect(ctx context.Context, c *client.Client, version string) (side.Caller, error) {
	if err := c.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	init := mcp.InitializeRequest{}
	init.Params.ProtocolVersion = version
	init.Params.ClientInfo = mcp.Implementation{Name: "compare", Version: "v1"}
	if _, err := c.Initialize(ctx, init); err != nil {
		return nil, err
	}
	return caller{c}, nil
}

func dial(ctx context.Context, url, version string) (side.Caller, error) {
	hc := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	t, err := transport.NewStreamableHTTP(url, transport.WithHTTPBasicClient(hc))
	if err != nil {
		return nil, err
	}
	return connect(ctx, client.NewClient(t, client.WithProtocolVersion(version)), version)
}

func start(ctx context.Context, program side.Program, version string) (side.Caller, error) {
	return connect(ctx, client.NewClient(transport.NewStdio(program.Path, program.Env), client.WithProtocolVersion(version)), version)
}

func (c caller) call(ctx context.Context, tool string, args any) (map[string]any, error) {
	res, err := c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: tool, Arguments: args}})
	if err != nil {
		return nil, err
	}
	out, ok := res.StructuredContent.(map[string]any)
	if !ok || res.IsError {
		return nil, fmt.Errorf("%s answered %+v", tool, res)
	}
	return out, nil
}

func (c caller) Add(ctx context.Context, a, b int) (int, error) {
	out, err := c.call(ctx, "add", work.AddIn{A: a, B: b})
	sum, _ := out["sum"].(float64)
	return int(sum), err
}

func (c caller) Echo(ctx context.Context, text string) (string, error) {
	out, err := c.call(ctx, "echo", work.Echo{Text: text})
	back, _ := out["text"].(string)
	return back, err
}
