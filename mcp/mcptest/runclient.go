// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// clientTransports are the ways of the real client to reach a server, by the name
// of their subtest.
var clientTransports = []struct {
	name string
	to   func(tb testing.TB, h mcp.Handler) mcp.Transport
}{
	{"memory", func(_ testing.TB, h mcp.Handler) mcp.Transport { return mcp.InProcess(h) }},
	{"stdio", stdioTransport},
	{"http-json", httpTransport("")},
	{"http-sse", httpTransport(acceptStream)},
}

// RunClient runs fn as [Client.Run] does, with the client that programs use: mcp's
// own, made with opts, whose Version it chooses. The subtests have the same names.
func RunClient(t *testing.T, h mcp.Handler, opts *mcp.ClientOptions, fn func(t *testing.T, c *mcp.Conn)) {
	t.Helper()
	for era, version := range map[string]string{"modern": mcp.LatestVersion, "legacy": mcp.LegacyVersions()[0]} {
		for _, transport := range clientTransports {
			t.Run(era+"/"+transport.name, func(t *testing.T) {
				NoLeaks(t)
				var o mcp.ClientOptions
				if opts != nil {
					o = *opts
				}
				o.Version, o.Logger = version, logger(t)
				fn(t, Dial(t, transport.to(t, h), &o))
			})
		}
	}
}

// Dial connects to a server for the time of a test, with mcp's own client. It fails
// the test if that is not possible.
func Dial(tb testing.TB, transport mcp.Transport, opts *mcp.ClientOptions) *mcp.Conn {
	tb.Helper()
	c, err := mcp.NewClient(self.Name, self.Version, opts).Connect(tb.Context(), transport)
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
	return mcp.StreamTransport(func(context.Context) (mcp.Stream, error) {
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		s := &mcpstdio.Server{Handler: h, In: in, Out: out, Options: new(Client).streamOptions(tb)}
		inBackground(tb, func(ctx context.Context) error {
			defer in.Close()
			defer out.Close()
			return s.Serve(ctx)
		})
		closeBoth := func() error {
			toServer.Close()
			return fromServer.Close()
		}
		return mcpstdio.NewStream(fromServer, toServer, &mcpstdio.StreamOptions{Close: closeBoth}), nil
	})
}

// httpTransport serves on a loopback port. The client accepts what it usually does,
// or, if accept is not empty, that alone.
func httpTransport(accept string) func(tb testing.TB, h mcp.Handler) mcp.Transport {
	return func(tb testing.TB, h mcp.Handler) mcp.Transport {
		endpoint := mcphttp.NewHandler(h, &mcphttp.Options{Logger: logger(tb)})
		s := httptest.NewServer(endpoint)
		base := &http.Transport{}
		tb.Cleanup(func() {
			defer s.Close()
			defer base.CloseIdleConnections()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), closeTimeout)
			defer cancel()
			if err := endpoint.Shutdown(ctx); err != nil {
				tb.Errorf("mcptest: the HTTP server did not come to its end: %v", err)
			}
		})
		client := &http.Client{Transport: accepting{base, accept}}
		return mcphttp.NewTransport(s.URL, &mcphttp.TransportOptions{Client: client, Logger: logger(tb)})
	}
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
