// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/internal/cutproxy"
	"github.com/go-psi/psi/mcp/store/natsstore"
	"github.com/go-psi/psi/mcp/store/storetest"
)

func wait(d time.Duration) { <-time.After(d) }

func TestCutConnections(t *testing.T) {
	p, err := cutproxy.New(strings.TrimPrefix(single(t).ClientURL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := open(t, connect(t, "nats://"+p.Address()), nil)
	failed := storetest.Disturb(t, s, func() {
		for range 20 {
			wait(100 * time.Millisecond)
			p.Cut()
		}
	})
	if failed > 0.05 { // failed writes whose traces the next write hides; a busy machine completes few other steps
		t.Errorf("%.2f %% of the steps failed, although the server was always there", 100*failed)
	}
}

// Two replicas continue to work while each node of the cluster is killed in turn.
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
			c.servers[i].kill()
			wait(3 * time.Second)
			c.start(i)
			c.settle()
		}
	})
	t.Logf("%.2f %% of the steps failed", 100*failed)
}

// settle waits until all nodes have caught up.
func (c *cluster) settle() {
	js, err := jetstream.New(connect(c.t, c.urls()))
	if err != nil {
		c.t.Error(err)
		return
	}
	for giveUp := time.Now().Add(patience); time.Now().Before(giveUp); wait(50 * time.Millisecond) {
		if isCurrent(c.t.Context(), js, "KV_psi") {
			return
		}
	}
	c.t.Error("the cluster has not recovered")
}

// isCurrent reports whether a stream has a leader, and two replicas that have caught up.
func isCurrent(ctx context.Context, js jetstream.JetStream, stream string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s, err := js.Stream(ctx, stream)
	if err != nil || s.CachedInfo().Cluster == nil || s.CachedInfo().Cluster.Leader == "" {
		return false
	}
	current := 0
	for _, replica := range s.CachedInfo().Cluster.Replicas {
		if replica.Current && !replica.Offline {
			current++
		}
	}
	return current == 2
}

// A server that keeps its streams in memory loses them when it is restarted. The replicas
// need not be restarted.
func TestRestartedServerInMemory(t *testing.T) {
	port := freePorts(t, 1)[0]
	srv := start(t, nodeOptions{StoreDir: t.TempDir(), Port: port})
	s := open(t, connect(t, srv.ClientURL()), &natsstore.Options{InMemory: true})
	version, err := s.Put(t.Context(), "before", []byte("value"), 0, 0)
	wantError(t, "Put", err, nil)
	srv.kill()
	start(t, nodeOptions{StoreDir: t.TempDir(), Port: port})
	_, _, err = s.Get(t.Context(), "before") // a write while the connection is lost may have an uncertain outcome
	wantError(t, "Get", err, store.ErrNotFound)
	for name, step := range steps(t.Context(), s) {
		if err := step(); err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	again, err := s.Put(t.Context(), "before", []byte("value"), 0, 0)
	if err != nil || again <= version {
		t.Errorf("the new version is %d, %v, after %d", again, err, version)
	}
}

func TestServerThatIsDown(t *testing.T) {
	srv := single(t)
	s := open(t, connect(t, srv.ClientURL()), &natsstore.Options{Timeout: time.Second})
	srv.kill()
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
	fastest := time.Hour // of a few: a busy machine may be slow
	for range 5 {
		began := time.Now()
		if _, _, err := s.Get(t.Context(), "key"); err == nil {
			t.Error("Get without a server: no error")
		}
		fastest = min(fastest, time.Since(began))
	}
	if fastest > 500*time.Millisecond {
		t.Errorf("Get after a long time without a server takes %v, want an error at once", fastest)
	}
}
