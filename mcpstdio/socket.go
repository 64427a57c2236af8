// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"context"
	"io"
	"net"

	"github.com/go-psi/psi/mcp"
)

// NewSocket makes a Transport to a server that listens on a socket, such as one
// that runs [ServeListener]. Network and address are those of [net.Dial]: "unix"
// and a path, "tcp" and a host and port. Messages are framed as on standard input
// and output, and may be as long as [DefaultMaxMessage]. Nothing is encrypted, and
// neither side learns who the other is: a Unix socket is protected by the permissions
// of its directory, a TCP port by nothing.
func NewSocket(network, address string) mcp.Transport {
	return mcp.StreamTransport(func(ctx context.Context) (mcp.Stream, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		in := newStream(conn, io.Discard, nil)
		in.interrupts = connReads{conn}
		return &socket{out: newLineWriter(conn), in: in}, nil
	})
}

// A socket is the client's end of a connection.
type socket struct {
	in  *stream
	out *lineWriter
}

func (s *socket) Read(ctx context.Context) ([]byte, error) { return s.in.Read(ctx) }

// Interruptible is what [mcp.Stream] says of it.
func (s *socket) Interruptible() bool { return s.in.Interruptible() }

func (s *socket) Write(ctx context.Context, message []byte) error { return s.out.write(ctx, message) }

func (s *socket) Close() error {
	s.out.close() // with it, what is read
	return nil
}
