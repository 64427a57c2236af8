// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// A message that is too long fails the call that it answers, wherever its ID is. If it is a
// request, it is refused with its ID. The stream goes on.
func TestFindingW2TooLong(t *testing.T) {
	long := strings.Repeat(`x\"id\":1}`, 1<<14)
	for _, answer := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{"a":"` + long + `"}}`,
		`{"result":{"a":"` + long + `"},"jsonrpc":"2.0","id":7}`,
		`{"jsonrpc":"2.0","id":7.0,"error":{"code":1,"message":"` + long + `"}}`,
	} {
		fromServer, toClient := io.Pipe()
		fromClient, toServer := io.Pipe()
		stream := mcpstdio.NewStream(fromServer, toServer, &mcpstdio.LineOptions{MaxMessage: 64 << 10, Close: func() error {
			return errors.Join(fromServer.Close(), toServer.Close())
		}})
		wire := transport.NewConn(stream, func(transport.Message, mcp.ID) {})
		go func() {
			if _, err := bufio.NewReader(fromClient).ReadString('\n'); err == nil {
				_, _ = fmt.Fprintln(toClient, answer)
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r, err := wire.Call(ctx, &transport.Outgoing{ID: mcp.IntID(7), Method: "tools/call", Body: []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`)})
		if !errors.Is(err, mcp.ErrUnreadable) || !strings.Contains(err.Error(), "65536 bytes") {
			t.Errorf("%.40s: %+v, %v", answer, r, err)
		}
		cancel()
		_ = wire.Close()
	}
}

func TestFindingW2W5TooLongRequest(t *testing.T) {
	long := strings.Repeat("x", 128<<10)
	fromServer, out := io.Pipe()
	in := strings.NewReader(`{"method":"tools/call","params":{"name":"` + long + `"},"jsonrpc":"2.0","id":"a"}` + "\n")
	go func() {
		opts := &mcpstdio.StreamOptions{Logger: slog.New(slog.DiscardHandler)}
		_ = mcpstdio.ServeStream(t.Context(), mcp.NewMux("m", "v1", nil), mcpstdio.NewStream(in, out, &mcpstdio.LineOptions{MaxMessage: 64 << 10}), opts)
		_ = out.Close()
	}()
	said, err := io.ReadAll(fromServer)
	m, parseErr := transport.ParseMessage(said)
	if err != nil || parseErr != nil || m.ID != mcp.StringID("a") || m.Error == nil {
		t.Errorf("it was answered with %s (%v, %v)", said, err, parseErr)
	}
}
