// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"testing"

	"github.com/go-psi/psi/mcp"
)

// transports are the ways to reach a server, by the name of their subtest.
var transports = []struct {
	name  string
	serve server
}{
	{"memory", serveMemory},
	{"stdio", serveStdio},
	{"http-json", serveHTTP(acceptBoth)},
	{"http-sse", serveHTTP(acceptStream)},
}

// Run runs fn with the zero [Client]; see [Client.Run].
func Run(t *testing.T, h mcp.Handler, fn func(t *testing.T, c *Conn)) {
	t.Helper()
	new(Client).Run(t, h, fn)
}

// Run runs fn as a subtest for each era and transport, with a connection to h: in
// memory, over lines of bytes as with stdio, over HTTP where the server answers
// in JSON whenever it can, and over HTTP where it must answer with event streams.
// The subtests are named modern/memory, legacy/http-sse and so on, and run one
// after the other.
//
// All of them use the same h. What fn changes in it, fn has to undo.
func (cl *Client) Run(t *testing.T, h mcp.Handler, fn func(t *testing.T, c *Conn)) {
	t.Helper()
	modern, legacy := *cl, *cl
	if cl.isLegacy() {
		modern.Version = mcp.LatestVersion
	} else {
		legacy.Version = mcp.LegacyVersions()[0]
	}
	t.Run("modern", func(t *testing.T) { modern.runAll(t, h, fn) })
	t.Run("legacy", func(t *testing.T) { legacy.runAll(t, h, fn) })
}

func (cl *Client) runAll(t *testing.T, h mcp.Handler, fn func(t *testing.T, c *Conn)) {
	for _, transport := range transports {
		t.Run(transport.name, func(t *testing.T) {
			NoLeaks(t)
			fn(t, cl.open(t, transport.serve(t, cl, h)))
		})
	}
}
