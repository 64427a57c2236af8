// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// openBodies is a RoundTripper that counts response bodies that have not been closed.
type openBodies struct {
	http.RoundTripper
	open atomic.Int64
}

func (o *openBodies) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := o.RoundTripper.RoundTrip(r)
	if err == nil {
		o.open.Add(1)
		res.Body = &openBody{ReadCloser: res.Body, closed: sync.OnceFunc(func() { o.open.Add(-1) })}
	}
	return res, err
}

type openBody struct {
	io.ReadCloser
	closed func()
}

func (b *openBody) Close() error {
	b.closed()
	return b.ReadCloser.Close()
}

// serverAnswers are responses to everything but notifications.
var serverAnswers = map[string]http.HandlerFunc{
	"a message":           func(w http.ResponseWriter, _ *http.Request) { say(w, `{"jsonrpc":"2.0","id":7,"result":{}}`) },
	"no message":          func(w http.ResponseWriter, _ *http.Request) { say(w, `<html>`) },
	"nothing":             refuses(http.StatusNoContent),
	"too much":            func(w http.ResponseWriter, _ *http.Request) { say(w, strings.Repeat(" ", 5000)) },
	"a stream":            says(response7),
	"a stream and more":   says(response7 + ": more\n\n"),
	"a stream that ends":  says("data:\n\n"),
	"a stream of garbage": says("data: x\n\n"),
	"a long event":        says("data: " + strings.Repeat("x", 5000) + "\n\n"),
	"its broken stream":   says("id: a\ndata:\n\n"),
	"unauthorized":        refuses(http.StatusUnauthorized),
	"not found":           refuses(http.StatusNotFound),
	"a bad request":       refuses(http.StatusBadRequest),
	"a failure":           refuses(http.StatusInternalServerError),
	"another place": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://example.com/", http.StatusFound)
	},
	"an endpoint":        says("event: endpoint\ndata: /post\n\n"),
	"a foreign endpoint": says("event: endpoint\ndata: http://example.com/\n\n"),
}

// Whatever a server sends, each response body is closed, and nothing keeps waiting on the
// context of a finished call.
func TestTransportReleasesResponses(t *testing.T) {
	for name, answer := range serverAnswers {
		for _, sessions := range []bool{true, false} {
			for _, version := range both {
				t.Run(fmt.Sprintf("%s, sessions %t, %s", name, sessions, version), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						var h http.Handler = answer
						if sessions {
							h = script{session: "s", post: answer, get: answer, del: answer}
						}
						releases(t, serve(t, h), version)
					})
				})
			}
		}
	}
}

// releases makes a call and sends a notification over each transport of a version.
func releases(t *testing.T, s *site, version string) {
	tracker := &openBodies{RoundTripper: s.client.Transport}
	opts := &mcphttp.TransportOptions{Client: &http.Client{Transport: tracker}, MaxMessage: 4000}
	for _, open := range []func(string, *mcphttp.TransportOptions) transport.Transport{mcphttp.NewTransport, mcphttp.NewSSETransport} {
		parent, cancel := context.WithTimeout(t.Context(), time.Minute)
		ctx := &watchedContext{Context: parent, done: make(chan struct{})}
		stop := context.AfterFunc(parent, func() { close(ctx.done) })
		wire, err := open("http://localhost/mcp", s.options(opts)).Connect(ctx, func(*transport.Message) {})
		if err == nil {
			if version != mcp.LatestVersion {
				_, _ = wire.Call(ctx, opening(0, version))
				_ = wire.Send(ctx, &transport.Outgoing{Method: "notifications/initialized", Version: version, Body: []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)})
			}
			for range 2 {
				_, _ = wire.Call(ctx, toolCall(7, version, "a"))
				_ = wire.Send(ctx, &transport.Outgoing{Method: "notifications/x", Version: version, Body: []byte(`{"jsonrpc":"2.0","method":"notifications/x"}`)})
			}
			if n := ctx.waiting.Load(); n != 0 {
				t.Errorf("%d wait for the context of calls that are over", n)
			}
			_ = wire.Close()
		}
		stop()
		cancel()
	}
	synctest.Wait()
	if n := tracker.open.Load(); n != 0 {
		t.Errorf("%d responses are not closed", n)
	}
}

// watchedContext counts the functions waiting for it to be done.
type watchedContext struct {
	context.Context
	done    chan struct{}
	waiting atomic.Int64
}

func (c *watchedContext) Done() <-chan struct{} { return c.done }

func (c *watchedContext) Err() error {
	select {
	case <-c.done:
		return c.Context.Err()
	default:
		return nil
	}
}

// AfterFunc is called by package context when a context is derived.
func (c *watchedContext) AfterFunc(f func()) func() bool {
	c.waiting.Add(1)
	over := sync.OnceFunc(func() { c.waiting.Add(-1) })
	stop := context.AfterFunc(c.Context, func() { over(); f() })
	return func() bool { over(); return stop() }
}

// Errors of the network are prefixed with the package name and wrap the original error.
func TestTransportNetworkErrors(t *testing.T) {
	down := errors.New("the network is down")
	opts := &mcphttp.TransportOptions{Client: &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, down })}, Logger: quiet}
	wire, err := mcphttp.NewTransport("http://localhost/mcp", opts).Connect(t.Context(), func(*transport.Message) {})
	if err != nil {
		t.Fatal(err)
	}
	defer wire.Close()
	check := func(what string, err error) {
		if !errors.Is(err, down) || !strings.HasPrefix(err.Error(), "mcphttp: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = wire.Call(t.Context(), opening(0, "2025-11-25"))
	check("the handshake", err)
	for _, version := range both {
		_, err := wire.Call(t.Context(), toolCall(1, version, "a"))
		check("a call", err)
		check("a notification", wire.Send(t.Context(), &transport.Outgoing{Method: "notifications/x", Version: version, Body: []byte("{}")}))
	}
	_, err = mcphttp.NewSSETransport("http://localhost/mcp", opts).Connect(t.Context(), func(*transport.Message) {})
	check("the stream", err)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A transport without its own http.Client closes its network connections.
func TestTransportClosesConnections(t *testing.T) {
	for name, open := range map[string]func(string, *mcphttp.TransportOptions) transport.Transport{"/mcp": mcphttp.NewTransport, "/sse": mcphttp.NewSSETransport} {
		router := mcphttp.NewRouter(tools(), &mcphttp.RouterOptions{Options: &mcphttp.Options{Logger: quiet}})
		var conns sync.WaitGroup
		server := httptest.NewUnstartedServer(router)
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				conns.Add(1)
			case http.StateClosed:
				conns.Done()
			}
		}
		server.Start()
		wire, err := open(server.URL+name, &mcphttp.TransportOptions{Logger: quiet}).Connect(t.Context(), func(*transport.Message) {})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := wire.Call(t.Context(), opening(0, "2024-11-05")); err != nil {
			t.Error(err)
		}
		_ = wire.Close()
		conns.Wait() // blocks forever if a connection stays open
		server.Close()
	}
}

// If the program has replaced the default transport by one that cannot be cloned, it is shared
// with other clients, so its network connections stay open.
func TestTransportLeavesSharedConnections(t *testing.T) {
	before := http.DefaultTransport
	defer func() { http.DefaultTransport = before }()
	shared := &closable{RoundTripper: before}
	http.DefaultTransport = shared
	wire, err := mcphttp.NewTransport("http://localhost/mcp", nil).Connect(t.Context(), func(*transport.Message) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := wire.Close(); err != nil || shared.isClosed {
		t.Errorf("%v; closed %t", err, shared.isClosed)
	}
}

// closable records whether its network connections were closed.
type closable struct {
	http.RoundTripper

	isClosed bool
}

func (c *closable) CloseIdleConnections() { c.isClosed = true }

// A transport without its own http.Client does not change the default transport of the
// program.
func TestTransportLeavesDefaultClient(t *testing.T) {
	shared, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		t.Skip("the default transport is another one")
	}
	wire, err := mcphttp.NewTransport("http://localhost/mcp", nil).Connect(t.Context(), func(*transport.Message) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := wire.Close(); err != nil || shared.MaxIdleConnsPerHost != 0 {
		t.Errorf("%v; MaxIdleConnsPerHost is %d", err, shared.MaxIdleConnsPerHost)
	}
}
