// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"context"
	"io"
	"os"

	"github.com/go-psi/psi/mcp"
)

// Serve serves h on the process's standard input and output until the input ends
// or ctx is done; see [Server.Serve].
func Serve(ctx context.Context, h mcp.Handler) error {
	return (&Server{Handler: h}).Serve(ctx)
}

// A Server serves MCP on a pair of byte streams. Its fields must not be changed
// while it serves.
type Server struct {
	Handler mcp.Handler
	// In and Out are what is read and written. Nil means the process's own,
	// which are never closed.
	In  io.Reader
	Out io.Writer
	// MaxMessage is how many bytes a message may have. 0 means
	// [DefaultMaxMessage].
	MaxMessage int
	// Options of the connection; nil means the defaults of [mcp.ServeStream].
	Options *mcp.StreamOptions
}

// Serve serves until the input ends or ctx is done. It returns nil after the end
// of the input, when what was asked has been answered or the bound for that has
// passed.
//
// While it serves the process's own standard output, nothing else gets there:
// os.Stdout is os.Stderr, so that a stray print does not break the protocol. A
// standard error that nobody reads any more does not end the process.
func (s *Server) Serve(ctx context.Context) error {
	in, out := s.In, s.Out
	if in == nil {
		in = os.Stdin
	}
	if out == nil {
		stdout := os.Stdout
		out = stdout
		os.Stdout = os.Stderr
		defer func() { os.Stdout = stdout }()
		defer surviveBrokenPipes()()
	}
	stream := NewStream(in, out, &StreamOptions{MaxMessage: s.MaxMessage})
	return mcp.ServeStream(ctx, s.Handler, stream, s.Options)
}
