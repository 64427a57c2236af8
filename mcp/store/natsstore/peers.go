// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// The servers of a cluster learn of a subscription one after the other, after the client
// was told that it exists. What is published at a server before that is lost. So every
// store answers those who ask for its peers: the request arrives at a server after what the
// same connection has subscribed to before, so an answer means that this server knows it.

// No token has the character @, so these are the subjects of no topic.
func (o *Options) peersSubject() string  { return o.Namespace + ".topics.@peers" }
func (o *Options) answerSubject() string { return o.Namespace + ".topics.@" + rand.Text() }

// settling is how long a store waits for the next answer of a peer.
const settling = 100 * time.Millisecond

// answerPeers answers the peers of the store, until the subscription ends.
func (s *Store) answerPeers() (*nats.Subscription, error) {
	sub, err := s.nc.Subscribe(s.opts.peersSubject(), func(m *nats.Msg) { _ = m.Respond(nil) }) // asks again, or waits in vain
	if err != nil {
		return nil, fmt.Errorf("natsstore: subscribe: %w", err)
	}
	return sub, nil
}

// settle waits until the servers of all peers know what this store has subscribed to. It
// takes a moment in a cluster, and no time if there is one server.
func (s *Store) settle(ctx context.Context) error {
	if s.nc.ConnectedClusterName() == "" {
		return nil
	}
	answers, subject := make(chan *nats.Msg, 64), s.opts.answerSubject()
	sub, err := s.nc.ChanSubscribe(subject, answers)
	if err != nil {
		return fmt.Errorf("natsstore: subscribe: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // the connection has ended otherwise
	if err := s.nc.PublishRequest(s.opts.peersSubject(), subject, nil); err != nil {
		return fmt.Errorf("natsstore: publish: %w", err)
	}
	timer := time.NewTimer(settling)
	defer timer.Stop()
	for {
		select {
		case <-answers:
			timer.Reset(settling)
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
