// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/config"
)

// A host is connected to several servers.
type host struct {
	logger *slog.Logger
	conns  map[string]connection // by the name in the configuration
}

// A connection is a connection to a server of the configuration.
type connection struct {
	*mcp.Conn
	server *config.Server
}

// connect connects to all servers concurrently. Servers that cannot be reached are logged
// and omitted. If no server is left, connect returns an error.
func connect(ctx context.Context, file *config.File, logger *slog.Logger) (*host, error) {
	client := mcp.NewClient("host", "v1.0.0", &mcp.ClientOptions{
		ConnectTimeout: time.Minute, // npx may have to download a server first
		CallTimeout:    5 * time.Minute,
		Logger:         logger,
	})
	h := &host{logger: logger, conns: map[string]connection{}}
	var wg sync.WaitGroup
	var mu sync.Mutex // guards h.conns and errs
	var errs []error
	for _, server := range file.Servers {
		if server.Disabled {
			continue
		}
		wg.Go(func() {
			conn, err := connectTo(ctx, client, server)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, fmt.Errorf("server %s: %w", server.Name, err))
				logger.Error("a server is left out", "server", server.Name, "error", err)
				return
			}
			h.conns[server.Name] = connection{conn, server}
		})
	}
	wg.Wait()
	if len(h.conns) == 0 {
		return nil, errors.Join(append(errs, errors.New("host: there is no server to connect to"))...)
	}
	return h, nil
}

func connectTo(ctx context.Context, client *mcp.Client, s *config.Server) (*mcp.Conn, error) {
	t, err := s.Transport(ctx, nil)
	if err != nil {
		return nil, err
	}
	return client.Connect(ctx, t)
}

// A hostTool is a tool under the name that the model uses: the server's name, an
// underscore, and the tool's name.
type hostTool struct {
	name string
	tool *mcp.Tool
	conn *mcp.Conn
}

// tools lists the tools of all servers, sorted by name. A server that fails is logged and
// omitted.
func (h *host) tools(ctx context.Context) ([]hostTool, error) {
	var all []hostTool
	for server, conn := range h.conns {
		if caps := conn.Server().Capabilities; caps == nil || caps.Tools == nil {
			continue
		}
		for tool, err := range conn.Tools(ctx, nil) {
			if err != nil {
				h.logger.Error("listing tools", "server", server, "error", err)
				break
			}
			if conn.server.UsesTool(tool.Name) {
				all = append(all, hostTool{server + "_" + tool.Name, tool, conn.Conn})
			}
		}
	}
	slices.SortFunc(all, func(a, b hostTool) int { return cmp.Compare(a.name, b.name) })
	for i := range len(all) - 1 {
		if all[i].name == all[i+1].name {
			return nil, fmt.Errorf("host: two tools are named %s; rename a server in the configuration", all[i].name)
		}
	}
	return all, ctx.Err()
}

// call calls a tool by the name that the model uses. An unknown name is a failed result,
// like other mistakes of a model: the model reads the text and tries again.
func (h *host) call(ctx context.Context, name string, arguments json.RawMessage) (*mcp.CallToolResult, error) {
	tools, err := h.tools(ctx)
	if err != nil {
		return nil, err
	}
	i, found := slices.BinarySearchFunc(tools, name, func(t hostTool, name string) int { return strings.Compare(t.name, name) })
	if !found {
		return mcp.ErrorResult(fmt.Errorf("there is no tool %q", name)), nil
	}
	return tools[i].conn.CallTool(ctx, &mcp.CallToolParams{Name: tools[i].tool.Name, Arguments: arguments})
}

// close closes the connections, which also stops the servers that are commands.
func (h *host) close() error {
	var errs []error
	for _, conn := range h.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}
