// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"sync"
	"time"
)

// pulse gives a heartbeat to streams, and to requests that take so long that they
// have to become one. Every request begins one and hardly any lives to see it, so
// that it must cost next to nothing: since the interval is the same for all, who
// came first is due first, and a queue with one timer is enough for them.
type pulse struct {
	interval time.Duration // between two heartbeats; none if it is not positive

	mu          sync.Mutex
	began       time.Time // zero before the first beat
	first, last *beat
	timer       *time.Timer // nil before the first beat
	armed       bool        // the timer will fire
}

// beater is what has a heartbeat.
type beater interface{ heartbeat() }

// beat is one place in the queue of a pulse, part of what has the heartbeat. The
// zero beat has not begun, and may be stopped.
type beat struct {
	pulse         *pulse
	of            beater
	due           time.Duration // since the pulse began
	before, after *beat
	queued, over  bool
}

// start begins the heartbeat of a beater. It is called once for a beat.
func (p *pulse) start(b *beat, of beater) {
	if p.interval <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b.pulse, b.of = p, of
	p.push(b)
}

// stop ends it. The beater's function may be running, or about to.
func (b *beat) stop() {
	p := b.pulse
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b.over = true
	if b.queued {
		p.remove(b)
	}
}

// fire gives a heartbeat to all that are due, each on a goroutine of its own: one
// client that does not read must not hold up the others.
func (p *pulse) fire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Since(p.began)
	for p.first != nil && p.first.due <= now {
		b := p.first
		p.remove(b)
		go b.give()
	}
	p.armed = false
	p.arm(now)
}

func (b *beat) give() {
	b.of.heartbeat()
	b.pulse.mu.Lock()
	defer b.pulse.mu.Unlock()
	if !b.over {
		b.pulse.push(b)
	}
}

// arm sets the timer for the first in the queue. One that is armed already fires
// for somebody who was there before, and then sets it anew.
func (p *pulse) arm(now time.Duration) {
	if p.armed || p.first == nil {
		return
	}
	p.armed = true
	wait := p.first.due - now
	if p.timer == nil {
		p.timer = time.AfterFunc(wait, p.fire)
		return
	}
	p.timer.Reset(wait)
}

func (p *pulse) push(b *beat) {
	if p.began.IsZero() {
		p.began = time.Now()
	}
	now := time.Since(p.began)
	b.due, b.queued = now+p.interval, true
	b.before, b.after = p.last, nil
	if p.last == nil {
		p.first = b
	} else {
		p.last.after = b
	}
	p.last = b
	p.arm(now)
}

func (p *pulse) remove(b *beat) {
	if b.before == nil {
		p.first = b.after
	} else {
		b.before.after = b.after
	}
	if b.after == nil {
		p.last = b.before
	} else {
		b.after.before = b.before
	}
	b.before, b.after, b.queued = nil, nil, false
}
