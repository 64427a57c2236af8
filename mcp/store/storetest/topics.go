// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package storetest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp/store"
)

var topicsTests = []test{
	{"TopicsDeliver", testDeliver},
	{"TopicsOwnership", testMessageOwnership},
	{"TopicsNames", testTopicNames},
	{"TopicsLarge", testLargeMessage},
	{"TopicsSlowSubscriber", testSlowSubscriber},
	{"TopicsContextOfSubscribe", testContextOfSubscribe},
	{"TopicsCancel", testCancel},
	{"TopicsClose", testClose},
	{"TopicsCloseOne", testCloseOne},
}

func subscribe(t *testing.T, s store.Store, topic string) store.Subscription {
	t.Helper()
	subscription, err := s.Subscribe(t.Context(), topic)
	want(t, "Subscribe", err, nil)
	t.Cleanup(func() { _ = subscription.Close() })
	return subscription
}

func publish(t *testing.T, s store.Store, topic, message string) {
	t.Helper()
	want(t, "Publish", s.Publish(t.Context(), topic, []byte(message)), nil)
}

func receive(t *testing.T, subscription store.Subscription, expected ...string) {
	t.Helper()
	var got []string
	for range expected {
		message, err := subscription.Next(soon(t))
		want(t, "Next", err, nil)
		got = append(got, string(message))
	}
	if !slices.Equal(got, expected) {
		t.Fatalf("received %q, want %q", got, expected)
	}
}

func testDeliver(t *testing.T, s store.Store) {
	topic, other := newKey(), newKey()
	publish(t, s, topic, "to nobody")
	one, two, third := subscribe(t, s, topic), subscribe(t, s, topic), subscribe(t, s, other)
	for _, message := range []string{"a", "", "c"} {
		publish(t, s, topic, message)
	}
	publish(t, s, other, "other")
	receive(t, one, "a", "", "c")
	receive(t, two, "a", "", "c")
	receive(t, third, "other")
}

func testMessageOwnership(t *testing.T, s store.Store) {
	topic, message := newKey(), []byte("message")
	one, two := subscribe(t, s, topic), subscribe(t, s, topic)
	want(t, "Publish", s.Publish(t.Context(), topic, message), nil)
	message[0] = 'X'
	got, err := one.Next(soon(t))
	want(t, "Next", err, nil)
	if string(got) != "message" {
		t.Fatalf("received %q", got)
	}
	got[0] = 'X'
	receive(t, two, "message")
}

func testTopicNames(t *testing.T, s store.Store) {
	names := oddKeys()
	var subscriptions []store.Subscription
	for _, name := range names {
		subscriptions = append(subscriptions, subscribe(t, s, name))
	}
	for i, name := range names {
		publish(t, s, name, strconv.Itoa(i))
		publish(t, s, name, "end")
	}
	for i, subscription := range subscriptions {
		receive(t, subscription, strconv.Itoa(i), "end")
	}
}

func testLargeMessage(t *testing.T, s store.Store) {
	topic, message := newKey(), strings.Repeat("m", 4<<10)
	subscription := subscribe(t, s, topic)
	publish(t, s, topic, message)
	receive(t, subscription, message)
}

// testContextOfSubscribe cancels the context of Subscribe, which applies only to the call.
func testContextOfSubscribe(t *testing.T, s store.Store) {
	topic := newKey()
	ctx, cancel := context.WithCancel(t.Context())
	subscription, err := s.Subscribe(ctx, topic)
	want(t, "Subscribe", err, nil)
	defer subscription.Close()
	cancel()
	<-time.After(ttl) // the subscription would take a moment to end
	publish(t, s, topic, "message")
	receive(t, subscription, "message")
}

// testSlowSubscriber floods a subscription twice.
func testSlowSubscriber(t *testing.T, s store.Store) {
	topic := newKey()
	slow := subscribe(t, s, topic)
	for range 2 {
		testFlood(t, s, topic, slow)
	}
}

// testFlood publishes more messages than most queues hold. Messages may be missing only
// where that is reported, and messages published after the report must arrive.
func testFlood(t *testing.T, s store.Store, topic string, slow store.Subscription) {
	t.Helper()
	const flood, end = 10_000, "end"
	for i := range flood {
		publish(t, s, topic, strconv.Itoa(i))
	}
	for i := range flood {
		message, err := slow.Next(soon(t))
		if errors.Is(err, store.ErrOverflow) {
			break
		}
		want(t, "Next", err, nil)
		if string(message) != strconv.Itoa(i) {
			t.Fatalf("message %s came where %d was due, without ErrOverflow", message, i)
		}
	}
	publish(t, s, topic, end)
	for message := ""; message != end; {
		next, err := slow.Next(soon(t))
		if !errors.Is(err, store.ErrOverflow) {
			want(t, "Next", err, nil)
		}
		message = string(next)
	}
}

func testCancel(t *testing.T, s store.Store) {
	topic := newKey()
	subscription := subscribe(t, s, topic)
	ctx, cancel := context.WithTimeout(t.Context(), ttl)
	defer cancel()
	_, err := subscription.Next(ctx)
	want(t, "Next", err, context.DeadlineExceeded)
	publish(t, s, topic, "later")
	receive(t, subscription, "later")
	publish(t, s, topic, "a")
	publish(t, s, topic, "b")
	receive(t, subscription, "a") // b is queued, or will be soon
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // often enough to hit both cases of a select
		_, err := subscription.Next(done)
		want(t, "Next with a done context", err, context.Canceled)
	}
	receive(t, subscription, "b")
}

func testClose(t *testing.T, s store.Store) {
	topic := newKey()
	subscription := subscribe(t, s, topic)
	ended := make(chan error)
	go func() {
		_, err := subscription.Next(soon(t))
		ended <- err
	}()
	want(t, "Close", subscription.Close(), nil)
	want(t, "Next that was waiting", <-ended, store.ErrClosed)
	want(t, "second Close", subscription.Close(), nil)
	publish(t, s, topic, "to nobody")
	_, err := subscription.Next(soon(t))
	want(t, "Next after Close", err, store.ErrClosed)
}

// testCloseOne closes one of two subscriptions of a topic while messages are queued in both.
func testCloseOne(t *testing.T, s store.Store) {
	topic := newKey()
	closed, open := subscribe(t, s, topic), subscribe(t, s, topic)
	for _, message := range []string{"a", "b"} {
		publish(t, s, topic, message)
	}
	receive(t, closed, "a") // b is queued, or will be soon
	want(t, "Close", closed.Close(), nil)
	_, err := closed.Next(soon(t))
	want(t, "Next after Close", err, store.ErrClosed)
	later := subscribe(t, s, topic)
	publish(t, s, topic, "c")
	receive(t, open, "a", "b", "c")
	for message := ""; message != "c"; { // b may have been on its way
		next, err := later.Next(soon(t))
		want(t, "Next", err, nil)
		message = string(next)
	}
}
