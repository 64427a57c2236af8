// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"context"
	"io"
	"os"

	"github.com/go-psi/psi/mcp"
)

// Options configure [Serve]. Nil means the zero Options.
type Options struct {
	// In is read and Out is written. Nil means standard input and output, which are never closed.
	In  io.Reader
	Out io.Writer
	// MaxMessage is the maximum length of a message in bytes. 0 means
	// [DefaultMaxMessage], negative no limit.
	MaxMessage int
	// Stream configures the connection. Nil means the defaults of [ServeStream].
	Stream *StreamOptions
}

// Serve serves h on standard input and output, or on the In and Out of opts, until the input
// ends or ctx is done. After the end of the input, it returns nil once all requests have been
// answered or the DrainTimeout of the stream options has passed. opts may be nil.
//
// While Serve uses standard output, os.Stdout is set to os.Stderr, so that a stray print
// does not break the protocol. Writing to a standard error that is no longer read does not
// end the process.
func Serve(ctx context.Context, h mcp.Handler, opts *Options) error {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.In == nil {
		o.In = os.Stdin
	}
	if o.Out == nil {
		stdout := os.Stdout
		o.Out = stdout
		os.Stdout = os.Stderr
		defer func() { os.Stdout = stdout }()
		defer ignoreBrokenPipes()()
	}
	stream := newStream(o.In, o.Out, &LineOptions{MaxMessage: o.MaxMessage})
	stream.isPatient = true
	return ServeStream(ctx, h, stream, o.Stream)
}
