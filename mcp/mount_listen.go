// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/internal/uritemplate"
)

// mountListeners subscribe to the mounts of a mux on behalf of one listener. Each mount has a
// goroutine that runs listen and adds the changes of the mount to the listener. All methods
// that listen does not call run on the goroutine of the subscription, which also receives
// from acks.
type mountListeners struct {
	registry *registry
	req      *Request
	filter   SubscriptionFilter // with the URIs of the mux
	listener *listener
	tasks    map[*mount]map[string]string // watched tasks: IDs in the mux by IDs in the mount
	accepted []string                     // IDs in the mux of the tasks that mounts accepted
	acks     chan mountAck
	cancels  map[*mount]context.CancelFunc // of the running goroutines
	running  sync.WaitGroup

	acknowledged chan struct{} // closed when the subscription has been acknowledged
}

// mountAck reports that a mount has acknowledged or ended a subscription.
type mountAck struct {
	mount    *mount
	ended    bool
	accepted map[string]struct{} // inner URIs of the accepted resources, in normal form
	tasks    []string            // inner IDs of the accepted tasks
}

func newMountListeners(g *registry, req *Request, f SubscriptionFilter, l *listener, tasks map[*mount]map[string]string) *mountListeners {
	return &mountListeners{
		registry: g, req: req, filter: f, listener: l, tasks: tasks,
		acks: make(chan mountAck), cancels: map[*mount]context.CancelFunc{}, acknowledged: make(chan struct{}),
	}
}

// start subscribes to all mounts and returns once all have acknowledged. No later change is
// missed. start does not wait for a mount that does not acknowledge in time: when it does,
// [mountListeners.catchUp] treats everything in the mount as changed. start returns the URIs
// of the filter except for those that a mount did not accept.
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
	ctx, cancel := context.WithTimeout(ctx, ls.registry.opts.shortTimeout())
	defer cancel()
	for len(waiting) > 0 {
		select {
		case ack := <-ls.acks:
			if !waiting[ack.mount] {
				ls.catchUp(ack)
				continue
			}
			delete(waiting, ack.mount)
			ls.acceptTasks(ack)
			uris = slices.DeleteFunc(slices.Clone(uris), func(uri string) bool { return ack.mount.holds(uri) && !ack.accepts(uri) })
		case <-ctx.Done():
			return uris
		}
	}
	return uris
}

// holds reports whether uri belongs to the mount.
func (mt *mount) holds(uri string) bool {
	_, ok := mt.innerURI(uri)
	return ok
}

// accepts reports whether the mount has accepted a subscription to an outer URI.
func (ack *mountAck) accepts(uri string) bool {
	inner, _ := ack.mount.innerURI(uritemplate.Normal(uri))
	_, ok := ack.accepted[inner]
	return ok
}

// catchUp treats everything that a mount has acknowledged as changed, because anything may
// have changed before. URIs that the mount did not accept are left out: the client is not
// subscribed to them.
func (ls *mountListeners) catchUp(ack mountAck) {
	if ack.ended {
		return
	}
	for _, c := range ls.listener.covered {
		if c.URI == "" || ack.accepts(c.URI) {
			ls.listener.changes.Add(c)
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

// stop ends the subscriptions. It waits for the goroutines for a limited time only: the
// goroutine of an unresponsive mount ends when the mount returns.
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
	select {
	case <-ended:
	case <-time.After(ls.registry.opts.shortTimeout()):
	}
}

// listen subscribes to a mount, and again if the subscription ends, until ctx is done or the
// mount has no changes to announce.
func (ls *mountListeners) listen(ctx context.Context, m *mount) {
	report := func(ack mountAck) {
		select {
		case ls.acks <- ack:
		case <-ctx.Done():
		}
	}
	notifier := &changeNotifier{
		acknowledged: func(_ context.Context, f SubscriptionFilter) {
			accepted := map[string]struct{}{}
			for _, uri := range f.ResourceSubscriptions {
				accepted[uritemplate.Normal(uri)] = struct{}{}
			}
			report(mountAck{mount: m, accepted: accepted, tasks: taskIDsIn(&f)})
		},
		other: func(ctx context.Context, method string, params json.RawMessage) error {
			return ls.passTask(ctx, m, method, params)
		},
		changed: func(_ context.Context, c Change) error {
			if c.Method == NotificationResourceUpdated {
				c.URI = uritemplate.Normal(m.outerURI(c.URI))
			}
			ls.listener.add(c)
			return nil
		},
	}
	params := mustMarshal(&ListenParams{Notifications: ls.filterFor(m)})
	listenAgain(ctx, func(bool) error {
		req := ls.req.derive(MethodListen, params)
		req.ID = ls.req.ID
		req.mounts += string(m.prefix) + "/"
		_, err := serve(ctx, m.serve, req, notifier, ls.registry.opts.Logger)
		report(mountAck{mount: m, ended: true})
		return err
	})
}

// filterFor returns the filter for a mount, with the inner URIs and task IDs of the mount.
func (ls *mountListeners) filterFor(m *mount) SubscriptionFilter {
	f := ls.filter
	f.ResourceSubscriptions = nil
	for _, uri := range ls.filter.ResourceSubscriptions {
		if inner, _ := m.innerURI(uri); inner != "" {
			f.ResourceSubscriptions = append(f.ResourceSubscriptions, inner)
		}
	}
	if tasks := ls.tasks[m]; len(tasks) > 0 {
		f.Extra = Extra{tasking.TaskIDs: mustMarshal(sortedKeys(tasks))}
	}
	return f
}
