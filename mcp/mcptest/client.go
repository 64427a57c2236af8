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

// self is the implementation info of the clients of this package.
var self = mcp.Implementation{Name: "mcptest", Version: "v0.0.0"}

// A Client configures the client of a test. The zero Client is unauthenticated and answers no
// questions. A Client may be used any number of times, but must not be modified after its
// first use.
type Client struct {
	// Options are the options of the client. An empty Version means the newest revision. If
	// Version is a legacy revision, [Client.Run] uses it for the legacy era. A nil Logger
	// writes to the output of the test.
	Options mcp.ClientOptions
	// Principal is the authenticated caller as seen by the server, or nil for none.
	Principal *mcp.Principal
	// Header is added to every HTTP request.
	Header http.Header
	// IgnoreLeaks are functions or packages whose goroutines may outlive a run; see
	// [NoLeaks]. An empty string disables the check for leaks.
	IgnoreLeaks []string
}

// Accept returns the result of a user accepting a form filled in with the fields of content.
// It panics if content cannot be encoded.
func Accept(content any) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: must(jsonv2.Marshal(content, jsonv2.Deterministic(true)))}
}

// Connect connects the zero [Client] to h; see [Client.Connect].
func Connect(tb testing.TB, h mcp.Handler) *mcp.Conn {
	tb.Helper()
	return new(Client).Connect(tb, h)
}

// Connect connects to h in memory and checks all messages; see [Check]. If it cannot connect,
// it fails the test. Client and server are closed when the test ends. Connect works inside a
// testing/synctest bubble.
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

// Run runs fn as a subtest for every era of the protocol on each of the [Paths], with a
// separate connection to h. The subtests are named modern/memory, legacy/http-sse and so on,
// and run sequentially; Run cannot be called in a testing/synctest bubble, where [Connect]
// can. All messages are checked; see [Check]. A subtest also fails if it
// leaks goroutines after client and server have been closed; see [NoLeaks] for exceptions.
//
// All subtests share h, so each one sees the changes made to it by the previous ones. If that
// matters, use RunNew.
func (cl *Client) Run(t *testing.T, h mcp.Handler, fn func(t *testing.T, c *mcp.Conn)) {
	t.Helper()
	cl.RunNew(t, func(*testing.T) mcp.Handler { return h }, fn)
}

// RunNew is like Run, but each subtest uses a new handler returned by newHandler. Use it for
// handlers with mutable state, such as rate limits, caches or stored data. Functions that
// newHandler passes to t.Cleanup run after client and server have been closed.
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

// Dial connects to a server and checks all messages; see [Check]. If it cannot connect, it
// fails the test. The connection is closed when the test ends.
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
