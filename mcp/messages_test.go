// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"testing"

	"github.com/go-psi/psi/internal/legacyserver"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// core is what the transports of this module use.
var core = mcp.Internal(seam.Key{})

// requestOf returns the request or notification that a message is.
func requestOf(tb testing.TB, m transport.Message) *mcp.Request {
	tb.Helper()
	req, err := core.NewRequest(&m)
	if err != nil {
		tb.Fatal(err)
	}
	return req
}

// play has a session serve one message, and returns the response.
func play(ctx context.Context, s *legacyserver.Session, m transport.Message, out serving.Sender) []byte {
	c := s.Accept(ctx, m, serving.Origin{})
	c.Serve(out)
	return c.Append(nil)
}

// memory returns a transport to a handler in memory, which serves all revisions.
func memory(tb testing.TB, h mcp.Handler) transport.Transport {
	return mcptest.Paths()[0].Serve(tb, h)
}
