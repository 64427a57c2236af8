// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package memnet

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// A Listener accepts the connections that its Dial makes. It implements
// net.Listener; its address is a loopback address.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen makes a listener.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// Dial connects to the listener. A connection holds nothing that was written and
// not read.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- conn{server, l.Addr()}:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// conn has the listener's address in place of a pipe's.
type conn struct {
	net.Conn
	local net.Addr
}

func (c conn) LocalAddr() net.Addr { return c.local }

// Client is an HTTP client all of whose requests go to the listener.
func (l *Listener) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.Dial(ctx) },
	}}
}
