// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcpstdio"
	"github.com/go-psi/psi/middleware"
)

// The last standard error output of a command behind a gateway is for its operator, not for
// its callers, whatever their connection: when it exits during a call, and for every later
// call.
func TestFindingU1CommandBehindAGateway(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			var log notes
			newGateway := func(t *testing.T) mcp.Handler {
				client := mcp.NewClient("gateway", "v1", &mcp.ClientOptions{Version: version, Logger: slog.New(slog.DiscardHandler)})
				command, err := client.Connect(t.Context(), mcpstdio.NewCommand(program("dying"), quietly()))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = command.Close() })
				gateway := mcp.NewMux("gateway", "v1", &mcp.MuxOptions{Logger: slog.New(slog.DiscardHandler)})
				gateway.Use(middleware.Logger(log.logger()))
				gateway.Mount("db_", command)
				return gateway
			}
			mcptest.RunNew(t, newGateway, func(t *testing.T, c *mcp.Conn) {
				for _, when := range []string{"during the call", "after it has ended"} {
					_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "db_hello"})
					coded, ok := errors.AsType[*mcp.Error](err)
					if !ok || coded.Message != "the server behind this one is not available" || coded.Data != nil {
						t.Errorf("%s: the caller is told %v", when, err)
					}
				}
			})
			if got := log.String(); !strings.Contains(got, "hunter2") {
				t.Errorf("the operator is not told why:\n%s", got)
			}
		})
	}
}
