// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package model_test

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/go-psi/psi/mcp"
)

// sub is a subscription and the notifications it received.
type sub struct {
	client *client
	s      *mcp.Subscription
	cancel context.CancelFunc
	keys   []string // subscribed keys

	// Guarded by world.mu.
	since  int            // moment after which it must be notified of every change
	closed bool           // by its client
	over   bool           // closed long enough ago that nothing may arrive
	heard  map[string]int // moment of the last notification, by key
	count  int
}

// subscribe starts a random subscription.
func (c *client) subscribe(conn *mcp.Conn) {
	s := &sub{client: c, heard: map[string]int{}}
	var filter mcp.SubscriptionFilter
	if c.rng.IntN(3) > 0 {
		filter.ToolsListChanged = true
		s.keys = append(s.keys, toolsKey)
	}
	for _, uri := range resources {
		if c.rng.IntN(2) == 0 || len(s.keys) == 0 {
			filter.ResourceSubscriptions = append(filter.ResourceSubscriptions, c.way.uri(uri))
			s.keys = append(s.keys, uri)
		}
	}
	if own := privateTo(c.principal); c.rng.IntN(2) == 0 {
		filter.ResourceSubscriptions = append(filter.ResourceSubscriptions, c.way.uri(own))
		s.keys = append(s.keys, own)
	}
	if c.rng.IntN(2) == 0 { // without effect
		filter.ResourceSubscriptions = append(filter.ResourceSubscriptions, c.way.uri(privateTo(otherThan(c.principal))))
	}
	w := c.w
	w.mu.Lock()
	before := len(c.irritated)
	w.logLockedf("%s subscribes to %v", c.name, s.keys)
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(w.ctx)
	impatient := time.AfterFunc(callTimeout, cancel)
	subscription, err := listen(ctx, conn, filter, s.changed)
	impatient.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	excused := len(c.irritated) > before || c.dead || !w.down.IsZero()
	w.logLockedf("%s subscribed to %v: %v", c.name, s.keys, err)
	if err != nil {
		cancel()
		if !excused {
			w.wrongLockedf("%s could not subscribe to %v: %v", c.name, s.keys, err)
		}
		return
	}
	var accepted []string
	if subscription.Accepted().ToolsListChanged {
		accepted = append(accepted, toolsKey)
	}
	for _, uri := range subscription.Accepted().ResourceSubscriptions {
		accepted = append(accepted, strings.TrimPrefix(uri, mountedURI))
	}
	if len(accepted) != len(s.keys) && !excused {
		w.wrongLockedf("%s subscribed to %v, accepted is %v", c.name, s.keys, accepted)
	}
	w.seq++
	s.keys, s.since, s.s, s.cancel = accepted, w.seq, subscription, cancel
	w.subs = append(w.subs, s)
	c.own = append(c.own, s)
}

// listen subscribes with the simplest method that suffices.
func listen(ctx context.Context, conn *mcp.Conn, f mcp.SubscriptionFilter, fn func(mcp.Change)) (*mcp.Subscription, error) {
	if f.ToolsListChanged || len(f.ResourceSubscriptions) != 1 {
		return conn.Listen(ctx, f, fn)
	}
	return conn.Subscribe(ctx, f.ResourceSubscriptions[0], func(uri string) {
		fn(mcp.Change{Method: mcp.NotificationResourceUpdated, URI: uri})
	})
}

func (s *sub) changed(ch mcp.Change) {
	w := s.client.w
	w.mu.Lock()
	defer w.mu.Unlock()
	key := strings.TrimPrefix(ch.URI, mountedURI)
	if ch.Method == mcp.NotificationToolsListChanged {
		key = toolsKey
	}
	w.seq++
	s.heard[key] = w.seq
	s.count++
	w.logLockedf("%s hears of %s", s.client.name, key)
	if key == privateTo(otherThan(s.client.principal)) {
		w.wrongLockedf("%s heard of %s, which is somebody else's", s.client.name, key)
	}
	if s.over {
		w.wrongLockedf("%s heard of %s after its subscription was over", s.client.name, key)
	}
	if s.s == nil {
		return // it is not known yet which keys were accepted
	}
	if !slices.Contains(s.keys, key) {
		w.wrongLockedf("%s heard of %s, but subscribed to %v", s.client.name, key, s.keys)
	}
}

// unsubscribe ends the oldest subscription.
func (c *client) unsubscribe() {
	c.w.mu.Lock()
	if len(c.own) == 0 {
		c.w.mu.Unlock()
		return
	}
	s := c.own[0]
	c.own = c.own[1:]
	c.w.mu.Unlock()
	c.w.logf("%s ends the subscription to %v", c.name, s.keys)
	s.closing()
	s.s.Close()
	<-time.After(10 * time.Second) // for notifications on other goroutines
	s.mustBeDone("Close")
}

func (s *sub) closing() {
	s.client.w.mu.Lock()
	defer s.client.w.mu.Unlock()
	s.closed = true
}

// mustBeDone checks that the subscription ended cleanly, and marks it as over.
func (s *sub) mustBeDone(why string) {
	defer s.cancel()
	w := s.client.w
	select {
	case <-s.s.Done():
	default:
		w.wrongf("%s: the subscription to %v goes on after %s", s.client.name, s.keys, why)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.over = true
}

// heard checks that every open subscription was notified after the last change of each of
// its keys. Earlier changes need no separate check, because notifications may be merged.
func (w *world) heard(when string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.subs {
		select {
		case <-s.s.Done():
			if !s.closed && !s.client.dead && w.down.IsZero() {
				w.wrongLockedf("%s %s: the subscription to %v ended by itself: %v", when, s.client.name, s.keys, s.s.Err())
			}
			continue
		default:
		}
		if s.closed || s.client.dead {
			continue
		}
		for _, key := range s.keys {
			for _, ch := range w.changes {
				if ch.key == key && ch.begun > s.since && s.heard[key] < ch.begun {
					w.wrongLockedf("%s %s has not heard of %s, which changed at %d: it heard at %d, since %d", when, s.client.name, key, ch.begun, s.heard[key], s.since)
					break
				}
			}
		}
	}
}
