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
)

// Listen sends to out what belongs to no request: changes of lists, updates of
// the resources that the session subscribed to, pings. It listens to the handler
// as a client of the modern era does, until ctx or the session ends, and returns
// why. It calls ready, unless that is nil, when no change from then on is missed.
//
// While a second Listen takes the place of a first, both may run, and both tell of
// what changes meanwhile; [Session.Notify] uses the out of the last one begun.
func (l *Legacy) Listen(ctx context.Context, out Sender, ready func()) error {
	f := &feeding{ctx: ctx, out: out, ready: ready}
	f.mu.Lock() // whoever subscribes meanwhile waits for the first feed
	l.attach(f)
	defer l.detach(f)
	first := l.newFeed(f, f.begun) // runs here: there may be thousands of frames like this one
	f.current = first
	if l.opts.KeepAlive > 0 {
		defer l.keepAlive(ctx)()
	}
	first.run()
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

// feeding is what one Listen does: it has one feed after the other.
type feeding struct {
	ctx   context.Context // of Listen
	out   Sender
	ready func() // may be nil

	mu      sync.Mutex
	current *feed
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

// acknowledged notes of which changes the handler tells.
func (l *Legacy) acknowledged(params json.RawMessage) {
	var p AcknowledgedParams
	if unmarshal(params, &p) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = p.Notifications.changes()
}

// begun is called, with the lock, when the first feed tells of changes.
func (f *feeding) begun() {
	f.mu.Unlock()
	if f.ready != nil {
		f.ready()
	}
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
// gap.
func (l *Legacy) refeed() {
	l.mu.Lock()
	f := l.feeding
	l.mu.Unlock()
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx.Err() != nil || l.over() {
		return // nothing may be sent to the out of a Listen that has returned
	}
	begun := make(chan struct{})
	next := l.newFeed(f, func() { close(begun) })
	go next.run()
	<-begun
	f.current.stop()
	f.current = next
}

// feed is one subscriptions/listen request to the handler.
type feed struct {
	of     *Legacy
	ctx    context.Context // of the request
	cancel context.CancelCauseFunc
	req    *Request
	out    Sender
	once   sync.Once
	begun  func() // called once, when the handler has acknowledged, or has refused
	again  bool   // something may have changed before the handler acknowledges
	done   chan struct{}
}

// newFeed makes a feed, which ends with the session.
func (l *Legacy) newFeed(of *feeding, begun func()) *feed {
	f := &feed{of: l, req: l.listenRequest(l.filter()), out: of.out, begun: begun, done: make(chan struct{})}
	f.ctx, f.cancel = context.WithCancelCause(of.ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.feeds = append(l.feeds, f)
	if l.ended {
		f.cancel(ErrClosed)
	}
	return f
}

// run listens until the feed is stopped.
func (f *feed) run() {
	defer f.end()
	listenAgain(f.ctx, f.listen)
}

func (f *feed) listen(again bool) error {
	l := f.of
	f.again = again
	_, err := Serve(f.ctx, l.handler, f.req, f, l.opts.Logger)
	f.once.Do(f.begun)
	if err != nil && f.ctx.Err() == nil && !again && CodeOf(err) != CodeMethodNotFound {
		l.cannotTell(err)
	}
	return err
}

func (l *Legacy) cannotTell(err error) {
	l.opts.Logger.Warn("mcp: the server cannot tell of changes", "session", l.opts.ID, "error", err)
}

func (f *feed) end() {
	l := f.of
	f.once.Do(f.begun)
	f.cancel(nil)
	close(f.done)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.feeds = slices.DeleteFunc(l.feeds, func(other *feed) bool { return other == f })
}

// stop ends a feed and waits for its end.
func (f *feed) stop() {
	f.cancel(nil)
	<-f.done
}

// Notify implements [Notifier]: it sends what the era has no label for without one.
func (f *feed) Notify(ctx context.Context, method string, params json.RawMessage) error {
	switch method {
	case NotificationAcknowledged:
		f.of.acknowledged(params)
		f.once.Do(f.begun)
		if f.again {
			f.of.Missed(ctx)
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
	return f.out.Send(ctx, AppendNotification(nil, method, params))
}

func (l *Legacy) filter() SubscriptionFilter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return SubscriptionFilter{
		ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true,
		ResourceSubscriptions: slices.Sorted(maps.Keys(l.subscriptions)),
	}
}

func (l *Legacy) listenRequest(f SubscriptionFilter) *Request {
	req, err := NewRequest(MethodListen, &ListenParams{Notifications: f})
	if err != nil {
		panic("mcp: " + err.Error())
	}
	req.ID, req.Principal = StringID("psi-listen"), l.opts.Principal
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fillIn(req)
	return req
}

// subscribe enters the URI, if the handler would tell of its updates.
func (l *Legacy) subscribe(ctx context.Context, req *Request) (Result, error) {
	uri := req.Name()
	if req.params.nameTo == 0 {
		return nil, Errorf(CodeInvalidParams, "params.uri is missing")
	}
	ok, err := l.honours(ctx, uri)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ResourceNotFound(uri)
	}
	if err := l.remember(uri); err != nil {
		return nil, err
	}
	l.refeed()
	return &EmptyResult{}, nil
}

func (l *Legacy) remember(uri string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.subscriptions == nil {
		l.subscriptions = map[string]struct{}{}
	}
	if _, known := l.subscriptions[uri]; !known && len(l.subscriptions) >= maxSubscriptions {
		return Errorf(CodeInvalidParams, "the session has %d subscriptions, which is the limit", maxSubscriptions)
	}
	l.subscriptions[uri] = struct{}{}
	return nil
}

// maxSubscriptions bounds what a session can make the server remember.
const maxSubscriptions = 10_000

// honours asks the handler whether it would acknowledge a subscription.
func (l *Legacy) honours(ctx context.Context, uri string) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req := l.listenRequest(SubscriptionFilter{ResourceSubscriptions: []string{uri}})
	probe := &probe{acknowledged: make(chan SubscriptionFilter, 1), cancel: cancel}
	_, err := Serve(ctx, l.handler, req, probe, l.opts.Logger)
	select {
	case f := <-probe.acknowledged:
		return slices.Contains(f.ResourceSubscriptions, uri), nil
	default:
		return false, err
	}
}

// probe ends a subscription as soon as it is acknowledged.
type probe struct {
	acknowledged chan SubscriptionFilter
	cancel       context.CancelFunc
}

// Notify implements [Notifier].
func (p *probe) Notify(_ context.Context, method string, params json.RawMessage) error {
	defer p.cancel()
	if method != NotificationAcknowledged {
		return ErrNotDelivered
	}
	var ack AcknowledgedParams
	if err := unmarshal(params, &ack); err != nil {
		return err
	}
	select {
	case p.acknowledged <- ack.Notifications:
	default:
	}
	return nil
}

func (l *Legacy) unsubscribe(req *Request) (Result, error) {
	if req.params.nameTo == 0 {
		return nil, Errorf(CodeInvalidParams, "params.uri is missing")
	}
	l.mu.Lock()
	delete(l.subscriptions, req.Name())
	l.mu.Unlock()
	l.refeed()
	return &EmptyResult{}, nil
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
			l.opts.Logger.WarnContext(ctx, "mcp: the client does not answer; closing its session", "session", l.opts.ID, "pings", misses)
			l.Close()
			return
		}
	}
}
