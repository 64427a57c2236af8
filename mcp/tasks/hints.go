// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/mcp/store"
)

// topic returns the topic on which processes notify each other of changed tasks. The
// messages are hints: a process that misses one polls.
func (m *Manager) topic() string { return "tasks/" + m.name }

// announce notifies all processes that a task has changed.
func (m *Manager) announce(ctx context.Context, id string) {
	m.hint(id)
	_ = m.store.Publish(ctx, m.topic(), []byte(id)) // a hint
}

// announceOffer notifies all processes that a task has no owner. The message is a plus
// sign, the ID and the caller.
func (m *Manager) announceOffer(ctx context.Context, rec *record) {
	_ = m.store.Publish(ctx, m.topic(), []byte("+"+rec.Task.ID+callerOf(rec.Caller))) // a hint
}

// hint wakes the run of a task and its watchers.
func (m *Manager) hint(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.running[id]; r != nil {
		async.Wake(r.poked)
	}
	for w := range m.watchers[id] {
		w.Add(id)
	}
}

// receiveHints receives the hints of other processes until Shutdown. A hint makes the owner
// read the record. It must not renew the lease: a renewal is itself a hint, and a waiting
// task would write continuously.
func (m *Manager) receiveHints() {
	// Between two subscriptions, tasks are polled.
	_ = async.Renew(m.ctx, m.opts.PollInterval, m.opts.PollInterval, func(time.Duration) bool {
		m.receiveHintsOnce()
		return true
	})
}

// receiveHintsOnce receives hints until the subscription or the Manager ends.
func (m *Manager) receiveHintsOnce() {
	sub, err := m.store.Subscribe(m.ctx, m.topic())
	if err != nil {
		return
	}
	defer sub.Close()
	for {
		message, err := sub.Next(m.ctx)
		if err == nil {
			m.receiveHint(string(message))
		} else if !errors.Is(err, store.ErrOverflow) {
			return
		}
	}
}

func (m *Manager) receiveHint(message string) {
	offer, ok := strings.CutPrefix(message, "+")
	switch {
	case !ok:
		m.hint(message)
	case len(offer) >= idLength && len(offer) <= maxOffer:
		m.schedule(candidate{id: offer[:idLength], caller: offer[idLength:], queued: time.Now()})
	}
}

// maxOffer is the maximum length of an offer: an ID and the name of a caller.
const maxOffer = idLength + 43
