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

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/uritemplate"
)

// listen serves subscriptions/listen. It acknowledges the part of the filter that the
// server supports, and then sends notifications until the client or the transport ends the
// request. Everything except listening to mounts runs on the goroutine of the request.
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
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case ack := <-s.mounts.acks:
			s.mounts.catchUp(ack)
		case <-s.listener.remounted:
			s.mounts.refresh(ctx)
		case <-s.listener.changes.Wake():
			if err := s.sendVisible(ctx); err != nil && !errors.Is(context.Cause(ctx), ErrClosed) {
				return nil, err
			}
		}
	}
	return s.end(ctx)
}

// end returns the result of a subscription whose context is done. It first sends the pending
// changes, which a subscription that replaces this one might miss, unless the client has
// cancelled the request.
func (s *muxSubscription) end(ctx context.Context) (Result, error) {
	if !wasCancelled(ctx) {
		_ = s.sendVisible(context.WithoutCancel(ctx)) // an error means that the client is gone
	}
	return s.req.listenResult(ctx)
}

// subscriptionMeta returns the metadata of every message sent on the subscription that r
// opened.
func (r *Request) subscriptionMeta() Meta {
	id, _ := r.ID.MarshalJSON() // it cannot fail
	return Meta{MetaSubscriptionID: id}
}

// A subscriber sends messages on the stream of a subscriptions/listen request.
type subscriber struct {
	req         *Request
	listChanged json.RawMessage // the params of list_changed notifications
}

func newSubscriber(req *Request) subscriber {
	params, _ := appendMeta([]byte(`{"_meta":{`), req.subscriptionMeta()) // the metadata is always valid
	return subscriber{req, append(params, "}}"...)}
}

// acknowledge acknowledges the subscription. It encodes the params piecewise: encoding them
// in one step needs a larger stack, which the goroutine of each subscription would keep.
func (s *subscriber) acknowledge(ctx context.Context, accepted SubscriptionFilter) error {
	params := append(jsonscan.AppendKey([]byte{'{'}, "notifications"), mustMarshal(&accepted)...)
	params = append(jsonscan.AppendKey(params, "_meta"), mustMarshal(s.req.subscriptionMeta())...)
	return s.req.sharedCall().notify(ctx, NotificationAcknowledged, append(params, '}'))
}

// notify sends a notification for each change.
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

// forward forwards a notification of another subscription on this one.
func (s *subscriber) forward(ctx context.Context, method string, params json.RawMessage) error {
	raw := append(jsonscan.AppendKey([]byte{'{'}, "_meta"), mustMarshal(s.req.subscriptionMeta())...)
	return s.req.Notify(ctx, method, json.RawMessage(jsonscan.AppendMembers(raw, params, "_meta")))
}

// listenResult returns the result of a subscription whose context is done. It returns an
// error unless the server ended the subscription.
func (r *Request) listenResult(ctx context.Context) (Result, error) {
	if cause := context.Cause(ctx); !errors.Is(cause, ErrClosed) {
		return nil, cause
	}
	return &ListenResult{ResultBase{Meta: r.subscriptionMeta()}}, nil
}

// derive returns a new request of the same caller, with its own notification stream.
func (r *Request) derive(method string, params json.RawMessage) *Request {
	d := r.Clone()
	d.call = r.sharedCall().detached()
	d.Method, d.ID = method, ID{}
	must(d.setParams(params)) // params were encoded by this package
	return d
}

// A hub passes changes to listeners. Publishing never waits for a listener: each one has a
// bounded set of pending changes.
type hub struct {
	interval  time.Duration // minimum time between two announcements of changes to the same list
	perCaller int           // maximum number of listeners of an authenticated caller

	mu        sync.Mutex
	listeners map[*listener]struct{}
	callers   map[string]int       // number of listeners of each authenticated caller
	announced map[Change]time.Time // when a change of each list was last announced
	scheduled map[Change]bool      // an announcement is scheduled for the end of the interval
}

func newHub(interval time.Duration, perCaller int) *hub {
	return &hub{
		interval: interval, perCaller: perCaller,
		listeners: map[*listener]struct{}{}, callers: map[string]int{},
		announced: map[Change]time.Time{}, scheduled: map[Change]bool{},
	}
}

// changeInterval is the interval of the hub of a mux.
const changeInterval = 100 * time.Millisecond

// Limits: the open subscriptions of an authenticated caller, including those that are being
// decided, and the resources in one subscription. Other callers are limited by the transport.
const (
	maxListeners     = 1000
	maxSubscriptions = 1000
)

// add adds a listener. It fails if the caller is authenticated and already has too many.
func (h *hub) add(l *listener) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.caller != "" {
		if h.callers[l.caller] >= h.perCaller {
			return NewRateLimitedError(time.Minute, "the caller has %d subscriptions open, which is the limit", h.perCaller)
		}
		h.callers[l.caller]++
	}
	h.listeners[l] = struct{}{}
	return nil
}

// cover makes l receive all subsequent changes that a filter covers. canonical holds the URIs
// of the filter that are not in the form in which their changes are published, by that form.
func (h *hub) cover(l *listener, f *SubscriptionFilter, canonical spellings) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.covered, l.canonical = everythingIn(f), canonical
	for _, uri := range f.ResourceSubscriptions {
		l.directories = l.directories || strings.HasSuffix(uri, "/")
	}
}

func (h *hub) remove(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
	if h.callers[l.caller]--; h.callers[l.caller] <= 0 {
		delete(h.callers, l.caller)
	}
}

// publish announces a change, unless it is zero. Further changes of the same list within
// the interval are announced once, at the end of the interval.
func (h *hub) publish(c Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.publishLocked(c)
}

// announce announces the changes of an edit. If the mounts have changed, it wakes the
// subscriptions, which then refresh their subscriptions to mounts.
func (h *hub) announce(a announcement) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.remounted {
		for l := range h.listeners {
			async.Wake(l.remounted)
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

// Limits on the changes that wait to be sent to one subscription. Beyond them, everything
// counts as changed.
const (
	maxUpdates     = 1024
	maxUpdateBytes = 256 << 10
)

// newChanges returns an empty set of changes.
func newChanges() *async.Set[Change] {
	return async.NewSet(maxUpdates, maxUpdateBytes, compareChanges, func(c Change) int { return len(c.URI) })
}

// A listener collects the changes covered by one subscription until they are sent. It covers
// nothing until [hub.cover] is called.
type listener struct {
	caller      string    // its key, or "" if it is not authenticated
	subject     string    // of the caller
	covered     changeSet // with the URIs as subscribed to
	directories bool      // some of the subscribed URIs are directories, which cover the URIs below them
	canonical   spellings // subscribed URIs that are not in canonical form, by that form; usually empty
	changes     *async.Set[Change]
	remounted   chan struct{} // signalled when the mounts have changed
}

func newListener(p *Principal) *listener {
	l := &listener{caller: p.Key(), changes: newChanges(), remounted: make(chan struct{}, 1)}
	if p != nil {
		l.subject = p.Subject
	}
	return l
}

// add adds a change, whose URI must be in normal form, if it is covered: in each spelling
// that is subscribed to or, if only a directory above the URI is, below its spellings. It is
// called for every listener when a change is published, so its cost must not grow with the
// number of subscribed URIs.
func (l *listener) add(c Change) {
	if l.addBelow(c, len(c.URI)) || !l.directories {
		return
	}
	for end, char := range c.URI {
		if char == '/' && l.addBelow(c, end+1) {
			return
		}
	}
}

// addBelow adds a change if the first end bytes of its URI are subscribed to.
func (l *listener) addBelow(c Change, end int) (covered bool) {
	form := Change{c.Method, c.URI[:end]}
	if covered = l.covered.has(form); covered {
		l.changes.Add(c)
	}
	for _, uri := range l.canonical[form.URI] {
		covered = true
		rest := c.URI[end:]
		if uritemplate.Normal(uri) != form.URI {
			rest = "" // below a directory that is encoded without need, the URI might not be found
		}
		l.changes.Add(Change{c.Method, uri + rest})
	}
	return covered
}

// covering returns the subscribed change that covers a pending one: c itself, or the change
// of a directory above it.
func (l *listener) covering(c Change) Change {
	if l.covered.has(c) {
		return c
	}
	for end, char := range c.URI {
		if directory := (Change{c.Method, c.URI[:end+1]}); char == '/' && l.covered.has(directory) {
			return directory
		}
	}
	return c
}

// drain removes and returns the pending changes.
func (l *listener) drain() changeSet {
	changes, all := l.changes.Drain()
	if all {
		return slices.Clone(l.covered)
	}
	return changes
}

// listenAgain calls listen, which serves one subscription, until ctx is done, the
// connection is closed, or the server does not support subscriptions. If a subscription
// ends in any other way, for example because the server was replaced, listenAgain starts
// another one after a pause. Changes in between are unknown: if again is true, anything
// may have changed before the acknowledgement.
func listenAgain(ctx context.Context, listen func(again bool) error) {
	_ = async.Renew(ctx, firstPause, maxPause, func(after time.Duration) bool {
		err := listen(after > 0)
		return CodeOf(err) != CodeMethodNotFound && !errors.Is(err, ErrClosed)
	})
}

// The minimum and maximum pause before a subscription is retried.
const (
	firstPause = time.Second
	maxPause   = time.Minute
)
