// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/pause"
)

// listen serves subscriptions/listen: it acknowledges the part of the filter that the
// server can serve, and then sends notifications until the client or the transport ends
// the request. Everything but listening to mounts happens on the goroutine of the request.
func (g *registry) listen(ctx context.Context, req *Request) (Result, error) {
	s, err := g.subscribe(ctx, req)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.acknowledge(ctx, s.accepted); err != nil {
		return nil, err
	}
	close(s.mounts.acknowledged)
	for {
		select {
		case <-ctx.Done():
			return s.end(ctx)
		case ack := <-s.mounts.acks:
			s.mounts.catchUp(ack)
		case <-s.listener.remounted:
			s.mounts.refresh(ctx)
		case <-s.listener.wake:
			if err := s.sendVisible(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// end returns the result of a subscription whose context is done. Changes that came together
// with the end may be missed by a subscription that replaces this one. A client that cancelled
// gets nothing more.
func (s *muxSubscription) end(ctx context.Context) (Result, error) {
	if !wasCancelled(ctx) {
		_ = s.sendVisible(context.WithoutCancel(ctx)) // if it fails, the client is gone
	}
	return s.req.listenResult(ctx)
}

// muxSubscription is a subscription at a mux, with those at its mounts.
type muxSubscription struct {
	subscriber

	registry *registry
	accepted SubscriptionFilter
	listener *listener
	mounts   *mountListeners
}

// subscribe adds a listener, which receives all changes from now on.
func (g *registry) subscribe(ctx context.Context, req *Request) (*muxSubscription, error) {
	var p ListenParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	if err := p.Notifications.check(g.opts.MaxSubscriptions); err != nil {
		return nil, err
	}
	watched, err := g.watchedTasks(ctx, req, &p.Notifications)
	if err != nil {
		return nil, err
	}
	accepted := g.accept(ctx, req, &p.Notifications)
	l := newListener(req.Principal, &accepted)
	l.spellings = g.spellings(accepted.ResourceSubscriptions)
	if err := g.hub.add(l); err != nil {
		return nil, err
	}
	g.bus.join(ctx)
	mounts := newMountListeners(g, req, accepted, l, watched)
	accepted.ResourceSubscriptions = mounts.start(ctx)
	accepted.Extra = mounts.acceptedTasks()
	return &muxSubscription{newSubscriber(req), g, accepted, l, mounts}, nil
}

func (s *muxSubscription) close() {
	s.mounts.stop()
	s.registry.hub.remove(s.listener)
	s.registry.bus.leave()
}

// accept returns the part of a filter that this server can serve: the lists that it
// announces changes of, and the resources that the caller may subscribe to.
func (g *registry) accept(ctx context.Context, req *Request, f *SubscriptionFilter) (accepted SubscriptionFilter) {
	caps := g.capabilities()
	accepted = caps.announcedLists(*f)
	if caps.Resources == nil || !caps.Resources.Subscribe {
		return accepted
	}
	for _, uri := range f.ResourceSubscriptions {
		if _, before := slices.BinarySearch(req.sharedCall().accepted, uri); before || g.maySubscribe(ctx, req, uri) {
			accepted.ResourceSubscriptions = append(accepted.ResourceSubscriptions, uri)
		}
	}
	return accepted
}

// spellings returns those of the URIs that their template writes otherwise, by what it writes.
func (g *registry) spellings(uris []string) (spellings map[string][]string) {
	s := g.load()
	for _, uri := range uris {
		e, values := s.resource(uri)
		if e == nil || e.template == nil {
			continue
		}
		if plain := e.template.Rebuild(values); plain != uri {
			if spellings == nil {
				spellings = map[string][]string{}
			}
			spellings[plain] = append(spellings[plain], uri)
		}
	}
	return spellings
}

// sendVisible sends the changes that wait. A resource below a subscribed directory may
// have a registration of its own, with other permissions: if the caller may not subscribe
// to it, or it is gone, the directory stands for it.
func (s *muxSubscription) sendVisible(ctx context.Context) error {
	visible := s.listener.drain()
	for i, c := range visible {
		if covering, _ := s.listener.covering(c); covering != c && !s.registry.maySubscribe(ctx, s.req, c.URI) {
			visible[i] = covering
		}
	}
	slices.SortFunc(visible, compareChanges)
	return s.notify(ctx, slices.Compact(visible))
}

// subscriptionMeta returns the metadata of everything that is sent on the subscription
// that the request began.
func (r *Request) subscriptionMeta() Meta {
	id, _ := r.ID.MarshalJSON() // it cannot fail
	return Meta{MetaSubscriptionID: id}
}

// A subscriber is the sender of a subscriptions/listen request.
type subscriber struct {
	req         *Request
	listChanged json.RawMessage // the params of a notification that a list has changed
}

func newSubscriber(req *Request) subscriber {
	params, _ := appendMeta([]byte(`{"_meta":{`), req.subscriptionMeta()) // which is valid
	return subscriber{req, append(params, "}}"...)}
}

// acknowledge tells the subscriber that the subscription has begun. To encode all of the
// params at once would take a larger stack, which every session that listens would keep.
func (s *subscriber) acknowledge(ctx context.Context, accepted SubscriptionFilter) error {
	params := append(jsonscan.AppendKey([]byte{'{'}, "notifications"), mustMarshal(&accepted)...)
	params = append(jsonscan.AppendKey(params, "_meta"), mustMarshal(s.req.subscriptionMeta())...)
	return s.req.sharedCall().notify(ctx, NotificationAcknowledged, append(params, '}'))
}

// notify tells the subscriber of changes.
func (s *subscriber) notify(ctx context.Context, changes changeSet) error {
	for _, c := range changes {
		params := s.listChanged
		if c.Method == NotificationResourceUpdated {
			params = mustMarshal(&ResourceUpdatedParams{URI: c.URI, Meta: s.req.subscriptionMeta()})
		}
		if err := s.req.sharedCall().notify(ctx, c.Method, params); err != nil {
			return err
		}
	}
	return nil
}

// pass passes a notification of another subscription on as one of this.
func (s *subscriber) pass(ctx context.Context, method string, params json.RawMessage) error {
	raw := append(jsonscan.AppendKey([]byte{'{'}, "_meta"), mustMarshal(s.req.subscriptionMeta())...)
	return s.req.Notify(ctx, method, json.RawMessage(jsonscan.AppendMembers(raw, params, "_meta")))
}

// listenResult returns the result of a subscription whose context is done. It is an error
// unless the server ended the subscription.
func (r *Request) listenResult(ctx context.Context) (Result, error) {
	if cause := context.Cause(ctx); !errors.Is(cause, ErrClosed) {
		return nil, cause
	}
	return &ListenResult{ResultBase{Meta: r.subscriptionMeta()}}, nil
}

// derive returns another request of the same caller, with its own stream of
// notifications.
func (r *Request) derive(method string, params json.RawMessage) *Request {
	d := r.Clone()
	d.call = r.sharedCall().detached()
	d.Method, d.ID = method, ID{}
	must(d.setParams(params)) // they were made here
	return d
}

// hub passes changes to listeners. Publishing never waits for a listener: each keeps a
// bounded set of changes that it has not sent yet.
type hub struct {
	interval  time.Duration // the least time between two announcements of a change of one list
	perCaller int           // limit of the listeners of one authenticated caller

	mu        sync.Mutex // locked before that of a listener
	listeners map[*listener]struct{}
	callers   map[caller]int       // listeners of each authenticated caller
	announced map[Change]time.Time // when the change of a list was announced last
	scheduled map[Change]bool      // the next announcement is due at the end of the interval
}

func newHub(interval time.Duration, perCaller int) *hub {
	return &hub{
		interval: interval, perCaller: perCaller,
		listeners: map[*listener]struct{}{}, callers: map[caller]int{},
		announced: map[Change]time.Time{}, scheduled: map[Change]bool{},
	}
}

// caller identifies an authenticated caller. It is zero for all others.
type caller struct{ issuer, subject string }

func callerOf(p *Principal) caller {
	if p == nil {
		return caller{}
	}
	return caller{p.Issuer, p.Subject}
}

// changeInterval is the interval of the hub of a mux.
const changeInterval = 100 * time.Millisecond

// Default limits: of the subscriptions that one authenticated caller has open, and of the
// resources that one subscription names.
const (
	maxListeners     = 1000
	maxSubscriptions = 1000
)

// add adds a listener. It fails if its caller is authenticated and has too many.
func (h *hub) add(l *listener) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.caller != (caller{}) {
		if h.callers[l.caller] >= h.perCaller {
			return NewRateLimitedError(time.Minute, "the caller has %d subscriptions open, which is the limit", h.perCaller)
		}
		h.callers[l.caller]++
	}
	h.listeners[l] = struct{}{}
	return nil
}

func (h *hub) remove(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
	if h.callers[l.caller]--; h.callers[l.caller] <= 0 {
		delete(h.callers, l.caller)
	}
}

// publish announces a change, unless it is zero. If a list changes again within the
// interval, that is announced once, at the end of the interval.
func (h *hub) publish(c Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.publishLocked(c)
}

// announce announces what an edit has changed. If there are other mounts, listeners must
// listen to them.
func (h *hub) announce(a announcement) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.remounted {
		for l := range h.listeners {
			wake(l.remounted)
		}
	}
	for _, c := range a.changes {
		h.publishLocked(c)
	}
}

func (h *hub) publishLocked(c Change) {
	switch {
	case c.Method == NotificationResourceUpdated:
		h.announceLocked(c)
		return
	case c == (Change{}), len(h.listeners) == 0, h.scheduled[c]:
		return
	}
	wait := h.interval - time.Since(h.announced[c])
	if wait <= 0 {
		h.announceLocked(c)
		return
	}
	h.scheduled[c] = true
	time.AfterFunc(wait, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.announceLocked(c)
	})
}

func (h *hub) announceLocked(c Change) {
	if c.Method != NotificationResourceUpdated {
		h.announced[c], h.scheduled[c] = time.Now(), false
	}
	for l := range h.listeners {
		l.add(c)
	}
}

// maxUpdates bounds the changes that wait to be sent to a listener. Beyond it, the
// subscribed URI stands for those below it.
const maxUpdates = 1024

// listener collects the changes that one subscription covers until they are sent.
type listener struct {
	caller      caller
	covered     changeSet
	directories bool                // some of the subscribed URIs cover what is below them
	spellings   map[string][]string // URIs that are subscribed to in another spelling, by the usual one; seldom any
	wake        chan struct{}       // receives when there are changes to drain
	remounted   chan struct{}       // receives when there are other mounts

	mu      sync.Mutex
	pending changeSet
}

func newListener(p *Principal, f *SubscriptionFilter) *listener {
	l := &listener{caller: callerOf(p), covered: everythingIn(f), wake: make(chan struct{}, 1), remounted: make(chan struct{}, 1)}
	for _, uri := range f.ResourceSubscriptions {
		l.directories = l.directories || strings.HasSuffix(uri, "/")
	}
	return l
}

// add adds a change, and that of a URI which is subscribed to in another spelling.
func (l *listener) add(c Change) {
	l.addCovered(c)
	for end := 0; len(l.spellings) > 0 && end < len(c.URI); end++ {
		if c.URI[end] != '/' && end+1 < len(c.URI) {
			continue
		}
		for _, uri := range l.spellings[c.URI[:end+1]] {
			l.addCovered(Change{c.Method, uri})
		}
	}
}

func (l *listener) addCovered(c Change) {
	covering, ok := l.covering(c)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) >= maxUpdates {
		c = covering
	}
	l.pending.add(c)
	wake(l.wake)
}

// covering returns the change subscribed to that covers c: c itself, or that of a
// directory above it. Its cost does not depend on the number of subscribed URIs, because
// publishing calls it for every listener.
func (l *listener) covering(c Change) (covering Change, ok bool) {
	if l.covered.has(c) {
		return c, true
	}
	if !l.directories {
		return Change{}, false
	}
	for end, char := range c.URI {
		if char != '/' {
			continue
		}
		if directory := (Change{c.Method, c.URI[:end+1]}); l.covered.has(directory) {
			return directory, true
		}
	}
	return Change{}, false
}

// drain returns the changes that wait, and removes them.
func (l *listener) drain() changeSet {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.pending
	l.pending = nil
	return s
}

// listenAgain calls listen, which serves one subscription, until ctx is done or the
// server has no changes to announce. A subscription that ends otherwise, for example when
// a server is replaced by another, is made again. What changed in between is not known:
// if again is true, anything may have changed before the acknowledgement.
func listenAgain(ctx context.Context, listen func(again bool) error) {
	delay := firstPause
	for again := false; ; again = true {
		began := time.Now()
		err := listen(again)
		if CodeOf(err) == CodeMethodNotFound || errors.Is(err, ErrClosed) {
			return
		}
		if time.Since(began) > maxPause {
			delay = firstPause
		}
		if pause.For(ctx, delay) != nil {
			return
		}
		delay = min(2*delay, maxPause)
	}
}

// The pause before a subscription is made again: the first and the longest.
const (
	firstPause = time.Second
	maxPause   = time.Minute
)
