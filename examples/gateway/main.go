// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command gateway serves three MCP servers at one endpoint, whatever revisions they
// and its clients speak: one of its own, one elsewhere, and one that is a command.
//
//	go run ./examples/gateway -remote https://example.com/mcp -- go run ./examples/quickstart
//
// The tool "add" of the command is the tool "command_add" of the gateway; those of
// the others begin with "local_" and "remote_". A server that cannot be reached is
// missing until it can: its tools appear, and clients that listen are told.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "serve at this `address`")
	remote := flag.String("remote", "", "the `URL` of a server")
	flag.Parse() // what is left is the command of a server
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *addr, upstreams(*remote, flag.Args()))
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// upstreams are the servers that the command line names.
func upstreams(remote string, command []string) []upstream {
	var list []upstream
	if remote != "" {
		list = append(list, upstream{"remote_", mcphttp.NewTransport(remote, nil)})
	}
	if len(command) > 0 {
		cmd := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // the operator's own words; Close ends it
		cmd.Stderr = os.Stderr
		list = append(list, upstream{"command_", mcpstdio.NewCommand(cmd, nil)})
	}
	return list
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
