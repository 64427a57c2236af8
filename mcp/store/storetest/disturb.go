// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package storetest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-psi/psi/mcp/store"
)

// Disturb uses a store while disturb breaks the connections of its engine, or kills and
// restarts its nodes. It checks that the store keeps what it has acknowledged, and then
// that the store works again:
//
//   - no update of a value is lost or made twice,
//   - a value is taken by at most one caller, and is gone only if it was taken,
//   - a message that is missing from a subscription is reported.
//
// Steps may fail with errors that leave open whether they were taken. Disturb returns the
// share of all steps that failed, between 0 and 1. The engine must have recovered when
// disturb returns: later steps must succeed within ten seconds.
func Disturb(t *testing.T, s store.Store, disturb func()) (failed float64) {
	t.Helper()
	d := &disturbance{T: t, store: s, over: make(chan struct{})}
	var group sync.WaitGroup
	checks := make([]func(), 3)
	for i, use := range []func() (check func()){d.count, d.handOver, d.publish} {
		group.Go(func() { checks[i] = use() })
	}
	disturb()
	close(d.over)
	group.Wait()
	for _, check := range checks {
		check()
	}
	return float64(d.failures.Load()) / float64(max(d.steps.Load(), 1))
}

type disturbance struct {
	*testing.T

	store           store.Store
	over            chan struct{} // closed when the disturbance is over
	steps, failures atomic.Int64
}

// lasts reports whether the disturbance is still going on.
func (d *disturbance) lasts() bool {
	select {
	case <-d.over:
		return false
	default:
		return true
	}
}

// made counts a step and reports whether it was certainly taken. A step that failed may
// have been taken.
func (d *disturbance) made(err error) bool {
	d.steps.Add(1)
	if err != nil && d.failures.Add(1) <= 5 {
		d.Logf("a step has failed: %v", err)
	}
	return err == nil
}

// count updates a counter.
func (d *disturbance) count() (check func()) {
	key, certain, open := newKey(), 0, 0
	var mu sync.Mutex
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for d.lasts() {
				err := store.Update(d.Context(), d.store, key, lasting, increment)
				mu.Lock()
				if d.made(err) {
					certain++
				} else {
					open++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return func() {
		d.Helper()
		want(d.T, "Update after the disturbance", store.Update(soon(d.T), d.store, key, lasting, increment), nil)
		value, _, err := d.store.Get(soon(d.T), key)
		want(d.T, "Get", err, nil)
		if n, _ := strconv.Atoi(string(value)); n < certain+1 || n > certain+open+1 {
			d.Errorf("the counter is at %q after %d updates and %d that may have failed", value, certain+1, open)
		}
	}
}

// handOver puts values, each of which two callers then try to take.
func (d *disturbance) handOver() (check func()) {
	for d.lasts() {
		key := newKey()
		if _, err := d.store.Put(d.Context(), key, []byte(key), 0, lasting); !d.made(err) {
			continue
		}
		var taken, unknown atomic.Int32
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() {
				value, err := d.store.Take(d.Context(), key)
				switch {
				case err == nil && string(value) == key:
					taken.Add(1)
				case err == nil:
					d.Errorf("took %q, want %q", value, key)
				case !errors.Is(err, store.ErrNotFound):
					d.made(err)
					unknown.Add(1)
				}
			})
		}
		group.Wait()
		if n := taken.Load(); n > 1 || n == 0 && unknown.Load() == 0 {
			d.Errorf("%d callers took a value, want 1", n)
		}
	}
	return func() {
		key := newKey()
		_, err := d.store.Put(soon(d.T), key, nil, 0, lasting)
		want(d.T, "Put after the disturbance", err, nil)
		_, err = d.store.Take(soon(d.T), key)
		want(d.T, "Take after the disturbance", err, nil)
	}
}

// publish sends numbers to a subscription.
func (d *disturbance) publish() (check func()) {
	topic := newKey()
	subscription, err := d.store.Subscribe(d.Context(), topic)
	if err != nil {
		d.Errorf("Subscribe: %v", err)
		return func() {}
	}
	uncertain, received := make(chan int, 1<<16), make(chan error, 1)
	go func() { received <- d.receive(subscription, uncertain) }()
	last := 0
	for d.lasts() {
		last++
		if !d.made(d.store.Publish(d.Context(), topic, []byte(strconv.Itoa(last)))) {
			uncertain <- last
		}
	}
	return func() {
		defer subscription.Close()
		ctx := soon(d.T)
		for {
			want(d.T, "Publish after the disturbance", d.store.Publish(ctx, topic, fmt.Append(nil, endPrefix, last+1)), nil)
			select {
			case err := <-received:
				want(d.T, "Next", err, nil)
				return
			case <-ctx.Done():
				d.Fatal("the subscription no longer works")
			default:
			}
		}
	}
}

// endPrefix marks the message that ends the numbers, and counts as one of them.
const endPrefix = "end "

// receive receives numbers until the end. Numbers from uncertain may be missing.
func (d *disturbance) receive(subscription store.Subscription, uncertain <-chan int) error {
	open, got := map[int]bool{}, map[int]bool{}
	for last, reported := 0, false; ; {
		message, err := subscription.Next(d.Context())
		if errors.Is(err, store.ErrOverflow) {
			reported = true
			continue
		}
		if err != nil {
			return err
		}
		text, isEnd := strings.CutPrefix(string(message), endPrefix)
		number, err := strconv.Atoi(text)
		if err != nil || number <= last && !open[number] && !got[number] {
			return fmt.Errorf("message %q after %d", message, last)
		}
		got[number] = true
		for len(uncertain) > 0 {
			open[<-uncertain] = true
		}
		for missing := last + 1; missing < number; missing++ {
			if !reported && !open[missing] {
				return fmt.Errorf("message %d is missing before %d, which was not reported", missing, number)
			}
		}
		if isEnd {
			return nil
		}
		last, reported = max(last, number), false
	}
}
