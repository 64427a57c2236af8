// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"context"
	"io"
	"os"

	"github.com/go-psi/psi/mcp"
)

// Serve serves h on the standard input and output of the process until the input ends or
// ctx is done; see [Server.Serve].
func Serve(ctx context.Context, h mcp.Handler) error {
	return (&Server{Handler: h}).Serve(ctx)
}

// A Server serves MCP on a reader and a writer. Its fields must not be changed while it serves.
type Server struct {
	Handler mcp.Handler
	// In is read and Out is written. Nil means standard input and output, which are never closed.
	In  io.Reader
	Out io.Writer
	// MaxMessage is the maximum length of a message in bytes. 0 means
	// [DefaultMaxMessage], negative no limit.
	MaxMessage int
	// Options configure the connection. Nil means the defaults of [ServeStream].
	Options *StreamOptions
}

// Serve serves until the input ends or ctx is done. After the end of the input, it returns
// nil once all requests have been answered or the DrainTimeout of the options has passed.
//
// While Serve uses standard output, os.Stdout is set to os.Stderr, so that a stray print
// does not break the protocol. Writing to a standard error that is no longer read does not
// end the process.
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
		defer ignoreBrokenPipes()()
	}
	stream := newStream(in, out, &LineOptions{MaxMessage: s.MaxMessage})
	stream.isPatient = true
	return ServeStream(ctx, s.Handler, stream, s.Options)
}
