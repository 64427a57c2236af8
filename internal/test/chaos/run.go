// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
)

// size is the number of replicas, and of NATS nodes.
const size = 3

// A world holds all processes and the load balancer.
type world struct {
	nodes, replicas []*process
	servers         []*http.Server // the balancer and the identity provider
	url             string
}

// run generates the load, kills processes, and returns the report.
func run(ctx context.Context, c config, dir string, log *os.File) (*report, error) {
	w, err := newWorld(ctx, &c, dir, log)
	if err != nil {
		return nil, err
	}
	defer w.close()
	r := newReport(c, w.nodes[0].Engine, log)
	begun := time.Now()
	w.load(ctx, &c, r)
	r.took = time.Since(begun)
	for _, p := range slices.Concat(w.nodes, w.replicas) {
		r.kills[p.Kind] += p.kills
	}
	return r, nil
}

func newWorld(ctx context.Context, c *config, dir string, log *os.File) (*world, error) {
	addrs, err := freeAddrs(ctx, 3*size+2)
	if err != nil {
		return nil, err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	balancer, provider := addrs[3*size], addrs[3*size+1]
	w, kind, engine := &world{url: "http://" + balancer}, "node", addrs[:size]
	if c.store == "redis" {
		kind, engine = "redis", addrs[:1]
	}
	for i := range engine {
		w.nodes = append(w.nodes, &process{log: log, role: role{Kind: kind, Number: i, Engine: engine, Routes: addrs[size : 2*size], Dir: filepath.Join(dir, strconv.Itoa(i))}})
	}
	for i := range size {
		w.replicas = append(w.replicas, &process{log: log, role: role{Kind: "replica", Number: i, Addr: addrs[2*size+i], Store: c.store, Engine: engine, Key: key, URL: w.url, Issuer: "http://" + provider}})
	}
	for _, p := range slices.Concat(w.nodes, w.replicas) {
		if err := p.start(); err != nil {
			w.close()
			return nil, err
		}
	}
	if err := w.await(ctx); err != nil {
		w.close()
		return nil, err
	}
	for addr, h := range map[string]http.Handler{balancer: newBalancer(addrs[2*size : 3*size]), provider: newProvider("http://"+provider, 5)} {
		if err := w.serve(ctx, addr, h); err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

// await waits until all replicas accept connections.
func (w *world) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, p := range w.replicas {
		for {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", p.Addr)
			if err == nil {
				_ = conn.Close()
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("chaos: %v does not start: %w", p, err)
			}
			sleep(ctx, 100*time.Millisecond)
		}
	}
	return nil
}

func (w *world) serve(ctx context.Context, addr string, h http.Handler) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	w.servers = append(w.servers, s)
	go func() { _ = s.Serve(l) }() // until it is closed
	return nil
}

func (w *world) close() {
	for _, s := range w.servers {
		_ = s.Close()
	}
	for _, p := range slices.Concat(w.replicas, w.nodes) {
		p.kill()
	}
}

// load runs the clients and kills processes until the time is over.
func (w *world) load(ctx context.Context, c *config, r *report) {
	ctx, cancel := context.WithTimeout(ctx, c.length)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { w.kill(ctx, w.replicas, c.replica, r) })
	all.Go(func() { w.kill(ctx, w.nodes, c.node, r) })
	all.Go(func() { publish(ctx, w.url, r) })
	versions := append([]string{mcp.LatestVersion}, mcp.LegacyVersions()[:3]...)
	for i := range c.clients + c.guests {
		v := &visitor{
			number: i, version: versions[i%len(versions)], url: w.url, report: r,
			rng: mathrand.New(mathrand.NewPCG(c.seed, uint64(i))), //nolint:gosec // it is load, not a secret
		}
		if i < c.clients {
			all.Go(func() { v.run(ctx) })
		} else {
			all.Go(func() { newGuest(v, &http.Transport{}).run(ctx) })
		}
	}
	all.Wait()
}

// kill kills one of the processes per interval, and restarts it after a third of the
// interval.
func (w *world) kill(ctx context.Context, processes []*process, every time.Duration, r *report) {
	for i := 0; ; i++ {
		p := processes[i%len(processes)]
		sleep(ctx, every-every/3)
		if ctx.Err() != nil {
			return
		}
		p.kill()
		r.diary.notef("killed %v", p)
		sleep(context.WithoutCancel(ctx), every/3) // so that every process is running at the end
		if err := p.start(); err != nil {
			r.wrongf("%v does not start: %v", p, err)
			return
		}
		r.diary.notef("started %v", p)
	}
}
