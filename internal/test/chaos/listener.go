// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
)

// A publication records when an update of the news was sent and acknowledged.
type publication struct{ begun, acknowledged time.Time }

// publish publishes news twice per second until ctx is done.
func publish(ctx context.Context, url string, r *report) {
	v := &visitor{number: -1, version: mcp.LatestVersion, url: url, report: r, rng: rand.New(rand.NewPCG(1, 1))} //nolint:gosec // it is load, not a secret
	v.connect(ctx)
	defer v.close()
	for n := 1; ctx.Err() == nil; n++ {
		begun := time.Now()
		v.call(ctx, "publish", in{Text: "ok", Steps: n}, "ok")
		r.mu.Lock()
		r.publish = append(r.publish, publication{begun, time.Now()})
		r.mu.Unlock()
		sleep(ctx, 500*time.Millisecond)
	}
}

// soon is the maximum delay before a listener is notified. It covers detecting a dead
// stream, an election, and a reconnect.
const soon = 30 * time.Second

// A listener is a subscription of a visitor.
type listener struct {
	visitor *visitor
	sub     *mcp.Subscription

	mu    sync.Mutex
	since time.Time // news published before this is not expected
	told  time.Time // time of the last notification
	count int
}

// listen subscribes to the news.
func (v *visitor) listen(ctx context.Context) *listener {
	l := &listener{visitor: v}
	v.do(ctx, "subscribe", func(attempt context.Context) error {
		conn, err := v.connection(attempt)
		if err != nil {
			return err
		}
		listen := conn.Listen
		if v.up != nil {
			listen = v.up.Listen
		}
		l.sub, err = listen(context.WithoutCancel(ctx), mcp.SubscriptionFilter{ResourceSubscriptions: []string{newsURI}}, l.hear)
		return err
	})
	l.since = time.Now()
	return l
}

func (l *listener) hear(mcp.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = time.Now()
	l.count++
}

// check reports an error if the subscription has ended, or if the listener missed the last
// news that is at least soon old.
func (l *listener) check() {
	if l.sub == nil {
		return
	}
	select {
	case <-l.sub.Done():
		l.visitor.report.wrongf("%v: its subscription has ended: %v", l.visitor, l.sub.Err())
		l.sub = nil
		return
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, ok := l.visitor.report.lastBefore(time.Now().Add(-soon)); ok && p.begun.After(l.since) && l.told.Before(p.begun) {
		l.visitor.report.wrongf("%v: not told of news of %v ago; last told %v ago", l.visitor, time.Since(p.acknowledged).Round(time.Second), time.Since(l.told).Round(time.Second))
		l.since = time.Now()
	}
	for range l.count {
		l.visitor.report.done("told", 0)
	}
	l.count = 0
}

// lastBefore returns the last publication acknowledged before a time.
func (r *report) lastBefore(at time.Time) (last publication, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.publish {
		if p.acknowledged.Before(at) {
			last, ok = p, true
		}
	}
	return last, ok
}
