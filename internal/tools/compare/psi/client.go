// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package psi

import (
	"context"
	"net/http"
	"os"
	"os/exec"

	"github.com/go-psi/psi/internal/tools/compare/side"
	"github.com/go-psi/psi/internal/tools/compare/work"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

type caller struct{ *mcp.Conn }

func connect(ctx context.Context, t transport.Transport, opts *mcp.ClientOptions) (side.Caller, error) {
	conn, err := mcp.NewClient("compare", "v1", opts).Connect(ctx, t)
	if err != nil {
		return nil, err
	}
	return caller{conn}, nil
}

func dial(ctx context.Context, url, version string) (side.Caller, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	return connect(ctx, mcphttp.NewTransport(url, &mcphttp.TransportOptions{Client: client}), &mcp.ClientOptions{Version: version})
}

func start(ctx context.Context, program side.Program, version string) (side.Caller, error) {
	cmd := exec.Command(program.Path) //nolint:gosec,noctx // it is this program, and ends with its connection
	cmd.Env = append(os.Environ(), program.Env...)
	return connect(ctx, mcpstdio.NewCommand(cmd, nil), &mcp.ClientOptions{Version: version})
}

func (c caller) Add(ctx context.Context, a, b int) (int, error) {
	out, err := mcp.Call[work.AddOut](ctx, c.Conn, "add", work.AddIn{A: a, B: b})
	return out.Sum, err
}

func (c caller) Echo(ctx context.Context, text string) (string, error) {
	out, err := mcp.Call[work.Echo](ctx, c.Conn, "echo", work.Echo{Text: text})
	return out.Text, err
}
