// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// blanks is the content of long texts; two of them exceed maxMessage.
var blanks = strings.Repeat(" ", maxMessage*3/4)

// way is a transport to the server and a protocol version.
type way struct {
	name    string
	version string // "" to negotiate
	to      func(v *visitor) transport.Transport
	single  bool // the connection is the session
}

var ways = []way{
	{"http modern", mcp.LatestVersion, overHTTP, false},
	{"http legacy", mcp.LegacyVersions()[0], overHTTP, false},
	{"pipe modern", mcp.LatestVersion, overPipe, false},
	{"http", "", overHTTP, false},
	{"http older", mcp.LegacyVersions()[1], overHTTP, false},
	{"pipe legacy", mcp.LegacyVersions()[0], overPipe, false},
	{"sse", mcp.LegacyVersions()[0], overSSE, true},
	{"http oldest", mcp.LegacyVersions()[3], overHTTP, false},
}

func overHTTP(v *visitor) transport.Transport {
	return mcphttp.NewTransport(v.server.url+"/mcp", v.httpOptions())
}

func overSSE(v *visitor) transport.Transport {
	return mcphttp.NewSSETransport(v.server.url+"/sse", v.httpOptions())
}

func (v *visitor) httpOptions() *mcphttp.TransportOptions {
	next := v.server.idle[max(v.number, 0)%len(v.server.idle)]
	return &mcphttp.TransportOptions{Client: &http.Client{Transport: &cuttable{next, v, v.link}}, Logger: quiet}
}

func overPipe(v *visitor) transport.Transport {
	return transport.FromStream(func(ctx context.Context) (transport.Stream, error) {
		fromServer, toServer, err := v.server.pipe(ctx)
		if err != nil {
			return nil, err
		}
		both := sync.OnceValue(func() error {
			_ = toServer.Close()
			return fromServer.Close()
		})
		v.link.add(func() { _ = both() })
		return mcpstdio.NewStream(fromServer, toServer, &mcpstdio.LineOptions{Close: both}), nil
	})
}

// link represents the network connections of a client, which can be cut.
type link struct {
	mu     sync.Mutex
	broken bool
	left   bool
	next   int
	parts  map[int]func()
}

// add registers a function that cuts part of the link, and returns a function that
// unregisters it.
func (l *link) add(cut func()) (remove func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		cut()
		return func() {}
	}
	if l.parts == nil {
		l.parts = map[int]func(){}
	}
	l.next++
	n := l.next
	l.parts[n] = cut
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.parts, n)
	}
}

// cut cuts the link permanently.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = true
	for _, cut := range l.parts {
		cut()
	}
	l.parts = nil
}

// leave records that the client is about to close the connection.
func (l *link) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = true
}

// inUse reports whether the link is neither cut nor about to be closed.
func (l *link) inUse() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.broken && !l.left
}

func (l *link) wasCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// cuttable closes the network connections of requests when the link of their client is cut.
// It reports unknown sessions as violations, because clients silently start a new session.
type cuttable struct {
	next    http.RoundTripper
	visitor *visitor
	link    *link
}

// RoundTrip implements http.RoundTripper.
func (c *cuttable) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	link := c.link
	remove := link.add(cancel)
	r = r.Clone(ctx)
	if n := c.visitor.number; n != nobody {
		r.Header.Set(clientHeader, strconv.Itoa(n))
	}
	res, err := c.next.RoundTrip(r)
	if err != nil {
		remove()
		cancel()
		return nil, fmt.Errorf("cuttable: %w", err)
	}
	if res.StatusCode == http.StatusNotFound && r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") != "" && link.inUse() {
		c.visitor.report.wrongf("%s: its session is lost", c.visitor)
	}
	res.Body = &cuttableBody{res.Body, func() {
		remove()
		cancel()
	}}
	return res, nil
}

type cuttableBody struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (b *cuttableBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
