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
	return l.listen(ctx, out, func() {}, ready)
}

// listen calls attached when subscriptions from then on are in effect as soon as
// they are answered.
func (l *Legacy) listen(ctx context.Context, out Sender, attached, ready func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })()
	f := &feeding{ctx: ctx, out: out}
	f.mu.Lock() // whoever subscribes meanwhile waits for the first feed
	l.attach(f)
	defer l.detach(f)
	attached()
	f.current = l.feed(ctx, out)
	f.mu.Unlock()
	if ready != nil {
		ready()
	}
	if l.opts.KeepAlive > 0 {
		var pinging sync.WaitGroup
		pinging.Go(func() { l.keepAlive(ctx) })
		defer pinging.Wait()
		defer cancel(nil)
	}
	<-ctx.Done()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current.stop()
	return context.Cause(ctx)
}

// feeding is what one Listen does.
type feeding struct {
	ctx context.Context
	out Sender

	mu      sync.Mutex
	current *feed
}

func (l *Legacy) attach(f *feeding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.standalone, l.feeding = f.out, f
}

func (l *Legacy) detach(f *feeding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.feeding == f {
		l.standalone, l.feeding = nil, nil
	}
}

// refeed feeds what the session is subscribed to now. When it returns, the
// handler tells of it: an update that a client causes after it has subscribed is
// one that it hears of.
func (l *Legacy) refeed() {
	l.mu.Lock()
	f := l.feeding
	l.mu.Unlock()
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	next := l.feed(f.ctx, f.out)
	f.current.stop()
	f.current = next
}

// feed is one subscriptions/listen request to the handler.
type feed struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func (f *feed) stop() {
	f.cancel()
	<-f.done
}

// feed begins to listen and returns when the handler has acknowledged it, so that
// a feed before it can stop without a gap.
func (l *Legacy) feed(ctx context.Context, out Sender) *feed {
	ctx, cancel := context.WithCancel(ctx)
	f := &feed{cancel: cancel, done: make(chan struct{})}
	acknowledged := make(chan SubscriptionFilter, 1)
	req := l.listenRequest(l.filter())
	go func() {
		defer close(f.done)
		_, err := Serve(ctx, l.handler, req, &feedNotifier{out, acknowledged}, l.opts.Logger)
		if err != nil && ctx.Err() == nil && CodeOf(err) != CodeMethodNotFound {
			l.opts.Logger.WarnContext(ctx, "mcp: the server cannot tell of changes", "session", l.opts.ID, "error", err)
		}
	}()
	select {
	case <-acknowledged:
	case <-f.done:
	}
	return f
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

// feedNotifier sends what the era has no label for without one.
type feedNotifier struct {
	out          Sender
	acknowledged chan<- SubscriptionFilter
}

func (n *feedNotifier) Notify(ctx context.Context, method string, params json.RawMessage) error {
	switch method {
	case NotificationAcknowledged:
		var p AcknowledgedParams
		if err := unmarshal(params, &p); err != nil {
			return err
		}
		select {
		case n.acknowledged <- p.Notifications:
		default:
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
	return n.out.Send(ctx, AppendNotification(nil, method, params))
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
	acknowledged := make(chan SubscriptionFilter, 1)
	req := l.listenRequest(SubscriptionFilter{ResourceSubscriptions: []string{uri}})
	probe := probeNotifier{feedNotifier{acknowledged: acknowledged}, cancel}
	_, err := Serve(ctx, l.handler, req, &probe, l.opts.Logger)
	select {
	case f := <-acknowledged:
		return slices.Contains(f.ResourceSubscriptions, uri), nil
	default:
		return false, err
	}
}

// probeNotifier ends the subscription as soon as it is acknowledged.
type probeNotifier struct {
	feedNotifier
	cancel context.CancelFunc
}

func (n *probeNotifier) Notify(ctx context.Context, method string, params json.RawMessage) error {
	defer n.cancel()
	if method != NotificationAcknowledged {
		return ErrNotDelivered
	}
	return n.feedNotifier.Notify(ctx, method, params)
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
// counts, and without a stream to ask on nobody is taken for dead.
func (l *Legacy) keepAlive(ctx context.Context) {
	ticker := time.NewTicker(l.opts.KeepAlive)
	defer ticker.Stop()
	misses := 0
	for {
		select {
		case <-ctx.Done():
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
