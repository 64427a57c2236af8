// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"

	"github.com/go-psi/psi/mcp"
)

// streamWire is a connection over a stream of messages.
type streamWire struct {
	stream mcp.Stream
	done   chan struct{} // closed when the reader has ended
}

func newStreamWire(s mcp.Stream) *streamWire { return &streamWire{s, make(chan struct{})} }

func (w *streamWire) start(c *Conn) {
	go func() {
		defer close(w.done)
		for {
			data, err := w.stream.Read(c.ctx)
			if err != nil {
				c.cancel(mcp.ErrClosed)
				return
			}
			c.receive(data, mcp.ID{})
		}
	}()
}

func (w *streamWire) send(ctx context.Context, m *message) error { return w.stream.Write(ctx, m.data) }

func (w *streamWire) listen(context.Context) error { return nil }

func (w *streamWire) aborts() bool { return false }

func (w *streamWire) close(context.Context) {
	_ = w.stream.Close() // what it could not send, nobody waits for
	<-w.done
}
