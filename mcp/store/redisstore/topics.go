// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redisstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/internal/hints"
)

// Publish sends a message; see [store.Topics].
func (s *Store) Publish(ctx context.Context, topic string, message []byte) error {
	if err := s.check(ctx, topic, len(message)); err != nil {
		return err
	}
	channel, text := s.name("t", topic), rueidis.BinaryString(message)
	return s.try(ctx, func(ctx context.Context, _ bool) error {
		if s.client.Mode() == rueidis.ClientModeCluster {
			return s.client.Do(ctx, s.client.B().Spublish().Channel(channel).Message(text).Build()).Error()
		}
		return s.client.Do(ctx, s.client.B().Publish().Channel(channel).Message(text).Build()).Error()
	})
}

// A topic is a channel with subscriptions in this process. It has its own connection.
type topic struct {
	store         *Store
	channel       string
	stop          context.CancelFunc
	subscribed    chan struct{}              // closed on the first subscription to the channel
	subscriptions map[*subscription]struct{} // guarded by Store.mu
}

// A subscription queues messages until Next returns them.
type subscription struct {
	*hints.Queue

	topic *topic
}

// Subscribe receives the messages of a topic; see [store.Topics].
func (s *Store) Subscribe(ctx context.Context, name string) (store.Subscription, error) {
	if err := s.check(ctx, name, 0); err != nil {
		return nil, err
	}
	sub := s.join(s.name("t", name))
	bounded, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	select {
	case <-sub.topic.subscribed:
		return sub, nil
	case <-bounded.Done():
		_ = sub.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("redisstore: no subscription to a topic within %v", s.opts.Timeout)
	}
}

// join adds a subscription to a topic. The first subscription starts the topic.
func (s *Store) join(channel string) *subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[channel]
	if t == nil {
		ctx, cancel := context.WithCancel(context.Background())
		t = &topic{store: s, channel: channel, stop: cancel, subscribed: make(chan struct{}), subscriptions: map[*subscription]struct{}{}}
		s.topics[channel] = t
		go t.run(ctx)
	}
	sub := &subscription{Queue: hints.NewQueue(maxQueue), topic: t}
	t.subscriptions[sub] = struct{}{}
	return sub
}

// Close ends the subscription; see [store.Subscription].
func (s *subscription) Close() error {
	if !s.Queue.Close() {
		return nil
	}
	t := s.topic
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	delete(t.subscriptions, s)
	if len(t.subscriptions) == 0 {
		delete(t.store.topics, t.channel)
		t.stop()
	}
	return nil
}

// run receives the messages of a topic until ctx is done. It resubscribes when the
// connection breaks.
func (t *topic) run(ctx context.Context) {
	for ctx.Err() == nil {
		t.receive(ctx)
		_ = async.Sleep(ctx, retryDelay)
	}
}

// receive receives messages until the connection breaks, the server ends the subscription
// because its cluster node no longer has the channel, or ctx is done.
func (t *topic) receive(ctx context.Context) {
	client, _ := t.store.client.Dedicate()
	defer client.Close() // a connection with subscriptions cannot be reused
	moved := make(chan struct{}, 1)
	broken := client.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage: func(m rueidis.PubSubMessage) {
			t.each(func(q *hints.Queue) { q.Add([]byte(m.Message)) })
		},
		OnSubscription: func(s rueidis.PubSubSubscription) {
			switch {
			case strings.HasSuffix(s.Kind, "unsubscribe"):
				wake(moved)
			case !isClosed(t.subscribed):
				close(t.subscribed)
			default:
				t.each((*hints.Queue).Lose) // messages before the resubscription
			}
		},
	})
	attempt, cancel := context.WithTimeout(ctx, t.store.opts.Timeout)
	defer cancel()
	if err := client.Do(attempt, t.subscribe(client.B())).Error(); err != nil {
		return
	}
	select {
	case <-broken: //nolint:errcheck // whatever the reason
		t.each((*hints.Queue).Lose)
	case <-moved:
		t.each((*hints.Queue).Lose)
	case <-ctx.Done():
	}
}

func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (t *topic) subscribe(b rueidis.Builder) rueidis.Completed {
	if t.store.client.Mode() == rueidis.ClientModeCluster {
		return b.Ssubscribe().Channel(t.channel).Build()
	}
	return b.Subscribe().Channel(t.channel).Build()
}

// each calls do for the queue of each subscription.
func (t *topic) each(do func(*hints.Queue)) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	for s := range t.subscriptions {
		do(s.Queue)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
