// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-psi/psi/internal/digest"
)

// feed is one subscriptions/listen request to the handler.
type feed struct {
	of      *feeding
	ctx     context.Context // of the request
	cancel  context.CancelCauseFunc
	listen  requestAndCall // the request
	begun   chan struct{}  // closed when it is settled; nil for the first feed
	refused error          // why the handler refused it at first; read after begun
	settled atomic.Bool
	again   bool // something may have changed before the handler acknowledges
	running sync.WaitGroup

	resources *fedResources // nil if it asks for updates of none
}

// fedResources are the resources of whose updates a feed is told.
type fedResources struct {
	before []string // those of the feed before it
	now    []string // those that the handler agreed to, sorted; guarded by the mutex of the Legacy
}

// begin makes it a feed of a Listen, after one that was told of resources. It ends with
// the session.
func (f *feed) begin(of *feeding, before []string) {
	l := of.legacy
	f.of = of
	filter := l.filter()
	if _, ok := filter.(*ListenParams); ok {
		f.resources = &fedResources{before: before}
	}
	l.makeListen(f.listen.begin(), of.from, filter)
	f.ctx, f.cancel = context.WithCancelCause(of.ctx)
	f.running.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.feeds = append(l.feeds, f)
	if l.isClosed() {
		f.cancel(ErrClosed)
	}
}

// start begins the feed of a Listen and waits until it is settled, or ctx is done.
func (f *feed) start(ctx context.Context, of *feeding, before []string) error {
	f.begin(of, before)
	go f.run()
	select {
	case <-f.begun:
		return f.refused
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// settle is called when the handler has acknowledged, or has refused: for the first
// feed with the lock of the Listen.
func (f *feed) settle() {
	of := f.of
	switch {
	case f.settled.Swap(true):
	case f.begun != nil:
		close(f.begun)
	default:
		of.mu.Unlock()
		if of.ready != nil {
			of.ready()
		}
	}
}

// run listens until the feed is stopped.
func (f *feed) run() {
	defer f.end()
	listenAgain(f.ctx, f.serve)
}

func (f *feed) serve(again bool) error {
	l := f.of.legacy
	f.again = again
	ctx := f.ctx
	if f.resources != nil && !again {
		ctx = context.WithValue(ctx, acceptedKey{}, &accepted{&f.listen.call, f.resources.before})
	}
	_, err := Serve(ctx, l.handler, &f.listen.request, f, l.opts.Logger)
	if err != nil && f.ctx.Err() == nil && !again && CodeOf(err) != CodeMethodNotFound {
		if !f.settled.Load() {
			f.refused = err
		}
		l.cannotTell(err)
	}
	f.settle()
	return err
}

func (l *Legacy) cannotTell(err error) {
	l.opts.Logger.Warn("mcp: the server cannot tell of changes", "session", digest.Session(l.opts.ID), "error", err)
}

func (f *feed) end() {
	l := f.of.legacy
	f.settle()
	f.cancel(nil)
	f.running.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.feeds = slices.DeleteFunc(l.feeds, func(other *feed) bool { return other == f })
}

// stop ends a feed and waits for its end.
func (f *feed) stop() {
	f.cancel(nil)
	f.running.Wait()
}

// Notify implements [Notifier]: it sends what the era has no label for without one.
func (f *feed) Notify(ctx context.Context, method string, params json.RawMessage) error {
	switch method {
	case NotificationAcknowledged:
		f.acknowledged(params)
		f.settle()
		if f.again {
			f.of.legacy.Missed(ctx)
		}
		return nil
	case NotificationResourceUpdated:
		var p ResourceUpdatedParams
		if err := unmarshal(params, &p); err != nil {
			return err
		}
		params = mustMarshal(&ResourceUpdatedParams{URI: p.URI})
	default:
		params = nil
	}
	return f.of.out.Send(ctx, AppendNotification(nil, method, params))
}

// acknowledged notes of what the handler tells.
func (f *feed) acknowledged(params json.RawMessage) {
	told, ok := acknowledgedChanges(params)
	if !ok {
		return
	}
	var uris []string
	if f.resources != nil {
		uris = acknowledgedURIs(params)
	}
	l := f.of.legacy
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = told
	if f.resources != nil {
		f.resources.now = uris
	}
}

// acknowledgedURIs are the URIs in [AcknowledgedParams], sorted.
func acknowledgedURIs(params json.RawMessage) []string {
	var p AcknowledgedParams
	_ = unmarshal(params, &p)
	slices.Sort(p.Notifications.ResourceSubscriptions)
	return p.Notifications.ResourceSubscriptions
}
