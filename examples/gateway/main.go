// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command gateway serves several MCP servers at one endpoint, whatever revisions they and
// its clients speak: one of its own, and those of a configuration file.
//
//	go run ./examples/gateway servers.json
//
// The tool "add" of the server "calculator" is the tool "calculator_add" of the gateway; those
// of its own server begin with "local_". A server that cannot be reached is missing until it
// can: its tools appear, and clients that listen are told.
//
// It is a program to start from. "psi gateway servers.json" does this without one.
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

// notInPrefix matches what the names of tools cannot have.
var notInPrefix = regexp.MustCompile(`[^A-Za-z0-9-]`)

// upstreams returns the servers of a configuration file, with the tools that it selects, but for
// those that it disables.
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
			return nil, err
		}
		list = append(list, upstream{notInPrefix.ReplaceAllString(server.Name, "_") + "_", transport, server.UsesTool})
	}
	return list, checkPrefixes(list)
}

// checkPrefixes returns an error if it would not be known to which server a tool belongs.
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

// run serves until ctx is done, and then for as long as the requests take that are
// under way, but no longer than a few seconds.
func run(ctx context.Context, addr string, servers []upstream) error {
	gw := newGateway(newLocal(), slog.Default())
	defer gw.close()
	for _, server := range servers {
		gw.mount(context.WithoutCancel(ctx), newClient(""), server) // requests under way need it until the end
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

// newLocal is the server that the gateway has for itself.
func newLocal() *mcp.Mux {
	mux := mcp.NewMux("local", "v1.0.0", nil)
	now := func(context.Context, struct{}) (string, error) { return time.Now().UTC().Format(time.RFC3339), nil }
	mux.Tool("now", mcp.ToolFunc(now, &mcp.Tool{Description: "Tell the time, in UTC."}))
	return mux
}
