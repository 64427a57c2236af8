// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// mountListeners subscribe to the mounts of a mux on behalf of one listener. Each mount
// has a goroutine, which adds the changes there to the listener. The methods are called
// by the goroutine of the subscription, which also receives from acks.
type mountListeners struct {
	registry *registry
	req      *Request
	filter   SubscriptionFilter // with the URIs of the mux
	listener *listener
	acks     chan mountAck
	cancels  map[*mount]context.CancelFunc // of those that are running
	running  sync.WaitGroup
}

// mountAck reports that a mount has acknowledged a subscription, or has ended it.
type mountAck struct {
	mount    *mount
	ended    bool
	accepted []string // URIs of the mount
}

func newMountListeners(g *registry, req *Request, f SubscriptionFilter, l *listener) *mountListeners {
	return &mountListeners{registry: g, req: req, filter: f, listener: l, acks: make(chan mountAck), cancels: map[*mount]context.CancelFunc{}}
}

// start subscribes to all mounts, and returns once all have acknowledged: no change from
// then on is missed. A mount that does not acknowledge in time does not hold up the
// others: [mountListeners.catchUp] counts everything in it as changed when it does.
// start returns the URIs of the filter without those that a mount has not accepted.
func (ls *mountListeners) start(ctx context.Context) []string {
	uris := ls.filter.ResourceSubscriptions
	ls.refresh(ctx)
	if len(ls.cancels) == 0 {
		return uris
	}
	waiting := map[*mount]bool{}
	for m := range ls.cancels {
		waiting[m] = true
	}
	ctx, cancel := context.WithTimeout(ctx, ls.registry.opts.patience())
	defer cancel()
	for len(waiting) > 0 {
		select {
		case ack := <-ls.acks:
			if !waiting[ack.mount] {
				ls.catchUp(ack)
				continue
			}
			delete(waiting, ack.mount)
			uris = slices.DeleteFunc(slices.Clone(uris), func(uri string) bool { return ack.mount.holds(uri) && !ack.accepts(uri) })
		case <-ctx.Done():
			return uris
		}
	}
	return uris
}

// holds reports whether a URI belongs to the mount.
func (mt *mount) holds(uri string) bool {
	_, ok := mt.innerName("resource", uri)
	return ok
}

// accepts reports whether the mount has accepted a subscription to a URI of the mux.
func (ack *mountAck) accepts(uri string) bool {
	inner, ok := ack.mount.innerName("resource", uri)
	return ok && slices.Contains(ack.accepted, inner)
}

// catchUp counts everything that a mount has acknowledged as changed: anything may have
// changed before. URIs that the mount did not accept are left out, because the client
// was told that it is not subscribed to them.
func (ls *mountListeners) catchUp(ack mountAck) {
	if ack.ended {
		return
	}
	ls.listener.addKinds(listsChanged)
	for uri := range ls.listener.uris {
		if ack.accepts(uri) {
			ls.listener.addUpdate(uri)
		}
	}
}

// refresh subscribes to new mounts and ends the subscriptions to removed ones.
func (ls *mountListeners) refresh(ctx context.Context) {
	mounts := ls.registry.load().mounts
	for m, cancel := range ls.cancels {
		if !slices.Contains(mounts, m) {
			cancel()
			delete(ls.cancels, m)
		}
	}
	for _, m := range mounts {
		if ls.cancels[m] == nil {
			inner, cancel := context.WithCancel(ctx)
			ls.cancels[m] = cancel
			ls.running.Go(func() { ls.listen(inner, m) })
		}
	}
}

// stop ends the subscriptions. It waits for the mounts, but not long: the goroutine of a
// mount that does not respond ends by itself.
func (ls *mountListeners) stop() {
	if len(ls.cancels) == 0 {
		return
	}
	for _, cancel := range ls.cancels {
		cancel()
	}
	ended := make(chan struct{})
	go func() {
		ls.running.Wait()
		close(ended)
	}()
	timer := time.NewTimer(ls.registry.opts.patience())
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// listen subscribes to a mount, again and again, until ctx is done.
func (ls *mountListeners) listen(ctx context.Context, m *mount) {
	n := &mountNotifier{ls, m, ctx.Done()}
	filter := ls.filter
	filter.ResourceSubscriptions = nil
	for _, uri := range ls.filter.ResourceSubscriptions {
		if inner, ok := m.innerName("resource", uri); ok {
			filter.ResourceSubscriptions = append(filter.ResourceSubscriptions, inner)
		}
	}
	params := mustMarshal(&ListenParams{Notifications: filter})
	listenAgain(ctx, func(bool) error {
		req := ls.req.derive(MethodListen, params)
		req.ID = ls.req.ID
		_, err := Serve(contextWithRequest(ctx, req), m.serve, req, n, ls.registry.opts.Logger)
		n.report(mountAck{mount: m, ended: true})
		return err
	})
}

// mountNotifier receives the notifications of a mount.
type mountNotifier struct {
	listeners *mountListeners
	mount     *mount
	done      <-chan struct{} // closed when the subscription to the mount is to end
}

// Notify implements [Notifier].
func (n *mountNotifier) Notify(_ context.Context, method string, params json.RawMessage) error {
	if method == NotificationAcknowledged {
		var p AcknowledgedParams
		if err := unmarshal(params, &p); err != nil {
			return err
		}
		n.report(mountAck{mount: n.mount, accepted: p.Notifications.ResourceSubscriptions})
		return nil
	}
	c, ok, err := parseChange(method, params)
	switch l := n.listeners.listener; {
	case err != nil || !ok:
		return err
	case c.Method == NotificationResourceUpdated:
		l.addUpdate(n.mount.uriPrefix + c.URI)
	default:
		l.addKinds(listsNotifiedBy(c.Method))
	}
	return nil
}

// report sends an acknowledgement to the goroutine of the subscription.
func (n *mountNotifier) report(ack mountAck) {
	select {
	case n.listeners.acks <- ack:
	case <-n.done:
	}
}
