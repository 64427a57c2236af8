// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package model_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/test/memnet"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// sessionIdle is how long idle HTTP sessions live.
const sessionIdle = 10 * time.Minute

// patience is how long a shutdown waits for requests.
const patience = 5 * time.Second

// site serves a world over every transport, in memory.
type site struct {
	w      *world
	ctx    context.Context
	cancel context.CancelFunc

	mcp        *mcphttp.Handler
	sse        *mcphttp.SSEHandler
	server     *http.Server
	http       *memnet.Listener
	socks      map[*mcp.Principal]*memnet.Listener
	httpClient *http.Client
	serving    sync.WaitGroup
	streams    *mcpstdio.StreamOptions
	gateways   map[string]*mcp.Mux // by name of the way
	behind     []*mcp.Conn         // connections of gateways
}

func newSite(w *world) *site {
	opts := &mcphttp.Options{Logger: quiet, Sessions: mcphttp.SessionOptions{Idle: sessionIdle, AskTimeout: askTimeout}}
	s := &site{
		w: w, mcp: mcphttp.NewHandler(w.handler, opts), sse: mcphttp.NewSSEHandler(w.handler, opts),
		http: memnet.Listen(), socks: map[*mcp.Principal]*memnet.Listener{}, gateways: map[string]*mcp.Mux{},
		streams: &mcpstdio.StreamOptions{Logger: quiet, DrainTimeout: patience, AskTimeout: askTimeout},
	}
	s.ctx, s.cancel = context.WithCancel(w.ctx)
	routes := http.NewServeMux()
	routes.Handle("/mcp", s.mcp)
	routes.Handle("/sse", s.sse)
	s.server = &http.Server{Handler: authenticated(routes), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	s.httpClient = s.http.Client()
	s.serving.Go(func() { _ = s.server.Serve(s.http) })
	for _, p := range principals {
		sock := memnet.Listen()
		s.socks[p] = sock
		s.serving.Go(func() {
			_ = mcpstdio.ServeListener(s.ctx, w.handler, sock, &mcpstdio.ListenerOptions{InsecureTCP: true, Stream: s.streamOf(p)})
		})
	}
	return s
}

// streamOf returns the options of a stream whose client is p.
func (s *site) streamOf(p *mcp.Principal) *mcpstdio.StreamOptions {
	opts := *s.streams
	opts.Principal = p
	return &opts
}

// shutDown shuts the server down gracefully.
func (s *site) shutDown() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.w.ctx), patience)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() { _ = s.mcp.Shutdown(ctx) })
	both.Go(func() { _ = s.sse.Shutdown(ctx) })
	s.cancel()
	both.Wait()
}

// leave closes the connections of gateways.
func (s *site) leave() {
	for _, c := range s.behind {
		if err := c.Close(); err != nil {
			s.w.wrongf("the gateway's connection: Close returned %v", err)
		}
	}
}

// close closes the HTTP server and waits for goroutines.
func (s *site) close() {
	_ = s.server.Close()
	s.httpClient.CloseIdleConnections()
	s.serving.Wait()
}

// forgetSessions ends all Streamable HTTP sessions.
func (s *site) forgetSessions() (n int) {
	for session := range s.mcp.Sessions() {
		session.Close()
		n++
	}
	return n
}

// noSessions checks that there are no sessions.
func (w *world) noSessions(when string) {
	n := 0
	for range w.site.mcp.Sessions() {
		n++
	}
	for range w.site.sse.Sessions() {
		n++
	}
	if n > 0 {
		w.wrongf("%s there are %d sessions", when, n)
	}
}

// way is a way to reach the server.
type way struct {
	name     string
	legacy   bool // legacy era only
	sessions bool // has sessions that the server can forget
	mounted  bool // behind a mount
	gateway  bool // the server does not see the client's principal
	shared   bool // the gateway uses one stream, on which calls cannot be told apart
	to       func(s *site, f *faults) transport.Transport
}

// ways lists all ways to reach the server, in memory.
var ways = []way{
	{name: "memory", to: func(s *site, f *faults) transport.Transport {
		return s.inMemory(as(f.client.principal, s.w.handler))
	}},
	{name: "stdio", to: func(s *site, f *faults) transport.Transport {
		return transport.FromStream(stuttering(f, s.pipe(f.client.principal)))
	}},
	{name: "socket", to: func(s *site, f *faults) transport.Transport {
		return transport.FromStream(stuttering(f, s.dial(f.client.principal)))
	}},
	{name: "http-json", sessions: true, to: func(s *site, f *faults) transport.Transport {
		return mcphttp.NewTransport("http://localhost/mcp", s.through(f, ""))
	}},
	{name: "http-sse", sessions: true, to: func(s *site, f *faults) transport.Transport {
		return mcphttp.NewTransport("http://localhost/mcp", s.through(f, "text/event-stream"))
	}},
	{name: "mux", mounted: true, to: inMux},
	{name: "gateway to modern http", mounted: true, gateway: true, to: gateway(mcp.LatestVersion, (*site).overHTTP)},
	{name: "gateway to legacy http", mounted: true, gateway: true, sessions: true, to: gateway(mcp.LegacyVersions()[0], (*site).overHTTP)},
	{name: "gateway to legacy stdio", mounted: true, gateway: true, shared: true, to: gateway(mcp.LegacyVersions()[0], (*site).overStdio)},
	{name: "sse", legacy: true, to: func(s *site, f *faults) transport.Transport {
		return mcphttp.NewSSETransport("http://localhost/sse", s.through(f, ""))
	}},
}

// mounted and mountedURI are the prefixes of names and URIs behind a mount.
const (
	mounted    = "b_"
	mountedURI = "mount:b_:"
)

// uri returns the URI of a resource as clients see it.
func (w way) uri(uri string) string {
	if w.mounted {
		return mountedURI + uri
	}
	return uri
}

// pipe serves the server over pipes, as over standard input and output.
func (s *site) pipe(p *mcp.Principal) func(context.Context) (transport.Stream, error) {
	return func(context.Context) (transport.Stream, error) {
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		s.serving.Go(func() {
			defer in.Close()
			defer out.Close()
			_ = mcpstdio.Serve(s.ctx, s.w.handler, &mcpstdio.Options{In: in, Out: out, Stream: s.streamOf(p)})
		})
		closeBoth := func() error {
			toServer.Close()
			return fromServer.Close()
		}
		return mcpstdio.NewStream(fromServer, toServer, &mcpstdio.LineOptions{Close: closeBoth}), nil
	}
}

// dial connects to the socket of a principal.
func (s *site) dial(p *mcp.Principal) func(context.Context) (transport.Stream, error) {
	return func(ctx context.Context) (transport.Stream, error) {
		conn, err := s.socks[p].Dial(ctx)
		if err != nil {
			return nil, err
		}
		return mcpstdio.NewStream(conn, conn, &mcpstdio.LineOptions{Close: conn.Close}), nil
	}
}

func (s *site) through(f *faults, accept string) *mcphttp.TransportOptions {
	return &mcphttp.TransportOptions{Client: &http.Client{Transport: &cutter{next: s.httpClient.Transport, faults: f, accept: accept}}, Logger: quiet}
}

// inMemory serves a handler over an in-memory pipe.
func (s *site) inMemory(h mcp.Handler) transport.Transport {
	return transport.FromStream(func(context.Context) (transport.Stream, error) {
		near, far := transport.Pipe()
		s.serving.Go(func() { _ = mcpstdio.ServeStream(s.ctx, h, far, s.streams) })
		return near, nil
	})
}
