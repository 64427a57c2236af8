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
// was told that it exists. Messages that are published at a server before that are lost. So
// every store responds to requests for its peers: the request arrives at a server after the
// earlier subscriptions of the same connection, so a response means that this server knows of them.

// No token contains the character @, so these are not subjects of topics.
func (o *Options) peersSubject() string  { return o.Namespace + ".topics.@peers" }
func (o *Options) answerSubject() string { return o.Namespace + ".topics.@" + rand.Text() }

// settling is how long a store waits for the next response of a peer.
const settling = 100 * time.Millisecond

// answerPeers responds to the peers of the store until the subscription ends.
func (s *Store) answerPeers() (*nats.Subscription, error) {
	sub, err := s.nc.Subscribe(s.opts.peersSubject(), func(m *nats.Msg) { _ = m.Respond(nil) }) // best effort
	if err != nil {
		return nil, fmt.Errorf("natsstore: subscribe: %w", err)
	}
	return sub, nil
}

// waitForPeers waits until the servers of all peers know of the subscriptions of this store. It
// takes a moment in a cluster, and no time with a single server.
func (s *Store) waitForPeers(ctx context.Context) error {
	if s.nc.ConnectedClusterName() == "" {
		return nil
	}
	answers, subject := make(chan *nats.Msg, 64), s.opts.answerSubject()
	sub, err := s.nc.ChanSubscribe(subject, answers)
	if err != nil {
		return fmt.Errorf("natsstore: subscribe: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails only if the connection has ended
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
