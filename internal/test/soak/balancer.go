// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
)

// clientHeader names the client of a request, so that the balancer knows which client its
// faults affect.
const clientHeader = "Soak-Client"

// balancer distributes requests to the replicas. Requests of the modern era go to the
// replicas in turn. Requests of a session go to the same replica as long as any of them is
// in flight, and the session moves from time to time. Some connections are cut. Requests
// without a client header stay at one replica and are not cut.
type balancer struct {
	http  *http.Server
	proxy *httputil.ReverseProxy
	pool  *http.Transport
	begun time.Time
	seed  maphash.Seed
	every time.Duration // interval between moves of a session
	ended chan struct{}

	mu       sync.Mutex
	rng      *rand.Rand
	backends []*backend
	turn     int
	pins     map[string]*pin      // of requests in flight, by session
	hurt     map[string]time.Time // last time a request of the client was cut off
	last     map[string]int       // number of each session's last replica
	moves    int
	cuts     int
}

// backend is a replica as the balancer sees it.
type backend struct {
	*replica

	draining, gone bool
	flights        map[*flight]struct{}
}

// flight is a request in flight.
type flight struct {
	client, key string
	to          *backend
	cancel      context.CancelFunc
	cut         bool
}

// pin keeps a session at a replica while requests of it are in flight.
type pin struct {
	to      *backend
	flights int
}

func newBalancer(c config, l net.Listener) *balancer {
	b := &balancer{
		pool: &http.Transport{MaxIdleConnsPerHost: 256, IdleConnTimeout: 10 * time.Second}, begun: time.Now(), seed: maphash.MakeSeed(),
		every: max(min(c.length/10, 5*time.Second), 50*time.Millisecond), ended: make(chan struct{}),
		rng:  rand.New(rand.NewPCG(c.seed, 0)), //nolint:gosec // it is load, not a secret
		pins: map[string]*pin{}, hurt: map[string]time.Time{}, last: map[string]int{},
	}
	b.proxy = &httputil.ReverseProxy{
		Transport: b.pool, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0),
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(flightOf(r.In.Context()).to.url) },
		ModifyResponse: b.watch, ErrorHandler: b.unreachable,
	}
	b.http = listenOn(b)
	go func() {
		defer close(b.ended)
		_ = b.http.Serve(l) // until it is closed
	}()
	return b
}

func (b *balancer) close() {
	_ = b.http.Close()
	b.pool.CloseIdleConnections()
	<-b.ended
}

type flightKey struct{}

func flightOf(ctx context.Context) *flight { return ctx.Value(flightKey{}).(*flight) }

// ServeHTTP implements http.Handler.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	f := &flight{client: r.Header.Get(clientHeader), cancel: cancel}
	b.begin(f, r)
	defer b.end(f)
	defer b.cutLater(f, r).Stop()
	b.proxy.ServeHTTP(w, r.WithContext(context.WithValue(ctx, flightKey{}, f)))
	if b.wasCut(f) {
		panic(http.ErrAbortHandler)
	}
}

// begin chooses the replica for a request.
func (b *balancer) begin(f *flight, r *http.Request) {
	id := r.Header.Get("Mcp-Session-Id")
	single := r.URL.Path == "/sse" // its session cannot move
	if single {
		id = f.client
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pins[id]
	switch {
	case f.client == "":
		f.to = b.placeLocked("", 0)
	case id == "":
		f.to = b.nextLocked()
	case p != nil && !p.to.gone:
		f.to = p.to
	case single:
		f.to = b.placeLocked(id, 0)
	default:
		f.to = b.placeLocked(id, b.epoch(id))
	}
	f.to.flights[f] = struct{}{}
	if id == "" || r.Method == http.MethodGet && !single {
		return // a session's own stream does not pin the session
	}
	f.key = id
	if p == nil || p.to != f.to {
		p = &pin{to: f.to}
		b.pins[id] = p
	}
	p.flights++
	b.noteMoveLocked(id, f.to.number)
}

// nextLocked returns the next replica in turn.
func (b *balancer) nextLocked() *backend {
	for {
		b.turn++
		if to := b.backends[b.turn%len(b.backends)]; !to.draining {
			return to
		}
	}
}

// epoch returns the number of moves of a session so far.
func (b *balancer) epoch(id string) int64 {
	offset := maphash.String(b.seed, id) % uint64(b.every)
	return (int64(time.Since(b.begun)) + int64(offset)) / int64(b.every)
}

// placeLocked chooses the replica of a session by rendezvous hashing, so that other
// sessions stay where they are when a replica is added or removed.
func (b *balancer) placeLocked(id string, epoch int64) *backend {
	var best *backend
	var most uint64
	for _, to := range b.backends {
		weight := maphash.Comparable(b.seed, struct {
			id    string
			epoch int64
			to    int
		}{id, epoch, to.number})
		if !to.draining && (best == nil || weight > most) {
			best, most = to, weight
		}
	}
	return best
}

// maxLast limits the entries that are only kept for counting.
const maxLast = 20_000

func (b *balancer) noteMoveLocked(id string, to int) {
	if len(b.last) > maxLast {
		clear(b.last)
	}
	if before := b.last[id]; before != 0 && before != to {
		b.moves++
	}
	b.last[id] = to
}

func (b *balancer) end(f *flight) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(f.to.flights, f)
	p := b.pins[f.key]
	if p == nil || p.to != f.to {
		return
	}
	if p.flights--; p.flights == 0 {
		delete(b.pins, f.key)
	}
}

// One in requestsPerCut requests and one in streamsPerCut streams is cut, within cutRequest
// or cutStream.
const (
	requestsPerCut = 200
	streamsPerCut  = 5
	cutRequest     = 200 * time.Millisecond
	cutStream      = 10 * time.Second
)

// cutLater cuts the connection of some requests after a while.
func (b *balancer) cutLater(f *flight, r *http.Request) *time.Timer {
	b.mu.Lock()
	defer b.mu.Unlock()
	one, after := requestsPerCut, cutRequest
	if r.Method == http.MethodGet || r.Header.Get("Mcp-Method") == mcp.MethodListen {
		one, after = streamsPerCut, cutStream
	}
	if f.client == "" || b.rng.IntN(one) > 0 {
		return time.NewTimer(0)
	}
	return time.AfterFunc(upTo(b.rng, after), func() { b.cut(f) })
}

func (b *balancer) cut(f *flight) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, flying := f.to.flights[f]; flying {
		b.cuts++
		f.cut = true
		b.hurt[f.client] = time.Now()
		f.cancel()
	}
}

func (b *balancer) wasCut(f *flight) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return f.cut
}

// hurtSince reports whether a request of the client was cut off after a time, or was at a
// replica that was removed.
func (b *balancer) hurtSince(client string, at time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hurt[client].After(at)
}

func (b *balancer) counts() (moves, cuts int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.moves, b.cuts
}

func (b *balancer) add(p *replica) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = append(b.backends, &backend{replica: p, flights: map[*flight]struct{}{}})
}

// drain stops sending requests to a replica, except those of sessions pinned to it.
func (b *balancer) drain(p *replica) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.of(p).draining = true
}

// remove sends no further requests to a replica. Its requests in flight, and those of sessions,
// may fail from now on.
func (b *balancer) remove(p *replica) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.of(p)
	old.gone = true
	for _, at := range b.backends {
		for f := range at.flights {
			if at == old || f.key != "" { // a request of a session may have been passed on to the replica
				b.hurt[f.client] = time.Now()
			}
		}
	}
	b.backends = slices.DeleteFunc(b.backends, func(to *backend) bool { return to == old })
}

func (b *balancer) of(p *replica) *backend {
	return b.backends[slices.IndexFunc(b.backends, func(to *backend) bool { return to.replica == p })]
}
