// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// wireEra is how a peer that writes its messages by hand speaks.
type wireEra struct {
	name string
	open []string // what comes before requests
	meta string
}

var eras = []wireEra{
	{"modern", nil, `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`},
	{"legacy", []string{
		`{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"p","version":"v1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	}, `"_meta":{}`},
}

// request is a request whose params have the members.
func (e wireEra) request(id, method, members string) string {
	if members != "" {
		members += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s%s}}`, id, method, members, e.meta)
}

// scripted is a stream whose peer can end what it says and still listen.
type scripted struct {
	in, out chan []byte
	closed  chan struct{}
	once    sync.Once
}

func newScripted() *scripted {
	return &scripted{in: make(chan []byte, 4096), out: make(chan []byte, 4096), closed: make(chan struct{})}
}

func (s *scripted) Read(ctx context.Context) ([]byte, error) {
	select {
	case m, ok := <-s.in:
		if !ok {
			return nil, io.EOF
		}
		return m, nil
	case <-s.closed:
		return nil, io.ErrClosedPipe
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *scripted) Write(_ context.Context, message []byte) error {
	s.out <- slices.Clone(message)
	return nil
}

func (s *scripted) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// peer is the other end of a stream that is served, for tests of single messages.
type peer struct {
	t      *testing.T
	stream *scripted
	served chan error
}

// newPeer serves h to a peer that has opened its conversation.
func newPeer(t *testing.T, h mcp.Handler, era wireEra) *peer {
	t.Helper()
	return servePeer(t, h, era, nil)
}

func servePeer(t *testing.T, h mcp.Handler, era wireEra, opts *mcpstdio.StreamOptions) *peer {
	t.Helper()
	p := &peer{t, newScripted(), make(chan error, 1)}
	go func() { p.served <- mcpstdio.ServeStream(t.Context(), h, p.stream, opts) }()
	t.Cleanup(func() { p.stream.Close() })
	for i, m := range era.open {
		p.send(m)
		if i == 0 {
			p.read()
		}
	}
	return p
}

func (p *peer) send(message string) { p.stream.in <- []byte(message) }

// receive is the next message.
func (p *peer) receive() string {
	p.t.Helper()
	select {
	case m := <-p.stream.out:
		return string(m)
	case <-p.t.Context().Done():
		p.t.Fatal("no message came")
		return ""
	}
}

// read is the next message, which must be a response.
func (p *peer) read() *transport.Message {
	p.t.Helper()
	data := p.receive()
	m, err := transport.ParseMessage([]byte(data))
	if err != nil || !m.IsResponse() {
		p.t.Fatalf("got %s, %v; want a response", data, err)
	}
	return &m
}

// finish ends what the peer says, waits for the server, and returns what it has
// said meanwhile.
func (p *peer) finish() (said []string) {
	p.t.Helper()
	close(p.stream.in)
	if err := <-p.served; err != nil {
		p.t.Errorf("serving ended with %v", err)
	}
	for {
		select {
		case m := <-p.stream.out:
			said = append(said, string(m))
		default:
			return said
		}
	}
}
