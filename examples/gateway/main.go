// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command gateway serves several MCP servers at one endpoint, whatever revisions they and
// its clients speak: its own server, and the servers of a configuration file.
//
//	go run ./examples/gateway servers.json
//
// The tool "add" of the server "calculator" is the tool "calculator_add" of the gateway;
// tools of its own server begin with "local_". The tools of a server that cannot be reached
// are missing. When it becomes reachable, they appear and listening clients are notified.
//
// This is a program to start from. Without one, use "psi gateway servers.json".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/config"
	"github.com/go-psi/psi/mcphttp"
)

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "serve at this `address`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	servers, err := upstreams(ctx, flag.Arg(0))
	if err == nil {
		err = run(ctx, *addr, servers)
	}
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// notInPrefix matches the characters that tool names cannot contain.
var notInPrefix = regexp.MustCompile(`[^A-Za-z0-9-]`)

// upstreams returns the enabled servers of a configuration file, with the tools that the
// file selects. Servers that cannot be used are logged and omitted.
func upstreams(ctx context.Context, path string) ([]upstream, error) {
	file, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	var list []upstream
	for _, server := range file.Servers {
		if server.Disabled {
			continue
		}
		transport, err := server.Transport(ctx, nil)
		if err != nil {
			slog.Warn("a server is left out", "error", err)
			continue
		}
		list = append(list, upstream{notInPrefix.ReplaceAllString(server.Name, "_") + "_", transport, server.UsesTool})
	}
	return list, checkPrefixes(list)
}

// checkPrefixes returns an error if it would be ambiguous to which server a tool belongs.
func checkPrefixes(servers []upstream) error {
	for i, a := range servers {
		for _, b := range append(servers[:i:i], upstream{prefix: localPrefix}) {
			if strings.HasPrefix(a.prefix, b.prefix) || strings.HasPrefix(b.prefix, a.prefix) {
				return fmt.Errorf("gateway: tools would have the prefixes %q and %q, of which one begins with the other: rename a server", b.prefix, a.prefix)
			}
		}
	}
	return nil
}

// run serves until ctx is done, and then waits for requests in flight, but no longer than a
// few seconds.
func run(ctx context.Context, addr string, servers []upstream) error {
	gw := newGateway(newLocal(), slog.Default())
	defer gw.close()
	for _, server := range servers {
		gw.mount(context.WithoutCancel(ctx), newClient(""), server) // needed by requests in flight
	}

	endpoint := mcphttp.NewHandler(gw.mux, nil)
	routes := http.NewServeMux()
	routes.Handle("/mcp", endpoint)
	server := &http.Server{Addr: addr, Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	slog.Info("serving", "url", "http://"+addr+"/mcp")
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(endpoint.Shutdown(ctx), server.Shutdown(ctx))
}

// newLocal returns the gateway's own server.
func newLocal() *mcp.Mux {
	mux := mcp.NewMux("local", "v1.0.0", nil)
	now := func(context.Context, struct{}) (string, error) { return time.Now().UTC().Format(time.RFC3339), nil }
	mux.Tool("now", mcp.ToolFunc(now, &mcp.Tool{Description: "Tell the time, in UTC."}))
	return mux
}
