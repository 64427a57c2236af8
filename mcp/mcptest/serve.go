// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"
	"io"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcpstdio"
)

// A server function serves h for the time of a test and returns how to reach it.
type server func(tb testing.TB, cl *Client, h mcp.Handler) wire

// serveMemory serves on a pipe in memory.
func serveMemory(tb testing.TB, cl *Client, h mcp.Handler) wire {
	tb.Helper()
	near, far := mcp.Pipe()
	inBackground(tb, func(ctx context.Context) error {
		return mcp.ServeStream(ctx, h, far, cl.streamOptions(tb))
	})
	return newStreamWire(near)
}

// serveStdio serves lines of bytes, as over standard input and output.
func serveStdio(tb testing.TB, cl *Client, h mcp.Handler) wire {
	tb.Helper()
	return newStreamWire(stdioStream(tb, cl, h))
}

// stdioStream is the client's end of such lines.
func stdioStream(tb testing.TB, cl *Client, h mcp.Handler) mcp.Stream {
	tb.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	s := &mcpstdio.Server{Handler: h, In: in, Out: out, Options: cl.streamOptions(tb)}
	inBackground(tb, func(ctx context.Context) error {
		defer in.Close()
		defer out.Close()
		return s.Serve(ctx)
	})
	closeBoth := func() error {
		toServer.Close()
		return fromServer.Close()
	}
	return mcpstdio.NewStream(fromServer, toServer, &mcpstdio.StreamOptions{Close: closeBoth})
}

// streamOptions cancel what goes on when the connection is closed: the test, who
// would get the answers, has gone.
func (cl *Client) streamOptions(tb testing.TB) *mcp.StreamOptions {
	log := logger(tb)
	return &mcp.StreamOptions{
		Principal: cl.Principal, DrainTimeout: -1, Logger: log, Legacy: &mcp.LegacyOptions{Logger: log},
	}
}

// inBackground runs serve until the test has ended.
func inBackground(tb testing.TB, serve func(ctx context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithCancelCause(tb.Context())
	done := make(chan error, 1)
	go func() { done <- serve(ctx) }()
	tb.Cleanup(func() {
		cancel(mcp.ErrClosed)
		<-done //nolint:errcheck // at the end of a test, serving may end as it likes
	})
}
