// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"slices"
	"time"
)

// roll replaces all replicas, one after another, during the load.
func (s *server) roll(ctx context.Context, c config, r *report) {
	if s.balancer == nil || c.replicas < 2 {
		return
	}
	for range c.replicas {
		pause(ctx, c.length/time.Duration(c.replicas+1))
		if ctx.Err() != nil {
			return
		}
		begun := time.Now()
		if err := s.replace(c.drain()); err != nil {
			r.wrongf("a replica was not replaced: %v", err)
			return
		}
		r.note("replace a replica", done, time.Since(begun))
	}
}

// replace starts a replica and shuts down the oldest. For the duration of drain, the old
// one only receives requests that belong to those in flight; then it has the same time
// again to shut down.
func (s *server) replace(drain time.Duration) error {
	next, err := s.startReplica()
	if err != nil {
		return err
	}
	s.balancer.add(next)
	s.mu.Lock()
	old := s.replicas[0]
	s.mu.Unlock()
	s.balancer.drain(old)
	pause(context.Background(), drain)
	s.balancer.remove(old)
	err = old.shutdown(drain)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas = slices.DeleteFunc(s.replicas, func(p *replica) bool { return p == old })
	return err
}

// drain returns how long each of the two phases of a replacement takes.
func (c config) drain() time.Duration { return min(c.length/8, 2*time.Second) }
