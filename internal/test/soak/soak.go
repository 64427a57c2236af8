// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// config holds the parameters of the load.
type config struct {
	length   time.Duration
	sessions int
	replicas int // values below 2 mean one
	think    time.Duration
	write    time.Duration // how long a client may stop reading
	settle   time.Duration
	seed     uint64
}

var quiet = slog.New(slog.DiscardHandler)

// soak generates the load and returns the report.
func soak(ctx context.Context, c config) *report {
	r := newReport(c)
	s, err := newServer(c)
	if err != nil {
		r.wrongf("the server does not start: %v", err)
		return r
	}
	defer s.close()
	warmUp(ctx, s)
	sweep(ctx, s)
	r.before = measure(s)
	begun := time.Now()
	load(ctx, c, s, r)
	r.took = time.Since(begun)
	r.leftAlone = s.sessions()
	if s.balancer != nil {
		r.moves, r.cuts = s.balancer.counts()
	}
	r.after, r.settled = settle(ctx, c, s, r)
	r.logged = s.logged.all()
	if !r.isLikeBefore(&r.after) {
		r.wrongf("it is not as it was before: %+v, before: %+v", r.after, r.before)
	}
	return r
}

// warmUp triggers one-time allocations: pools, caches, goroutines of the runtime.
func warmUp(ctx context.Context, s *server) {
	scrap := newReport(config{})
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	load(ctx, config{sessions: 4 * len(ways), length: time.Second, think: 20 * time.Millisecond}, s, scrap)
	s.endSessions()
	s.closeIdle()
}

// load runs clients until the time is over.
func load(ctx context.Context, c config, s *server, r *report) {
	ctx, cancel := context.WithTimeout(ctx, c.length)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { s.change(ctx) })
	all.Go(func() { r.watch(ctx, s) })
	all.Go(func() { s.roll(ctx, c, r) })
	for i := range c.sessions {
		rng := rand.New(rand.NewPCG(c.seed, uint64(i))) //nolint:gosec // it is load, not a secret
		all.Go(func() {
			v := &visitor{server: s, report: r, rng: rng, think: c.think, number: i, way: ways[i%len(ways)]}
			pause(ctx, upTo(rng, max(min(c.length/4, 5*time.Second), 1))) // not all at once
			for ctx.Err() == nil {
				v.visit(ctx)
			}
		})
	}
	all.Wait()
	s.closeIdle()
}

// settle waits until all figures are back at their initial level, for a limited time.
// Sessions left behind by clients may take a while; after c.settle they are ended, as an
// operator would. The limit is a number of sweeps, because on a busy machine one sweep may
// take longer than all that follows it.
func settle(ctx context.Context, c config, s *server, r *report) (after figures, took time.Duration) {
	begun := time.Now()
	for range 3 + c.settle/replayTime {
		sweep(ctx, s)
		for swept := time.Now(); time.Since(swept) < replayTime && ctx.Err() == nil; {
			if time.Since(begun) > c.settle {
				s.endSessions()
			}
			if after = measure(s); r.isLikeBefore(&after) {
				return after, time.Since(begun)
			}
			pause(ctx, 200*time.Millisecond)
		}
	}
	return after, time.Since(begun)
}

// nobody is the number of a client that the balancer does not disturb.
const nobody = -1

// sweep makes a few hundred calls with streams: expired events are discarded a few at a
// time, when others are stored.
func sweep(ctx context.Context, s *server) {
	v := &visitor{server: s, report: newReport(config{}), number: nobody, rng: rand.New(rand.NewPCG(1, 1)), way: ways[1]} //nolint:gosec // it is load, not a secret
	if !v.connect(ctx) {
		return
	}
	defer v.leave()
	for range 300 {
		if v.expect(ctx, "ask", arguments{Text: "x"}, "re:xare:xb") != nil {
			return
		}
	}
}

// upTo returns a random duration below d, which must be positive.
func upTo(rng *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(d)))
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// wrongf records a violation.
func (r *report) wrongf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.problemCount++; len(r.problems) < maxProblems {
		r.problems = append(r.problems, fmt.Sprintf(format, args...))
	}
}

// maxProblems is the maximum number of problems described in detail.
const maxProblems = 20
