// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp/store"
)

// known lists the errors that keep their identity between processes.
var known = []error{
	store.ErrNotFound, store.ErrConflict, store.ErrOverflow, store.ErrClosed,
	store.ErrTooLarge, store.ErrFull, store.ErrInvalid,
}

// An Op is a store operation as sent over the wire.
type Op struct {
	Key    string
	Data   []byte
	Number uint64 // version or subscription
	TTL    time.Duration
}

// A Result is the result of an operation. Err is the text of an error, if any, and Known
// its index in known plus one, or 0 for other errors.
type Result struct {
	Data   []byte
	Number uint64
	Err    string
	Known  int
}

func (r *Result) fail(err error) {
	if err == nil {
		return
	}
	r.Err = err.Error()
	for i, e := range known {
		if errors.Is(err, e) {
			r.Known = i + 1
		}
	}
}

func (r *Result) err() error {
	switch {
	case r.Err == "":
		return nil
	case r.Known > 0 && r.Known <= len(known):
		return fmt.Errorf("%w (%s)", known[r.Known-1], r.Err)
	}
	return errors.New(r.Err)
}

// Serve serves s to the processes that connect to l, until l is closed.
func Serve(l net.Listener, s store.Store) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go serve(conn, s)
	}
}

// serve serves one process. Its subscriptions end when the connection closes.
func serve(conn net.Conn, s store.Store) {
	session := &Session{store: s, subscriptions: map[uint64]store.Subscription{}}
	server := rpc.NewServer()
	if err := server.RegisterName("Store", session); err != nil {
		panic(err) // the methods below have invalid signatures
	}
	server.ServeConn(conn)
	session.close()
}

// A Session is the connection of one process. Its exported methods are the operations it
// serves.
type Session struct {
	store store.Store

	mu            sync.Mutex
	last          uint64
	closed        bool
	subscriptions map[uint64]store.Subscription
}

func (s *Session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, sub := range s.subscriptions {
		_ = sub.Close()
	}
}

// Get returns a value.
func (s *Session) Get(op Op, res *Result) (_ error) {
	var err error
	res.Data, res.Number, err = s.store.Get(context.Background(), op.Key)
	res.fail(err)
	return nil
}

// Put stores a value.
func (s *Session) Put(op Op, res *Result) (_ error) {
	var err error
	res.Number, err = s.store.Put(context.Background(), op.Key, op.Data, op.Number, op.TTL)
	res.fail(err)
	return nil
}

// Take returns a value and removes it.
func (s *Session) Take(op Op, res *Result) (_ error) {
	var err error
	res.Data, err = s.store.Take(context.Background(), op.Key)
	res.fail(err)
	return nil
}

// Publish publishes a message.
func (s *Session) Publish(op Op, res *Result) (_ error) {
	res.fail(s.store.Publish(context.Background(), op.Key, op.Data))
	return nil
}

// Subscribe starts a subscription and returns its number.
func (s *Session) Subscribe(op Op, res *Result) (_ error) {
	sub, err := s.store.Subscribe(context.Background(), op.Key)
	if err != nil {
		res.fail(err)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = sub.Close()
	}
	s.last++
	s.subscriptions[s.last], res.Number = sub, s.last
	return nil
}

// Next waits for the next message of a subscription.
func (s *Session) Next(op Op, res *Result) (_ error) {
	s.mu.Lock()
	sub := s.subscriptions[op.Number]
	s.mu.Unlock()
	if sub == nil {
		res.fail(store.ErrClosed)
		return nil
	}
	var err error
	res.Data, err = sub.Next(context.Background())
	res.fail(err)
	return nil
}

// Unsubscribe ends a subscription.
func (s *Session) Unsubscribe(op Op, res *Result) (_ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sub := s.subscriptions[op.Number]; sub != nil {
		delete(s.subscriptions, op.Number)
		res.fail(sub.Close())
	}
	return nil
}
