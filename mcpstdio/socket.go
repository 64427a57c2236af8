// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"context"
	"net"

	"github.com/go-psi/psi/mcp/transport"
)

// NewSocket returns a Transport that connects to a server listening on a socket, such as
// one that runs [ServeListener]. The network and address are as for [net.Dial]: "unix" and
// a path, or "tcp" and a host and port. Messages have the same format as on standard input
// and output and at most [DefaultMaxMessage] bytes. They are not encrypted, and the peers
// are not authenticated: a Unix socket is protected by the permissions of its directory, a
// TCP port is not protected at all.
func NewSocket(network, address string) transport.Transport {
	return transport.FromStream(func(ctx context.Context) (transport.Stream, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		peer := "the server at the " + network + " socket " + address
		return &socket{in: newLineReader(conn, DefaultMaxMessage), out: newLineWriter(conn), peer: peer}, nil
	})
}

// A socket is the client's end of a connection.
type socket struct {
	in   *lineReader
	out  *lineWriter
	peer string
}

// Peer describes the server; see [transport.Info].
func (s *socket) Peer() string { return s.peer }

// Read implements [transport.Stream]. Close interrupts it.
func (s *socket) Read(context.Context) ([]byte, error) { return s.in.readMessage() }

// Write implements [transport.Stream].
func (s *socket) Write(ctx context.Context, message []byte) error {
	return s.out.writeMessage(ctx, message)
}

// Close implements [transport.Stream].
func (s *socket) Close() error {
	s.out.close() // closes the connection, which ends Read as well
	return nil
}
