// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-psi/psi/internal/test/memnet"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

var sharedKey = []byte("a secret of all replicas")

// A fleet is a number of replicas that share sessions, with a network between them.
type fleet struct {
	t      *testing.T
	values store.Values

	mu   sync.Mutex
	all  map[string]*replica // by host
	cuts map[string]bool     // hosts that do not answer
	keys [][]byte
	wrap func(http.Handler) http.Handler // around the handlers for clients
}

// A replica is a handler of a fleet. Clients use its site, other replicas its peer handler.
type replica struct {
	*site

	handler *mcphttp.Handler
	fleet   *fleet
	host    string

	wrapPeers func(http.Handler) http.Handler // around the peer handler; nil means nothing
	peers     *memnet.Listener
	server    *http.Server // of the peer handler
}

// newFleet returns a fleet without replicas. Nil values mean a new store.
func newFleet(t *testing.T, values store.Values) *fleet {
	t.Helper()
	if values == nil {
		values = store.NewMemory(nil)
	}
	return &fleet{t: t, values: values, all: map[string]*replica{}, cuts: map[string]bool{}, keys: [][]byte{sharedKey}, wrap: identified}
}

// add starts a replica. The options may be nil.
func (f *fleet) add(mux mcp.Handler, opts *mcphttp.Options) *replica {
	f.t.Helper()
	o := mcphttp.Options{Heartbeat: -1}
	if opts != nil {
		o = *opts
	}
	o.Logger = cmp.Or(o.Logger, quiet)
	f.mu.Lock()
	r := &replica{fleet: f, host: fmt.Sprintf("replica-%d", len(f.all))}
	f.all[r.host] = r
	f.mu.Unlock()
	o.Sessions.Shared = &mcphttp.SharedSessions{
		Values: f.values, URL: "http://" + r.host + "/peers", Keys: f.keys, Transport: &http.Transport{DialContext: f.dial},
	}
	r.handler = newHandler(f.t, mux, &o)
	r.site = serve(f.t, f.wrap(r.handler))
	r.servePeers()
	return r
}

func (r *replica) servePeers() {
	handler := r.handler.PeerHandler()
	if r.wrapPeers != nil {
		handler = r.wrapPeers(handler)
	}
	peers, server := memnet.Listen(), &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	r.peers, r.server = peers, server
	go func() { _ = server.Serve(peers) }()
	r.fleet.t.Cleanup(func() { _ = server.Close() })
}

// logger returns a logger that writes to log.
func logger(log *logged) *slog.Logger { return slog.New(slog.NewTextHandler(log, nil)) }

// pair starts two replicas with muxes of their own.
func (f *fleet) pair() (one, two *replica) { return f.add(tools(), nil), f.add(tools(), nil) }

func (f *fleet) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(addr)
	f.mu.Lock()
	r, isCut := f.all[host], f.cuts[host]
	f.mu.Unlock()
	if isCut {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return r.peers.Dial(ctx)
}

// cut makes a replica unreachable for the others, although it is alive, or reachable again.
func (f *fleet) cut(r *replica, isCut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cuts[r.host] = isCut
	_ = r.server.Close()
	if !isCut {
		r.servePeers()
	}
}

// kill ends all connections of a replica, as if its process had died.
func (r *replica) kill() {
	r.fleet.mu.Lock()
	defer r.fleet.mu.Unlock()
	_ = r.server.Close()
	r.close()
}

// close ends all connections of all replicas. Then it waits, in the time of the bubble: net/http
// keeps the goroutine of a connection for half a second if a request was answered unread.
// The lock is not held meanwhile: a bubble's time does not pass for somebody who dials and waits for it.
func (f *fleet) close() {
	f.mu.Lock()
	for _, r := range f.all {
		r.close()
		_ = r.server.Close()
	}
	f.mu.Unlock()
	<-time.After(time.Second)
}
