// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gosdk

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/go-psi/psi/internal/tools/compare/side"
	"github.com/go-psi/psi/internal/tools/compare/work"
)

type caller struct{ *sdk.ClientSession }

func connect(ctx context.Context, t sdk.Transport, version string) (side.Caller, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "compare", Version: "v1"}, nil)
	session, err := client.Connect(ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, err
	}
	return caller{session}, nil
}

func dial(ctx context.Context, url, version string) (side.Caller, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	return connect(ctx, &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: client, DisableStandaloneSSE: true}, version)
}

func start(ctx context.Context, program side.Program, version string) (side.Caller, error) {
	cmd := exec.Command(program.Path) //nolint:gosec,noctx // it is this program, and ends with its connection
	cmd.Env = append(os.Environ(), program.Env...)
	return connect(ctx, &sdk.CommandTransport{Command: cmd}, version)
}

func (c caller) call(ctx context.Context, tool string, args any) (map[string]any, error) {
	res, err := c.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
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
