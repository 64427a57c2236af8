// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

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
