// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// A Path is a way to connect a client to a server within the test process.
type Path struct {
	Name   string
	Legacy bool // supports only the legacy era

	serve func(tb testing.TB, cl *Client, h mcp.Handler) transport.Transport
}

// Paths returns all paths: in memory, lines as over standard input and output, a Unix domain
// socket, streamable HTTP with JSON and with event streams, and HTTP+SSE.
func Paths() []Path {
	return []Path{
		{Name: "memory", serve: serveMemory},
		{Name: "stdio", serve: serveStdio},
		{Name: "socket", serve: serveSocket},
		{Name: "http-json", serve: serveHTTP("")},
		{Name: "http-sse", serve: serveHTTP(typeStream)},
		{Name: "sse", serve: serveSSE, Legacy: true},
	}
}

// Serve serves h until the test ends and returns a transport to it.
func (p Path) Serve(tb testing.TB, h mcp.Handler) transport.Transport {
	tb.Helper()
	if p.serve == nil {
		tb.Fatal("mcptest: this Path is a zero value; use those of Paths")
	}
	return p.serve(tb, new(Client), h)
}

// serveMemory serves over an in-memory pipe.
func serveMemory(tb testing.TB, cl *Client, h mcp.Handler) transport.Transport {
	return transport.FromStream(func(context.Context) (transport.Stream, error) {
		near, far := transport.Pipe()
		inBackground(tb, func(ctx context.Context) error { return mcpstdio.ServeStream(ctx, h, far, streamOptions(tb, cl)) })
		return &checkedStream{near, newPendingAnswers(tb)}, nil
	})
}

// serveStdio serves over a pair of byte pipes, as over standard input and output.
func serveStdio(tb testing.TB, cl *Client, h mcp.Handler) transport.Transport {
	return transport.FromStream(func(context.Context) (transport.Stream, error) {
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		opts := &mcpstdio.Options{In: in, Out: out, Stream: streamOptions(tb, cl)}
		inBackground(tb, func(ctx context.Context) error {
			defer in.Close()
			defer out.Close()
			return mcpstdio.Serve(ctx, h, opts)
		})
		closeBoth := func() error {
			toServer.Close()
			return fromServer.Close()
		}
		stream := mcpstdio.NewStream(fromServer, toServer, &mcpstdio.LineOptions{Close: closeBoth})
		return &checkedStream{stream, newPendingAnswers(tb)}, nil
	})
}

// serveSocket serves on a Unix domain socket.
func serveSocket(tb testing.TB, cl *Client, h mcp.Handler) transport.Transport {
	dir, err := os.MkdirTemp("", "psi") //nolint:usetesting // a test's own directory may be too long for the path of a socket
	if err != nil {
		tb.Fatalf("mcptest: %v", err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "socket")
	l, err := new(net.ListenConfig).Listen(tb.Context(), "unix", path)
	if err != nil {
		tb.Fatalf("mcptest: %v", err)
	}
	opts := &mcpstdio.ListenerOptions{Stream: streamOptions(tb, cl)}
	inBackground(tb, func(ctx context.Context) error { return mcpstdio.ServeListener(ctx, h, l, opts) })
	return mcpstdio.NewSocket("unix", path)
}

// streamOptions returns the options of a server whose requests are cancelled when the
// connection closes, since the test no longer waits for the answers.
func streamOptions(tb testing.TB, cl *Client) *mcpstdio.StreamOptions {
	log := logger(tb)
	return &mcpstdio.StreamOptions{
		Principal: cl.Principal, DrainTimeout: -1, Logger: log,
	}
}

// inBackground runs serve until the test ends.
func inBackground(tb testing.TB, serve func(ctx context.Context) error) {
	ctx, cancel := context.WithCancelCause(tb.Context())
	done := make(chan error, 1)
	go func() { done <- serve(ctx) }()
	tb.Cleanup(func() {
		cancel(mcp.ErrClosed)
		<-done //nolint:errcheck // at the end of a test, any error will do
	})
}
