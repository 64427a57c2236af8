// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// A Way is a way of a client to a server, both in the process of the test.
type Way struct {
	Name string
	// To serves h for the time of the test.
	To func(tb testing.TB, h mcp.Handler) mcp.Transport
	// Legacy says that only the legacy era can be spoken on it.
	Legacy bool
}

// Versions are one of each era that can be spoken, the newest first.
func (w Way) Versions() []string {
	legacy := mcp.LegacyVersions()[0]
	if w.Legacy {
		return []string{legacy}
	}
	return []string{mcp.LatestVersion, legacy}
}

// Ways are all ways: in process, lines of bytes as over standard input and output,
// a Unix domain socket, streamable HTTP with its two kinds of answers, and HTTP+SSE.
func Ways() []Way {
	return []Way{
		{Name: "memory", To: func(_ testing.TB, h mcp.Handler) mcp.Transport { return mcp.InProcess(h) }},
		{Name: "stdio", To: stdioTransport},
		{Name: "socket", To: socketTransport},
		{Name: "http-json", To: httpTransport("")},
		{Name: "http-sse", To: httpTransport(acceptStream)},
		{Name: "sse", To: sseTransport, Legacy: true},
	}
}

// RunClient runs fn as a subtest over every one of the [Ways] and era, each with a
// connection of its own and a check for leaks. The client is the one that programs
// use: mcp's own, made with opts, whose Version and Logger it chooses. Names are
// those of the era and the way, such as "modern/stdio".
func RunClient(t *testing.T, h mcp.Handler, opts *mcp.ClientOptions, fn func(t *testing.T, c *mcp.Conn)) {
	t.Helper()
	for _, way := range Ways() {
		for _, version := range way.Versions() {
			era := "legacy"
			if version == mcp.LatestVersion {
				era = "modern"
			}
			t.Run(era+"/"+way.Name, func(t *testing.T) {
				NoLeaks(t)
				var o mcp.ClientOptions
				if opts != nil {
					o = *opts
				}
				o.Version, o.Logger = version, logger(t)
				fn(t, Dial(t, way.To(t, h), &o))
			})
		}
	}
}

// Dial connects to a server for the time of a test, with mcp's own client. It fails
// the test if that is not possible.
func Dial(tb testing.TB, transport mcp.Transport, opts *mcp.ClientOptions) *mcp.Conn {
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

// stdioTransport serves lines of bytes, as over standard input and output.
func stdioTransport(tb testing.TB, h mcp.Handler) mcp.Transport {
	return mcp.StreamTransport(func(context.Context) (mcp.Stream, error) { return stdioStream(tb, new(Client), h), nil })
}

// socketTransport serves on a Unix domain socket.
func socketTransport(tb testing.TB, h mcp.Handler) mcp.Transport {
	dir, err := os.MkdirTemp("", "psi") //nolint:usetesting // a test's own directory may be too long for the path of a socket
	if err != nil {
		tb.Fatalf("mcptest: %v", err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "socket")
	l, err := new(net.ListenConfig).Listen(tb.Context(), "unix", path)
	if err != nil {
		tb.Fatalf("mcptest: %v", err)
	}
	opts := &mcpstdio.ListenerOptions{Stream: new(Client).streamOptions(tb)}
	inBackground(tb, func(ctx context.Context) error { return mcpstdio.ServeListener(ctx, l, h, opts) })
	return mcpstdio.NewSocket("unix", path)
}

// httpTransport serves on a loopback port. The client accepts what it usually does,
// or, if accept is not empty, that alone.
func httpTransport(accept string) func(tb testing.TB, h mcp.Handler) mcp.Transport {
	return func(tb testing.TB, h mcp.Handler) mcp.Transport {
		url, opts := onLoopback(tb, mcphttp.NewHandler(h, &mcphttp.Options{Logger: logger(tb)}), accept)
		return mcphttp.NewTransport(url, opts)
	}
}

func sseTransport(tb testing.TB, h mcp.Handler) mcp.Transport {
	url, opts := onLoopback(tb, mcphttp.NewSSEHandler(h, &mcphttp.Options{Logger: logger(tb)}), "")
	return mcphttp.NewSSETransport(url, opts)
}

// onLoopback serves on a loopback port until the test has ended. The options are for a
// client that accepts these types, "" for all.
func onLoopback(tb testing.TB, e endpoint, accept string) (url string, opts *mcphttp.TransportOptions) {
	base := &http.Transport{}
	tb.Cleanup(base.CloseIdleConnections) // when the server has ended
	url = serveLoopback(tb, e, e)
	client := &http.Client{Transport: accepting{base, accept}}
	return url, &mcphttp.TransportOptions{Client: client, Logger: logger(tb)}
}

// accepting narrows what requests accept.
type accepting struct {
	next   http.RoundTripper
	accept string
}

func (a accepting) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.accept != "" && r.Method == http.MethodPost {
		r = r.Clone(r.Context())
		r.Header.Set("Accept", a.accept)
	}
	return a.next.RoundTrip(r)
}
