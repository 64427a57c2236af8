// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/natsstore"
)

// patience is the maximum wait for something that should happen soon.
const patience = 30 * time.Second

// freePorts returns ports that were free a moment ago.
func freePorts(t testing.TB, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// A cluster consists of three servers that can be killed and restarted.
type cluster struct {
	t       testing.TB
	servers [3]*node
	options [3]nodeOptions
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	c, ports := &cluster{t: t}, freePorts(t, 6)
	var routes []string
	for _, port := range ports[:3] {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", port))
	}
	ready := make(chan struct{})
	for i := range c.servers {
		c.options[i] = nodeOptions{Name: fmt.Sprintf("node-%d", i), StoreDir: t.TempDir(), Port: ports[3+i], ClusterPort: ports[i], Routes: routes}
		go func() { c.start(i); ready <- struct{}{} }()
	}
	for range c.servers {
		<-ready
	}
	return c
}

func (c *cluster) start(i int) {
	c.servers[i] = start(c.t, c.options[i])
}

func (c *cluster) urls() string {
	var urls []string
	for i := range c.options {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", c.options[i].Port))
	}
	return strings.Join(urls, ",")
}

func connect(t testing.TB, urls string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(urls, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.RetryOnFailedConnect(true), nats.DontRandomize(),
		nats.ReconnectJitter(time.Millisecond, time.Millisecond), nats.PingInterval(time.Second), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func open(t testing.TB, nc *nats.Conn, opts *natsstore.Options) *natsstore.Store {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var s *natsstore.Store
	for {
		var err error
		if s, err = natsstore.Open(ctx, nc, opts); err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		<-time.After(100 * time.Millisecond) // a cluster has no leader at first
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// spread is a store that distributes operations over several replicas in turn.
type spread struct {
	replicas []store.Store
	turn     atomic.Uint64
}

func (s *spread) next() store.Store { return s.replicas[s.turn.Add(1)%uint64(len(s.replicas))] }

func (s *spread) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	return s.next().Get(ctx, key)
}

func (s *spread) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	return s.next().Put(ctx, key, value, version, ttl)
}

func (s *spread) Take(ctx context.Context, key string) ([]byte, error) {
	return s.next().Take(ctx, key)
}

// Publish always uses the same replica, because messages are ordered only per publisher.
func (s *spread) Publish(ctx context.Context, topic string, message []byte) error {
	return s.replicas[0].Publish(ctx, topic, message)
}

func (s *spread) Subscribe(ctx context.Context, topic string) (store.Subscription, error) {
	return s.replicas[len(s.replicas)-1].Subscribe(ctx, topic)
}

// steps returns all operations of a store.
func steps(ctx context.Context, s store.Store) map[string]func() error {
	return map[string]func() error{
		"Get":     func() error { _, _, err := s.Get(ctx, "key"); return err },
		"Put":     func() error { _, err := s.Put(ctx, "key", nil, 0, 0); return err },
		"Take":    func() error { _, err := s.Take(ctx, "key"); return err },
		"Publish": func() error { return s.Publish(ctx, "topic", nil) },
		"Subscribe": func() error {
			sub, err := s.Subscribe(ctx, "topic")
			if err == nil {
				err = sub.Close()
			}
			return err
		},
	}
}
