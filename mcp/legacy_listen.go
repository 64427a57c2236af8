// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/digest"
	"github.com/go-psi/psi/internal/jsonscan"
)

// Listen sends to out what belongs to no request: changes of lists, updates of
// the resources that the session subscribed to, pings. It listens to the handler
// as a client of the modern era does, until ctx or the session ends, and returns
// why. It calls ready, unless that is nil, when no change from then on is missed.
//
// The handler sees a listener of the origin given: what that may not subscribe to is
// left out.
//
// While a second Listen takes the place of a first, both may run, and both tell of
// what changes meanwhile; [Session.Notify] uses the out of the last one begun.
func (l *Legacy) Listen(ctx context.Context, from Origin, out Sender, ready func()) error {
	f := &feeding{legacy: l, ctx: ctx, from: from, out: out, ready: ready}
	f.mu.Lock() // whoever subscribes meanwhile waits for the first feed
	l.attach(f)
	defer l.detach(f)
	f.first.begin(f, nil)
	f.current = &f.first
	if l.opts.KeepAlive > 0 {
		defer l.keepAlive(ctx)()
	}
	f.first.run() // here: there may be thousands of frames like this one
	return l.endListen(f)
}

// endListen waits for the end of a feeding whose first feed has ended.
func (l *Legacy) endListen(f *feeding) error {
	var err error
	select {
	case <-f.ctx.Done():
		err = context.Cause(f.ctx)
	case <-l.Context().Done():
		err = ErrClosed
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current.stop()
	return err
}

// feeding is what one Listen does: it has one feed after the other. There may be
// thousands, most of which never have a second feed: it is one allocation with the
// first.
type feeding struct {
	legacy *Legacy
	ctx    context.Context // of Listen
	from   Origin          // of Listen
	out    Sender
	ready  func() // may be nil

	mu      sync.Mutex
	current *feed
	first   feed
}

// Missed tells the client, through the out of the Listen that is under way, of
// everything that it listens to: for one that comes back and may have missed any of
// it.
func (l *Legacy) Missed(ctx context.Context) {
	l.mu.Lock()
	f, told, uris := l.feeding, l.told, slices.Sorted(maps.Keys(l.subscriptions))
	l.mu.Unlock()
	if f == nil {
		return
	}
	for _, n := range changeNotifications {
		if told&n.change != 0 {
			_ = f.out.Send(ctx, AppendNotification(nil, n.method, nil)) // who is gone needs nothing
		}
	}
	for _, uri := range uris {
		_ = f.out.Send(ctx, AppendNotification(nil, NotificationResourceUpdated, mustMarshal(&ResourceUpdatedParams{URI: uri})))
	}
}

// acknowledgedChanges are the changes of lists in [AcknowledgedParams]. Whoever waits
// for changes is deep in its stack here, which would have to grow for the decoder.
func acknowledgedChanges(params json.RawMessage) (told change, ok bool) {
	s := jsonscan.Get(params, 0)
	defer s.Release()
	for s.Object(); s.Member(); {
		if string(s.Name()) != "notifications" {
			s.Skip()
			continue
		}
		for s.Object(); s.Member(); {
			c := listChangeOf(s.Name())
			if string(s.Value()) == "true" {
				told |= c
			}
		}
	}
	return told, s.End() == nil
}

// listChangeOf is the change that a member of a [SubscriptionFilter] asks for.
func listChangeOf(member []byte) change {
	switch string(member) {
	case "toolsListChanged":
		return toolsChanged
	case "promptsListChanged":
		return promptsChanged
	case "resourcesListChanged":
		return resourcesChanged
	}
	return 0
}

func (l *Legacy) attach(f *feeding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.feeding = f
}

func (l *Legacy) detach(f *feeding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.feeding == f {
		l.feeding = nil
	}
}

// refeed feeds what the session is subscribed to now. When it returns, the
// handler tells of it: an update that a client causes after it has subscribed is
// one that it hears of. The feed before it goes on until then, so that there is no
// gap, and stays if the handler refuses the new one, or if ctx is done before.
func (l *Legacy) refeed(ctx context.Context) error {
	l.mu.Lock()
	f := l.feeding
	l.mu.Unlock()
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx.Err() != nil || l.isClosed() {
		return nil // nothing may be sent to the out of a Listen that has returned
	}
	accepted, all := l.accepted(f.current)
	if all {
		return nil
	}
	next := &feed{begun: make(chan struct{})}
	if err := next.start(ctx, f, accepted); err != nil {
		next.stop()
		return err
	}
	f.current.stop()
	f.current = next
	return nil
}

// accepted returns the URIs that the handler tells a feed of, and whether they are all
// that the session is subscribed to, and nothing else.
func (l *Legacy) accepted(f *feed) (uris []string, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.resources != nil {
		uris = f.resources.now
	}
	return uris, slices.Equal(uris, slices.Sorted(maps.Keys(l.subscriptions)))
}

// filter is what the session listens to, as params of [NewRequest].
func (l *Legacy) filter() any {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.subscriptions) == 0 {
		return changesOfLists
	}
	return &ListenParams{Notifications: SubscriptionFilter{
		ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true,
		ResourceSubscriptions: slices.Sorted(maps.Keys(l.subscriptions)),
	}}
}

// What the requests of most sessions have in common.
var (
	listenID       = StringID("psi-listen")
	changesOfLists = json.RawMessage(`{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}`)
)

// makeListen makes a new request one that listens, with params as those of
// [NewRequest].
func (l *Legacy) makeListen(req *Request, from Origin, params any) {
	if err := req.make(MethodListen, params); err != nil {
		panic("mcp: " + err.Error())
	}
	req.ID = listenID
	from.mark(req)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fillIn(req)
}

// maxMisses is how many pings in a row may go unanswered.
const maxMisses = 3

// keepAlive closes the session when its client is gone for good: any answer
// counts, and without a stream to ask on nobody is taken for dead. It returns what
// ends it.
func (l *Legacy) keepAlive(ctx context.Context) func() {
	ctx, cancel := context.WithCancel(ctx)
	var pinging sync.WaitGroup
	pinging.Go(func() { l.ping(ctx) })
	return func() {
		cancel()
		pinging.Wait()
	}
}

func (l *Legacy) ping(ctx context.Context) {
	ticker := time.NewTicker(l.opts.KeepAlive)
	defer ticker.Stop()
	misses := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.Context().Done():
			return
		case <-ticker.C:
		}
		pinged, cancel := context.WithTimeout(ctx, l.opts.KeepAlive)
		err := l.session.Ping(pinged)
		cancel()
		switch {
		case err == nil:
			misses = 0
		case !errors.Is(err, ErrNotDelivered) && ctx.Err() == nil:
			misses++
		}
		if misses >= maxMisses {
			l.opts.Logger.WarnContext(ctx, "mcp: the client does not answer; closing its session", "session", digest.Session(l.opts.ID), "pings", misses)
			l.Close()
			return
		}
	}
}
