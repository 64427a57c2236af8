// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package cluster

import (
	"context"
	"fmt"
	"net/rpc"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp/store"
)

// A Store is a store served by another process. It is safe for concurrent use.
type Store struct{ client *rpc.Client }

var _ store.Store = (*Store)(nil)

// Dial connects to a store served by [Serve].
func Dial(network, address string) (*Store, error) {
	client, err := rpc.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &Store{client}, nil
}

// Close closes the connection.
func (s *Store) Close() error { return s.client.Close() }

// call performs an operation. If ctx is done before the result arrives, the operation may
// or may not have taken effect.
func (s *Store) call(ctx context.Context, method string, op Op) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	res := new(Result)
	call := s.client.Go("Store."+method, op, res, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if call.Error != nil {
		return nil, fmt.Errorf("cluster: %w", call.Error)
	}
	return res, res.err()
}

// Get implements [store.Values].
func (s *Store) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	res, err := s.call(ctx, "Get", Op{Key: key})
	if err != nil {
		return nil, 0, err
	}
	return res.Data, res.Number, nil
}

// Put implements [store.Values].
func (s *Store) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	res, err := s.call(ctx, "Put", Op{Key: key, Data: value, Number: version, TTL: ttl})
	if err != nil {
		return 0, err
	}
	return res.Number, nil
}

// Take implements [store.Values].
func (s *Store) Take(ctx context.Context, key string) ([]byte, error) {
	res, err := s.call(ctx, "Take", Op{Key: key})
	if err != nil {
		return nil, err
	}
	return res.Data, nil
}

// Publish implements [store.Topics].
func (s *Store) Publish(ctx context.Context, topic string, message []byte) error {
	_, err := s.call(ctx, "Publish", Op{Key: topic, Data: message})
	return err
}

// Subscribe implements [store.Topics].
func (s *Store) Subscribe(ctx context.Context, topic string) (store.Subscription, error) {
	res, err := s.call(ctx, "Subscribe", Op{Key: topic})
	if err != nil {
		return nil, err
	}
	return &subscription{store: s, number: res.Number, closed: make(chan struct{})}, nil
}

type subscription struct {
	store   *Store
	number  uint64
	pending *rpc.Call // started by a Next that timed out; owned by the goroutine calling Next

	once   sync.Once
	closed chan struct{}
}

// Next implements [store.Subscription].
func (s *subscription) Next(ctx context.Context) ([]byte, error) {
	select {
	case <-s.closed:
		return nil, store.ErrClosed
	default:
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.pending == nil {
		s.pending = s.store.client.Go("Store.Next", Op{Number: s.number}, new(Result), make(chan *rpc.Call, 1))
	}
	select {
	case call := <-s.pending.Done:
		s.pending = nil
		if call.Error != nil {
			return nil, fmt.Errorf("cluster: %w", call.Error)
		}
		res := call.Reply.(*Result)
		return res.Data, res.err()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.closed:
		return nil, store.ErrClosed
	}
}

// Close implements [store.Subscription].
func (s *subscription) Close() error {
	s.once.Do(func() {
		close(s.closed)
		_, _ = s.store.call(context.Background(), "Unsubscribe", Op{Number: s.number}) // it ends with the connection
	})
	return nil
}
