// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/revision"
)

// A remoteSubscription is the subscription to a resource at the server. All listeners share
// it.
type remoteSubscription struct {
	listeners int           // listeners that need it or are about to; guarded by session.mu
	turn      chan struct{} // capacity 1; full while a goroutine subscribes or unsubscribes
	active    atomic.Bool   // accepted by the server; set holding turn, cleared by reopen
}

// lock waits until no other goroutine is subscribing or unsubscribing.
func (r *remoteSubscription) lock(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *remoteSubscription) unlock() { <-r.turn }

// retain adds a listener.
func (s *session) retain(uri string) *remoteSubscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.subscribed[uri]
	if r == nil {
		r = &remoteSubscription{turn: make(chan struct{}, 1)}
		s.subscribed[uri] = r
	}
	r.listeners++
	return r
}

// release removes a listener and reports whether it was the last.
func (s *session) release(r *remoteSubscription) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.listeners--
	return r.listeners == 0
}

// removeUnused removes a subscription that no listener needs.
func (s *session) removeUnused(uri string, r *remoteSubscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.listeners == 0 && s.subscribed[uri] == r {
		delete(s.subscribed, uri)
	}
}

// subscribe ensures that the server sends updates of a resource. If another goroutine is
// already subscribing, subscribe waits for it, because the server may refuse or not
// respond.
func (s *session) subscribe(ctx context.Context, uri string) error {
	r := s.retain(uri)
	err := r.lock(ctx)
	if err == nil {
		if !r.active.Load() {
			err = s.inSession(ctx, func() error { return s.sendCommand(ctx, revision.Subscribe, map[string]string{"uri": uri}) })
			r.active.Store(err == nil)
		}
		r.unlock()
	}
	if err != nil {
		s.unsubscribeLater(ctx, []string{uri})
	}
	return err
}

// unsubscribeTime limits how long unsubscribing waits for the server.
const unsubscribeTime = 5 * time.Second

// unsubscribeLater undoes subscribe in the background, so that the end of a subscription
// does not wait for an unresponsive server.
func (s *session) unsubscribeLater(ctx context.Context, uris []string) {
	if len(uris) == 0 {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsubscribeTime)
		defer cancel()
		for _, uri := range uris {
			s.unsubscribe(ctx, uri)
		}
	}()
}

// unsubscribe undoes subscribe. The last listener unsubscribes at the server before another
// one can subscribe again.
func (s *session) unsubscribe(ctx context.Context, uri string) {
	s.mu.Lock()
	r := s.subscribed[uri]
	s.mu.Unlock()
	defer s.removeUnused(uri, r)
	if r.lock(ctx) != nil {
		s.release(r)
		return
	}
	defer r.unlock()
	if s.release(r) && r.active.Load() && s.ctx.Err() == nil {
		r.active.Store(false)
		_ = s.sendCommand(ctx, revision.Unsubscribe, map[string]string{"uri": uri}) // the server may be gone
	}
}
