// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/natsstore"
	"github.com/go-psi/psi/mcp/store/storetest"
)

func TestStore(t *testing.T) {
	url := single(t).ClientURL()
	for name, inMemory := range map[string]bool{"files": false, "memory": true} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) store.Store {
				return open(t, connect(t, url), &natsstore.Options{Namespace: name, InMemory: inMemory})
			})
		})
	}
}

// Each operation goes to a different node of a cluster than the one before it.
func TestStoreInCluster(t *testing.T) {
	c := newCluster(t)
	storetest.Run(t, func(t *testing.T) store.Store {
		all := &spread{}
		for _, s := range c.servers {
			all.replicas = append(all.replicas, open(t, connect(t, s.ClientURL()), &natsstore.Options{Replicas: 3}))
		}
		return all
	})
}

// Once Subscribe has returned, messages published at any node of a cluster are received.
func TestSubscribedAtAllNodes(t *testing.T) {
	c := newCluster(t)
	var stores []*natsstore.Store
	for _, s := range c.servers {
		stores = append(stores, open(t, connect(t, s.ClientURL()), &natsstore.Options{Replicas: 3}))
	}
	for i := range 30 {
		topic := fmt.Sprint("topic ", i)
		sub, err := stores[i%3].Subscribe(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range stores {
			if err := s.Publish(t.Context(), topic, []byte("message")); err != nil {
				t.Fatal(err)
			}
		}
		for range stores {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			if _, err := sub.Next(ctx); err != nil {
				t.Errorf("topic %d: %v", i, err)
			}
			cancel()
		}
		_ = sub.Close()
	}
}
