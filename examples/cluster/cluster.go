// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// size is the number of replicas, and of nodes. A majority of the nodes must be alive.
const size = 3

// A cluster consists of its processes and the balancer, which runs in this process.
type cluster struct {
	nodes, replicas []*member
	client          *member
	url             string
	begun           time.Time

	mu     sync.Mutex
	events []string
}

// newCluster prepares a cluster with the balancer at addr. The nodes store their data in
// dir. The processes write their logs to log, which may be nil.
func newCluster(ctx context.Context, addr, dir string, log *os.File) (*cluster, error) {
	addrs, err := freeAddrs(ctx, 4*size+1)
	if err != nil {
		return nil, err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	c := &cluster{url: "http://" + addr + "/mcp", begun: time.Now()}
	nats, routes := addrs[:size], addrs[size:2*size]
	for i := range size {
		c.nodes = append(c.nodes, &member{log: log, role: role{
			Kind: "node", Number: i, Addr: addrs[2*size+i], NATS: nats, Routes: routes, Dir: filepath.Join(dir, fmt.Sprint("node-", i)),
		}})
		c.replicas = append(c.replicas, &member{log: log, role: role{
			Kind: "replica", Number: i, Addr: addrs[3*size+i], NATS: nats, Key: key,
		}})
	}
	c.client = &member{log: log, role: role{Kind: "client", Addr: addrs[4*size], URL: c.url}}
	return c, nil
}

func (c *cluster) members() []*member {
	return append(append(c.nodes[:size:size], c.replicas...), c.client)
}

// run starts everything, and stops it when ctx is done.
func (c *cluster) run(ctx context.Context, addr string) error {
	var replicas []string
	for _, r := range c.replicas {
		replicas = append(replicas, r.Addr)
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	defer func() {
		c.client.stop()
		for _, m := range append(c.replicas[:size:size], c.nodes...) {
			m.kill() // they must survive this anyway
		}
	}()
	for _, m := range c.members() {
		if err := m.start(); err != nil {
			return err
		}
		watching.Go(func() { m.watch(ctx) })
	}
	srv := &http.Server{Addr: addr, Handler: newBalancer(replicas), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// toggle kills a running member, or starts a killed one again.
func (c *cluster) toggle(m *member) {
	if m.kill() {
		c.notef("%v was killed", m)
		return
	}
	if err := m.start(); err != nil {
		c.notef("%v does not start: %v", m, err)
		return
	}
	c.notef("%v starts again", m)
}

// chaos kills a member at every interval and starts it again after half the interval, until
// ctx is done. The members take turns, with two replicas for each node.
func (c *cluster) chaos(ctx context.Context, every time.Duration) {
	for i := 0; ; i++ {
		m := c.replicas[(i-i/size)%size]
		if i%size == size-1 {
			m = c.nodes[i/size%size]
		}
		sleep(ctx, every-every/2)
		if ctx.Err() != nil {
			return
		}
		c.toggle(m)
		sleep(ctx, every/2)
		if ctx.Err() != nil {
			return
		}
		c.toggle(m)
	}
}

// maxEvents is the number of events shown.
const maxEvents = 8

func (c *cluster) notef(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, time.Now().Format("15:04:05 ")+fmt.Sprintf(format, args...))
	c.events = c.events[max(0, len(c.events)-maxEvents):]
}
