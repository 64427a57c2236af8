// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/uritemplate"
	"github.com/go-psi/psi/mcp/store"
)

// A bus carries changes between muxes of the same name in several processes. It is nil if
// there are no other replicas. Except for markServed, it is not on the path of requests
// other than subscriptions.
type bus struct {
	topics    store.Topics
	topic     string
	replica   string // ID of this mux, which ignores its own messages
	hub       *hub
	logger    *slog.Logger
	hasServed atomic.Bool // the mux has served a request, so clients may know its lists

	outbox *async.Set[Change] // changes to publish

	mu        sync.Mutex
	sending   bool // flush is running or scheduled
	listeners int
	reception *busReceiver // nil if there are no listeners
}

// A busReceiver is the state of the goroutine that receives changes for the listeners.
type busReceiver struct {
	cancel context.CancelFunc
	ready  chan struct{} // closed once the topic is subscribed to; replaced when the subscription ends
	missed bool          // listeners may have missed changes
}

func newBus(name string, hub *hub, opts *MuxOptions) *bus {
	if opts.Bus == nil {
		return nil
	}
	topic := "psi/changes/" + name
	if store.CheckKey(topic) != nil {
		sum := sha256.Sum256([]byte(name))
		topic = "psi/changes/" + hex.EncodeToString(sum[:])
	}
	return &bus{topics: opts.Bus, topic: topic, replica: rand.Text(), hub: hub, outbox: newChanges(), logger: opts.Logger}
}

// markServed records that the mux has served a request. Earlier registrations are not
// changes.
func (b *bus) markServed() {
	if b != nil && !b.hasServed.Load() {
		b.hasServed.Store(true)
	}
}

// A busMessage is a message published on the topic.
type busMessage struct {
	From    string   `json:"from"`
	Changes []Change `json:"changes,omitempty"`
	All     bool     `json:"all,omitempty"` // anything may have changed
}

// Limits on publishing: the interval between publications, the longest pause before an attempt
// to publish or to subscribe is repeated, the size of a message in bytes, and how long a failed
// publication is retried.
const (
	busInterval   = 100 * time.Millisecond
	maxBusPause   = 5 * time.Second
	maxBusMessage = 3900 // for the changes, without what surrounds them
	busPatience   = time.Minute
)

// publish sends changes to the other replicas. It does not block.
func (b *bus) publish(changes changeSet) {
	if b == nil || len(changes) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outbox.Add(changes...)
	if !b.sending {
		b.sending = true
		go b.flush()
	}
}

// flush publishes the outbox. If there were any changes, it runs again after busInterval, so
// that changes are batched.
func (b *bus) flush() {
	b.mu.Lock()
	changes, all := b.outbox.Drain()
	b.sending = all || len(changes) > 0
	b.mu.Unlock()
	if !all && len(changes) == 0 {
		return
	}
	for _, m := range b.messages(changes, all) {
		b.send(m)
	}
	time.AfterFunc(busInterval, b.flush)
}

// messages encodes changes in as few messages as possible.
func (b *bus) messages(changes []Change, all bool) (messages [][]byte) {
	everything := [][]byte{mustMarshal(busMessage{From: b.replica, All: true})}
	if all {
		return everything
	}
	m, size := busMessage{From: b.replica}, 0
	for _, c := range changes {
		length := len(mustMarshal(c)) + 1
		if length > maxBusMessage {
			return everything
		}
		if size+length > maxBusMessage {
			messages = append(messages, mustMarshal(m))
			m.Changes, size = nil, 0
		}
		m.Changes, size = append(m.Changes, c), size+length
	}
	return append(messages, mustMarshal(m))
}

// send publishes a message. If that fails, it retries with backoff until busPatience has
// passed.
func (b *bus) send(message []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), busPatience)
	defer cancel()
	for n := 0; ; n++ {
		err := b.topics.Publish(ctx, b.topic, message)
		if err == nil {
			return
		}
		if async.Sleep(ctx, async.Backoff(busInterval, maxBusPause, n)) != nil {
			b.logger.Warn("mcp: other replicas were not notified of changes", "error", err)
			return
		}
	}
}

// maxJoinWait is the maximum time that a new subscription waits for the bus.
const maxJoinWait = time.Second

// join adds a listener and waits until changes of other replicas are being received. If
// that takes longer than maxJoinWait, the listener is later notified that it may have
// missed changes.
func (b *bus) join(ctx context.Context) {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.listeners++
	if b.reception == nil {
		ctx, cancel := context.WithCancel(context.Background())
		b.reception = &busReceiver{cancel: cancel, ready: make(chan struct{})}
		go b.receive(ctx, b.reception)
	}
	r, ready := b.reception, b.reception.ready
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, maxJoinWait)
	defer cancel()
	select {
	case <-ready:
	case <-ctx.Done():
		b.markMissed(r, ready)
	}
}

// markMissed records that a listener stopped waiting before the topic was subscribed to.
func (b *bus) markMissed(r *busReceiver, ready chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !isDone(ready) {
		r.missed = true
	}
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// removeListener removes a listener. Receiving stops when there are no listeners left.
func (b *bus) removeListener() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.listeners--; b.listeners == 0 {
		b.reception.cancel()
		b.reception = nil
	}
}

// receive passes the changes of other replicas to the hub until ctx is done.
func (b *bus) receive(ctx context.Context, r *busReceiver) {
	_ = async.Renew(ctx, busInterval, maxBusPause, func(time.Duration) bool {
		err := b.receiveOnce(ctx, r)
		if err != nil && ctx.Err() == nil {
			b.logger.Warn("mcp: changes at other replicas are not received", "error", err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		r.missed = true
		if isDone(r.ready) {
			r.ready = make(chan struct{})
		}
		return true
	})
}

// receiveOnce subscribes to the topic and receives until the subscription fails or ctx is
// done.
func (b *bus) receiveOnce(ctx context.Context, r *busReceiver) error {
	sub, err := b.topics.Subscribe(ctx, b.topic)
	if err != nil {
		return err
	}
	defer sub.Close()
	b.mu.Lock()
	missed := r.missed
	r.missed = false
	close(r.ready)
	b.mu.Unlock()
	if missed {
		b.hub.publishAll()
	}
	for {
		message, err := sub.Next(ctx)
		var m busMessage
		switch {
		case errors.Is(err, store.ErrOverflow):
			b.hub.publishAll()
		case err != nil:
			return err
		case json.Unmarshal(message, &m) != nil || m.From == b.replica:
		case m.All:
			b.hub.publishAll()
		default:
			b.hub.publishKnown(m.Changes)
		}
	}
}

// publishKnown announces changes received from another process. It ignores unknown ones.
func (h *hub) publishKnown(changes []Change) {
	for _, c := range changes {
		c.URI = uritemplate.Normal(c.URI)
		if c.Method == NotificationResourceUpdated || c.isOfList() {
			h.publish(c)
		}
	}
}

func (c Change) isOfList() bool {
	for _, list := range changeLists {
		if c == list.change {
			return true
		}
	}
	return false
}

// publishAll notifies all listeners of everything they subscribed to.
func (h *hub) publishAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		l.changes.AddAll()
	}
}
