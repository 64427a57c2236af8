// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"context"
	"time"

	"github.com/go-psi/psi/mcp/store"
)

// bound limits the time of each operation of a store. An in-memory store does not need it.
func bound(s store.Store, timeout time.Duration) store.Store {
	if _, ok := s.(*store.Memory); ok {
		return s
	}
	return &boundedStore{s, timeout}
}

// A boundedStore limits the time of each operation, so that an unresponsive store blocks
// neither the renewal of leases nor a request.
type boundedStore struct {
	store.Store

	timeout time.Duration
}

func (s *boundedStore) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.Store.Get(ctx, key)
}

func (s *boundedStore) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.Store.Put(ctx, key, value, version, ttl)
}

func (s *boundedStore) Take(ctx context.Context, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.Store.Take(ctx, key)
}

func (s *boundedStore) Publish(ctx context.Context, topic string, message []byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.Store.Publish(ctx, topic, message)
}

func (s *boundedStore) Subscribe(ctx context.Context, topic string) (store.Subscription, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.Store.Subscribe(ctx, topic)
}
