// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package queue

import (
	"bytes"
	"fmt"
	"sync"
)

// A Delivery is a message of a [Broker].
type Delivery struct {
	Reply string // where answers go
	Data  []byte
}

// A Broker delivers messages by subject, in order, each to one of the subscribers of its
// subject. This one is in memory; the zero Broker is ready to use. It is safe for concurrent
// use.
type Broker struct {
	mu       sync.Mutex
	inboxes  int
	subjects map[string][]*subscriber
}

// A subscriber has a queue and a goroutine that empties it.
type subscriber struct {
	queue []Delivery
	wake  *sync.Cond
	gone  bool
}

// Publish delivers a message to the subscriber that has been waiting longest. A message to a
// subject that has none is lost.
func (b *Broker) Publish(subject string, d Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.subjects[subject]
	if len(all) == 0 {
		return
	}
	first := all[0]
	b.subjects[subject] = append(append([]*subscriber(nil), all[1:]...), first)
	first.queue = append(first.queue, Delivery{d.Reply, bytes.Clone(d.Data)})
	first.wake.Signal()
}

// Subscribe calls fn for messages of a subject, one at a time, until stop is called.
func (b *Broker) Subscribe(subject string, fn func(Delivery)) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subjects == nil {
		b.subjects = map[string][]*subscriber{}
	}
	s := &subscriber{wake: sync.NewCond(&b.mu)}
	b.subjects[subject] = append(b.subjects[subject], s)
	go func() { // until stop
		for {
			d, ok := b.next(s)
			if !ok {
				return
			}
			fn(d)
		}
	}()
	return func() { b.remove(subject, s) }
}

func (b *Broker) next(s *subscriber) (Delivery, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(s.queue) == 0 && !s.gone {
		s.wake.Wait()
	}
	if s.gone {
		return Delivery{}, false
	}
	d := s.queue[0]
	s.queue = s.queue[1:]
	return d, true
}

func (b *Broker) remove(subject string, s *subscriber) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.gone = true
	s.wake.Signal()
	var rest []*subscriber
	for _, other := range b.subjects[subject] {
		if other != s {
			rest = append(rest, other)
		}
	}
	if b.subjects[subject] = rest; rest == nil {
		delete(b.subjects, subject)
	}
}

// inbox returns a subject that nobody else uses.
func (b *Broker) inbox() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inboxes++
	return fmt.Sprintf("inbox.%d", b.inboxes)
}
