// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package store

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
)

// Limits of topics. A message says that something has changed, and which; a subscriber that
// falls behind learns from one overflow as much as from many messages.
const (
	maxSubscriptions = 1 << 16 // to all topics
	maxMessage       = 64 << 10
	maxQueue         = 64 // messages of one subscription, shared with others
)

// topics holds the subscriptions of a Memory by topic.
type topics struct {
	mu    sync.RWMutex
	count int
	named map[string]map[*memorySubscription]struct{}
}

// memorySubscription is a queue. If the queue has no room for a message, the publisher
// records the loss instead.
type memorySubscription struct {
	topics *topics
	topic  string
	ready  chan struct{} // has an element if Next should look again

	mu     sync.Mutex
	queue  [][]byte // shared with other subscriptions: must not be modified
	lost   bool     // messages are missing at the end of the queue
	closed bool
}

// Publish adds a message to the queues of a topic; see [Topics].
func (m *Memory) Publish(ctx context.Context, topic string, message []byte) error {
	m.mustBeMade()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := CheckKey(topic); err != nil {
		return err
	}
	if len(message) > maxMessage {
		return fmt.Errorf("%w: message of %d bytes, at most %d are allowed", ErrTooLarge, len(message), maxMessage)
	}
	message = bytes.Clone(message)
	m.topics.mu.RLock()
	defer m.topics.mu.RUnlock()
	for s := range m.topics.named[topic] {
		s.put(message)
	}
	return nil
}

// Subscribe creates a queue for a topic; see [Topics]. It fails with [ErrFull] if there are
// too many subscriptions.
func (m *Memory) Subscribe(ctx context.Context, topic string) (Subscription, error) {
	m.mustBeMade()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := CheckKey(topic); err != nil {
		return nil, err
	}
	t := &m.topics
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count >= maxSubscriptions {
		return nil, fmt.Errorf("%w: %d subscriptions", ErrFull, t.count)
	}
	s := &memorySubscription{topics: t, topic: strings.Clone(topic), ready: make(chan struct{}, 1)}
	if t.named == nil {
		t.named = map[string]map[*memorySubscription]struct{}{}
	}
	if t.named[s.topic] == nil {
		t.named[s.topic] = map[*memorySubscription]struct{}{}
	}
	t.named[s.topic][s] = struct{}{}
	t.count++
	return s, nil
}

// put queues a message or records its loss. After a loss, all further messages are lost too
// until Next has reported it, so that the report comes at the right place.
func (s *memorySubscription) put(message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost || len(s.queue) >= maxQueue {
		s.lost = true
	} else {
		s.queue = append(s.queue, message)
	}
	s.wake()
}

func (s *memorySubscription) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Next waits for a message; see [Subscription].
func (s *memorySubscription) Next(ctx context.Context) ([]byte, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if message, ok, err := s.take(); ok {
			return message, err
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
		}
	}
}

// take returns the result of Next, if there is one.
func (s *memorySubscription) take() (message []byte, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, true, ErrClosed
	case len(s.queue) > 0:
		message = bytes.Clone(s.queue[0])
		s.queue[0] = nil
		if s.queue = s.queue[1:]; len(s.queue) == 0 {
			s.queue = nil // an idle subscription holds no memory
		}
		return message, true, nil
	case s.lost:
		s.lost = false
		return nil, true, ErrOverflow
	}
	return nil, false, nil
}

// Close removes the queue; see [Subscription].
func (s *memorySubscription) Close() error {
	s.topics.remove(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.queue = true, nil
	s.wake()
	return nil
}

func (t *topics) remove(s *memorySubscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	subscriptions := t.named[s.topic]
	if _, open := subscriptions[s]; !open {
		return
	}
	delete(subscriptions, s)
	t.count--
	if len(subscriptions) == 0 {
		delete(t.named, s.topic)
	}
}
