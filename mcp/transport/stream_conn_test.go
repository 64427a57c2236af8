// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package transport_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp/transport"
)

// A reluctantStream writes its first message only after its writer has given up, and then
// reports that to the writer.
type reluctantStream struct {
	transport.Stream

	cancel  context.CancelFunc // of the writer
	written chan string
}

func (s *reluctantStream) Write(ctx context.Context, message []byte) error {
	s.written <- string(message)
	if s.cancel == nil {
		return nil
	}
	s.cancel()
	s.cancel = nil
	<-ctx.Done()
	return context.Cause(ctx)
}

// A call that is cancelled while its request is being written is cancelled at the server,
// too: the request may arrive after all.
func TestFindingY9CallCancelledWhileItIsWritten(t *testing.T) {
	client, server := transport.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	stream := &reluctantStream{Stream: client, cancel: cancel, written: make(chan string, 2)}
	conn := transport.NewConn(stream, func(*transport.Message) {})
	defer conn.Close()
	defer server.Close()
	request := &transport.Outgoing{ID: transport.IntID(1), Method: "tools/call", Body: []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)}
	if _, err := conn.Call(ctx, request); !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	<-stream.written
	select {
	case got := <-stream.written:
		if !strings.Contains(got, "notifications/cancelled") {
			t.Errorf("the second message is %s", got)
		}
	default:
		t.Error("the server was not told")
	}
}
