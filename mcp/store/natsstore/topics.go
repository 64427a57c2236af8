// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/internal/hints"
)

func (s *Store) topicSubject(topic string) string {
	return s.opts.Namespace + ".topics." + token(topic)
}

// Publish sends a message and waits until a server has received it; see [store.Topics].
func (s *Store) Publish(ctx context.Context, topic string, message []byte) error {
	if err := s.check(ctx, topic); err != nil {
		return err
	}
	if most := s.nc.MaxPayload(); most > 0 && int64(len(message)+hints.PrefixSize) > most {
		return fmt.Errorf("%w: message of %d bytes, the server allows %d", store.ErrTooLarge, len(message), most-hints.PrefixSize)
	}
	subject := s.topicSubject(topic)
	send := func(data []byte) error { return s.nc.Publish(subject, data) }
	var sent []byte
	return s.try(ctx, func(ctx context.Context) (err error) {
		if sent == nil {
			sent, err = s.publisher.Send(subject, message, send)
		} else { // it may have been lost
			err = send(sent)
		}
		if err != nil {
			return fmt.Errorf("natsstore: publish: %w", err)
		}
		return s.flush(ctx)
	})
}

// flush waits until a server has read everything that was sent.
func (s *Store) flush(ctx context.Context) error {
	err := s.nc.FlushWithContext(ctx)
	if errors.Is(err, nats.ErrConnectionClosed) && !s.nc.IsClosed() {
		return nats.ErrDisconnected
	}
	return err
}

// Subscribe receives the messages of a topic; see [store.Topics]. In a cluster it waits
// until the other servers know of it.
func (s *Store) Subscribe(ctx context.Context, topic string) (store.Subscription, error) {
	if err := s.check(ctx, topic); err != nil {
		return nil, err
	}
	sub := &subscription{Queue: hints.NewQueue(maxQueue), store: s}
	incoming, err := s.nc.Subscribe(s.topicSubject(topic), func(m *nats.Msg) { sub.Put(m.Data) })
	if err != nil {
		return nil, fmt.Errorf("natsstore: subscribe: %w", err)
	}
	sub.incoming = incoming
	s.mu.Lock()
	s.listening[sub] = struct{}{}
	s.mu.Unlock()
	err = s.try(ctx, s.flush)
	if err == nil {
		err = s.waitForPeers(ctx)
	}
	if err != nil {
		_ = sub.Close()
		return nil, err
	}
	return sub, nil
}

// A subscription queues messages until Next returns them.
type subscription struct {
	*hints.Queue

	store    *Store
	incoming *nats.Subscription
}

// Close ends the subscription; see [store.Subscription].
func (s *subscription) Close() error {
	if !s.Queue.Close() {
		return nil
	}
	s.store.mu.Lock()
	delete(s.store.listening, s)
	s.store.mu.Unlock()
	if err := s.incoming.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		return fmt.Errorf("natsstore: unsubscribe: %w", err)
	}
	return nil
}
