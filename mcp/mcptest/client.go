// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"cmp"
	"net/http"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// self identifies the clients of this package.
var self = mcp.Implementation{Name: "mcptest", Version: "v0.0.0"}

// A Client describes the client of a test. The zero Client is anonymous and answers no
// questions. It may be used any number of times, but must not be changed after its
// first use.
type Client struct {
	// Options are the options of the client. An empty Version means the newest
	// revision; [Client.Run] uses it for the era it belongs to. A nil Logger writes to
	// the output of the test.
	Options mcp.ClientOptions
	// Principal is the authenticated caller as the server sees it, nil for none.
	Principal *mcp.Principal
	// Header is added to every HTTP request.
	Header http.Header
	// IgnoreLeaks are functions or packages whose goroutines may outlive a run; see
	// [NoLeaks]. One that is empty turns the check for leaks off.
	IgnoreLeaks []string
}

// Accept returns the answer of a user who fills in a form with the fields of content.
// It panics if content cannot be encoded.
func Accept(content any) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: must(jsonv2.Marshal(content, jsonv2.Deterministic(true)))}
}

// Connect connects the zero [Client] to h; see [Client.Connect].
func Connect(tb testing.TB, h mcp.Handler) *mcp.Conn {
	tb.Helper()
	return new(Client).Connect(tb, h)
}

// Connect connects to h in memory and checks all messages; see [Check]. It fails the
// test if it cannot connect. Client and server are closed when the test ends. Connect
// works inside a testing/synctest bubble.
func (cl *Client) Connect(tb testing.TB, h mcp.Handler) *mcp.Conn {
	tb.Helper()
	return cl.dial(tb, serveMemory(tb, cl, h), cmp.Or(cl.Options.Version, mcp.LatestVersion))
}

// Run runs fn with the zero [Client]; see [Client.Run].
func Run(t *testing.T, h mcp.Handler, fn func(t *testing.T, c *mcp.Conn)) {
	t.Helper()
	new(Client).Run(t, h, fn)
}

// RunNew runs fn with the zero [Client]; see [Client.RunNew].
func RunNew(t *testing.T, newHandler func(t *testing.T) mcp.Handler, fn func(t *testing.T, c *mcp.Conn)) {
	t.Helper()
	new(Client).RunNew(t, newHandler, fn)
}

// Run runs fn as a subtest for every era of the protocol on every one of the [Paths],
// each with a connection of its own to h. The subtests are named modern/memory,
// legacy/http-sse and so on, and run one after the other. All messages are checked; see
// [Check]. A subtest also fails if a goroutine is left behind when client and server
// have been closed; [NoLeaks] says what is not counted.
//
// All subtests share h: what one of them changes in it, the next one finds. If that
// matters, use RunNew.
func (cl *Client) Run(t *testing.T, h mcp.Handler, fn func(t *testing.T, c *mcp.Conn)) {
	t.Helper()
	cl.RunNew(t, func(*testing.T) mcp.Handler { return h }, fn)
}

// RunNew is like Run, but each subtest has a handler of its own, which newHandler
// returns. Use it for handlers with state that calls change, such as rate limits, caches
// or stored data. Functions that newHandler passes to t.Cleanup run after client and
// server have been closed.
func (cl *Client) RunNew(t *testing.T, newHandler func(t *testing.T) mcp.Handler, fn func(t *testing.T, c *mcp.Conn)) {
	t.Helper()
	for _, path := range Paths() {
		for _, version := range path.Versions() {
			era, version := cl.eraOf(version)
			t.Run(era+"/"+path.Name, func(t *testing.T) {
				NoLeaks(t, cl.IgnoreLeaks...)
				h := newHandler(t)
				fn(t, cl.dial(t, path.serve(t, cl, h), version))
			})
		}
	}
}

func (cl *Client) dial(tb testing.TB, transport transport.Transport, version string) *mcp.Conn {
	tb.Helper()
	opts := cl.Options
	opts.Version = version
	if opts.Logger == nil {
		opts.Logger = logger(tb)
	}
	return Dial(tb, transport, &opts)
}

// Dial connects to a server until the test ends, and checks all messages; see [Check].
// It fails the test if it cannot connect.
func Dial(tb testing.TB, transport transport.Transport, opts *mcp.ClientOptions) *mcp.Conn {
	tb.Helper()
	c, err := mcp.NewClient(self.Name, self.Version, opts).Connect(tb.Context(), Check(tb, transport))
	if err != nil {
		tb.Fatalf("mcptest: connecting: %v", err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Errorf("mcptest: closing: %v", err)
		}
	})
	return c
}
