// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/go-psi/psi/mcp/store/natsstore"
	"github.com/go-psi/psi/mcp/store/storetest"
)

// A proxy passes connections on to a server, until they are cut.
type proxy struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func newProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: strings.TrimPrefix(target, "nats://"), conns: map[net.Conn]struct{}{}}
	t.Cleanup(func() { l.Close(); p.cut() })
	go p.serve()
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		backend, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[backend] = struct{}{}, struct{}{}
		p.mu.Unlock()
		go p.copy(client, backend)
		go p.copy(backend, client)
	}
}

func (p *proxy) copy(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range []net.Conn{to, from} {
		c.Close()
		delete(p.conns, c)
	}
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

func wait(d time.Duration) { <-time.After(d) }

func TestCutConnections(t *testing.T) {
	p := newProxy(t, single(t).ClientURL())
	s := open(t, connect(t, p.url()), nil)
	failed := storetest.Disturb(t, s, func() {
		for range 20 {
			wait(100 * time.Millisecond)
			p.cut()
		}
	})
	if failed > 0.01 { // a write of which the next one hides the traces
		t.Errorf("%.2f %% of the steps failed, although the server was always there", 100*failed)
	}
}

// Two replicas at different nodes go on while each node is killed in turn.
func TestKilledNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("elections take seconds")
	}
	c := newCluster(t)
	all := &spread{}
	for range 2 {
		all.replicas = append(all.replicas, open(t, connect(t, c.urls()), &natsstore.Options{Replicas: 3, Timeout: 20 * time.Second}))
	}
	failed := storetest.Disturb(t, all, func() {
		for i := range c.servers {
			wait(time.Second)
			stop(c.servers[i])
			wait(3 * time.Second)
			c.start(i)
			c.settle()
		}
	})
	t.Logf("%.2f %% of the steps failed", 100*failed)
}

// settle waits until all nodes have caught up.
func (c *cluster) settle() {
	for giveUp := time.Now().Add(patience); time.Now().Before(giveUp); wait(50 * time.Millisecond) {
		ready := 0
		for _, s := range c.servers {
			if s.JetStreamIsCurrent() {
				ready++
			}
		}
		if ready == len(c.servers) {
			return
		}
	}
	c.t.Error("the cluster has not recovered")
}

func TestServerThatIsDown(t *testing.T) {
	srv := start(t, &server.Options{StoreDir: t.TempDir()})
	s := open(t, connect(t, srv.ClientURL()), &natsstore.Options{Timeout: time.Second})
	stop(srv)
	for range 2 { // in the second round, the server has been down for longer than Timeout
		for name, step := range steps(t.Context(), s) {
			began := time.Now()
			err := step()
			if took := time.Since(began); err == nil || took > 5*time.Second {
				t.Errorf("%s: error %v after %v", name, err, took)
			} else if !strings.Contains(err.Error(), "natsstore: no") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	began := time.Now()
	if _, _, err := s.Get(t.Context(), "key"); err == nil || time.Since(began) > 500*time.Millisecond {
		t.Errorf("Get after a long time without a server: error %v after %v, want one at once", err, time.Since(began))
	}
}
