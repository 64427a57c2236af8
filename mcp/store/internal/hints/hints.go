// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package hints

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync"

	"github.com/go-psi/psi/mcp/store"
)

// Messages have a prefix: the ID of a publisher, and a number that increases by one with
// every message to the topic.
const (
	publisherSize = 8
	// PrefixSize is the number of bytes that [Publisher.Send] adds.
	PrefixSize = publisherSize + 8
)

type publisherID [publisherSize]byte

// maxCounts limits the topics whose messages a publisher numbers. Beyond it, the process
// continues as a new publisher.
const maxCounts = 1 << 14

// A Publisher numbers the messages of this process. Its zero value is ready to use.
type Publisher struct {
	mu     sync.Mutex
	id     publisherID
	counts map[string]uint64 // by topic
}

// Send calls send with the message and its prefix. Messages are sent one at a time, in the
// order of their numbers. Send returns the data that it has sent, so that it can be sent
// again: subscribers drop duplicates.
func (p *Publisher) Send(topic string, message []byte, send func(data []byte) error) (sent []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counts == nil || len(p.counts) >= maxCounts {
		_, _ = rand.Read(p.id[:]) // it never fails
		p.counts = map[string]uint64{}
	}
	p.counts[topic]++
	sent = append(make([]byte, 0, PrefixSize+len(message)), p.id[:]...)
	sent = binary.BigEndian.AppendUint64(sent, p.counts[topic])
	sent = append(sent, message...)
	return sent, send(sent)
}

// maxPublishers limits the publishers that a queue tracks.
const maxPublishers = 1 << 12

// A Queue holds the messages of one subscription until Next returns them.
type Queue struct {
	limit int
	ready chan struct{} // has an element if Next should look again

	mu     sync.Mutex
	queue  [][]byte // nil marks a place where messages are missing
	closed bool
	seen   map[publisherID]uint64 // the number of the last message of each publisher
}

// NewQueue returns a queue for up to limit messages.
func NewQueue(limit int) *Queue {
	return &Queue{limit: limit, ready: make(chan struct{}, 1), seen: map[publisherID]uint64{}}
}

// Put adds data that a Publisher has sent. It retains data.
func (q *Queue) Put(data []byte) {
	if len(data) < PrefixSize {
		return // not sent by a Publisher
	}
	id, number := publisherID(data[:publisherSize]), binary.BigEndian.Uint64(data[publisherSize:])
	q.mu.Lock()
	defer q.mu.Unlock()
	switch before := q.seen[id]; {
	case q.closed, before != 0 && number <= before:
		return // sent again
	case before != 0 && number != before+1:
		q.loseLocked()
	}
	if len(q.seen) >= maxPublishers {
		clear(q.seen)
	}
	q.seen[id] = number
	q.addLocked(data[PrefixSize:])
}

// Add adds a message without a prefix. It retains the message, which must not be nil.
func (q *Queue) Add(message []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.addLocked(message)
	}
}

func (q *Queue) addLocked(message []byte) {
	if len(q.queue) >= q.limit {
		q.loseLocked()
		return
	}
	q.queue = append(q.queue, message)
	q.wake()
}

// Lose records that messages may be missing.
func (q *Queue) Lose() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.loseLocked()
}

func (q *Queue) loseLocked() {
	if n := len(q.queue); n == 0 || q.queue[n-1] != nil {
		q.queue = append(q.queue, nil)
	}
	q.wake()
}

func (q *Queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// Next implements [store.Subscription].
func (q *Queue) Next(ctx context.Context) ([]byte, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if message, ok, err := q.dequeue(); ok {
			return message, err
		}
		select {
		case <-q.ready:
		case <-ctx.Done():
		}
	}
}

// dequeue returns the result of Next, if there is one.
func (q *Queue) dequeue() (message []byte, ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return nil, true, store.ErrClosed
	case len(q.queue) == 0:
		q.queue = nil // an idle subscription holds no memory
		return nil, false, nil
	}
	message, q.queue = q.queue[0], q.queue[1:]
	if message == nil {
		return nil, true, store.ErrOverflow
	}
	return message, true, nil
}

// Close unblocks Next. It returns false if the queue was closed already.
func (q *Queue) Close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	wasClosed := q.closed
	q.closed, q.queue = true, nil
	q.wake()
	return !wasClosed
}
