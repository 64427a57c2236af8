// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/go-psi/psi/mcp/store"
)

// Messages of topics have a prefix: the ID of a publisher and a number that it raises with
// every message to the topic. Subscribers see from it that the network lost messages.
const (
	publisherSize = 8
	prefixSize    = publisherSize + 8
)

type publisherID [publisherSize]byte

// outgoing numbers the messages that this process publishes. Its lock is held until a
// message is in the buffer of the connection, so that numbers go out in order.
type outgoing struct {
	mu     sync.Mutex
	id     publisherID
	counts map[string]uint64 // by subject
}

// maxCounts bounds the topics whose messages are numbered. Beyond it, the process continues
// as another publisher.
const maxCounts = 1 << 14

// send sends a message, with the next number, and returns what it has sent.
func (o *outgoing) send(nc *nats.Conn, subject string, message []byte) (data []byte, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.counts == nil || len(o.counts) >= maxCounts {
		_, _ = rand.Read(o.id[:]) // it never fails
		o.counts = map[string]uint64{}
	}
	o.counts[subject]++
	data = append(make([]byte, 0, prefixSize+len(message)), o.id[:]...)
	data = binary.BigEndian.AppendUint64(data, o.counts[subject])
	data = append(data, message...)
	return data, nc.Publish(subject, data)
}

func (s *Store) topicSubject(topic string) string {
	return s.opts.Namespace + ".topics." + token(topic)
}

// Publish sends a message and waits until a server has it; see [store.Topics].
func (s *Store) Publish(ctx context.Context, topic string, message []byte) error {
	if err := check(ctx, topic); err != nil {
		return err
	}
	if most := s.nc.MaxPayload(); most > 0 && int64(len(message)+prefixSize) > most {
		return fmt.Errorf("%w: message of %d bytes, the server allows %d", store.ErrTooLarge, len(message), most-prefixSize)
	}
	subject := s.topicSubject(topic)
	var sent []byte
	return s.try(ctx, func(ctx context.Context) (err error) {
		if sent == nil {
			sent, err = s.outgoing.send(s.nc, subject, message)
		} else { // it may have been lost; subscribers know it by its number
			err = s.nc.Publish(subject, sent)
		}
		if err != nil {
			return fmt.Errorf("natsstore: publish: %w", err)
		}
		return s.flush(ctx)
	})
}

// flush waits until a server has read what was sent.
func (s *Store) flush(ctx context.Context) error {
	err := s.nc.FlushWithContext(ctx)
	if errors.Is(err, nats.ErrConnectionClosed) && !s.nc.IsClosed() {
		return nats.ErrDisconnected
	}
	return err
}

// Subscribe receives the messages of a topic; see [store.Topics].
func (s *Store) Subscribe(ctx context.Context, topic string) (store.Subscription, error) {
	if err := check(ctx, topic); err != nil {
		return nil, err
	}
	sub := &subscription{store: s, limit: s.opts.MaxQueue, ready: make(chan struct{}, 1), seen: map[publisherID]uint64{}}
	incoming, err := s.nc.Subscribe(s.topicSubject(topic), sub.receive)
	if err != nil {
		return nil, fmt.Errorf("natsstore: subscribe: %w", err)
	}
	sub.incoming = incoming
	s.mu.Lock()
	s.listening[sub] = struct{}{}
	s.mu.Unlock()
	if err := s.try(ctx, s.flush); err != nil {
		_ = sub.Close()
		return nil, err
	}
	return sub, nil
}

// A subscription queues messages until Next takes them.
type subscription struct {
	store    *Store
	incoming *nats.Subscription
	limit    int
	ready    chan struct{} // has an element when Next should look again

	mu     sync.Mutex
	queue  [][]byte // nil stands for a place where messages are missing
	closed bool
	seen   map[publisherID]uint64 // the number of the last message of each publisher
}

// maxPublishers bounds the publishers that a subscription follows.
const maxPublishers = 1 << 12

// receive queues a message. The connection calls it for one message at a time.
func (s *subscription) receive(m *nats.Msg) {
	if len(m.Data) < prefixSize {
		return // not published by a Store
	}
	id, number := publisherID(m.Data[:publisherSize]), binary.BigEndian.Uint64(m.Data[publisherSize:])
	s.mu.Lock()
	defer s.mu.Unlock()
	switch before := s.seen[id]; {
	case before != 0 && number <= before:
		return // sent again
	case before != 0 && number != before+1:
		s.loseLocked()
	}
	if len(s.seen) >= maxPublishers {
		clear(s.seen)
	}
	s.seen[id] = number
	if len(s.queue) >= s.limit {
		s.loseLocked()
		return
	}
	s.queue = append(s.queue, m.Data[prefixSize:])
	s.wake()
}

// lose notes that messages may be missing, because the connection was broken.
func (s *subscription) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loseLocked()
}

func (s *subscription) loseLocked() {
	if n := len(s.queue); n == 0 || s.queue[n-1] != nil {
		s.queue = append(s.queue, nil)
	}
	s.wake()
}

func (s *subscription) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Next waits for a message; see [store.Subscription].
func (s *subscription) Next(ctx context.Context) ([]byte, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if message, ok, err := s.dequeue(); ok {
			return message, err
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
		}
	}
}

// dequeue returns what Next has to return, if there is anything.
func (s *subscription) dequeue() (message []byte, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, true, store.ErrClosed
	case len(s.queue) == 0:
		s.queue = nil
		return nil, false, nil
	}
	message, s.queue = s.queue[0], s.queue[1:]
	if message == nil {
		return nil, true, store.ErrOverflow
	}
	return message, true, nil
}

// Close ends the subscription; see [store.Subscription].
func (s *subscription) Close() error {
	s.store.mu.Lock()
	delete(s.store.listening, s)
	s.store.mu.Unlock()
	s.mu.Lock()
	wasClosed := s.closed
	s.closed, s.queue = true, nil
	s.mu.Unlock()
	s.wake()
	if wasClosed {
		return nil
	}
	if err := s.incoming.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		return fmt.Errorf("natsstore: unsubscribe: %w", err)
	}
	return nil
}
