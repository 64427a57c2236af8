// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// mountListeners listen to the mounts of a mux on behalf of one listener.
type mountListeners struct {
	registry *registry
	req      *Request
	filter   *SubscriptionFilter
	listener *listener
	running  map[*mount]*mountListener
	done     sync.WaitGroup
}

// mountListener listens to one mount.
type mountListener struct {
	mount    *mount
	listener *listener
	cancel   context.CancelFunc
	late     atomic.Bool   // something may have changed before the mount agrees to tell
	settled  chan struct{} // closed when the mount has agreed or refused to tell
	settle   sync.Once
	accepted []string // the URIs, of the mount's own, that it tells of; not changed after settled is closed
}

// begin listens to all mounts, and returns when nothing that changes there from now
// on gets lost. A mount that does not agree in time does not hold up the others:
// when it agrees, everything of it counts as changed. It returns which of the URIs are
// told of, as far as the mounts have said.
func (ls *mountListeners) begin(ctx context.Context, uris []string) (accepted []string) {
	begun := ls.listen(ctx, false)
	ctx, cancel := context.WithTimeout(ctx, ls.registry.opts.patience())
	defer cancel()
	refused := map[string]bool{}
	for _, l := range begun {
		select {
		case <-l.settled:
			for _, uri := range uris {
				if inner, ok := l.mount.innerName("resource", uri); ok && !slices.Contains(l.accepted, inner) {
					refused[uri] = true
				}
			}
		case <-ctx.Done():
			l.late.Store(true)
		}
	}
	return slices.DeleteFunc(slices.Clone(uris), func(uri string) bool { return refused[uri] })
}

// refresh listens to new mounts, and no longer to old ones.
func (ls *mountListeners) refresh(ctx context.Context) { ls.listen(ctx, true) }

// listen returns the new ones.
func (ls *mountListeners) listen(ctx context.Context, late bool) []*mountListener {
	mounts := ls.registry.load().mounts
	for m, l := range ls.running {
		if !slices.Contains(mounts, m) {
			l.cancel()
			delete(ls.running, m)
		}
	}
	var begun []*mountListener
	for _, m := range mounts {
		if ls.running[m] != nil {
			continue
		}
		if ls.running == nil {
			ls.running = map[*mount]*mountListener{}
		}
		inner, cancel := context.WithCancel(ctx)
		l := &mountListener{mount: m, listener: ls.listener, cancel: cancel, settled: make(chan struct{})}
		l.late.Store(late)
		ls.running[m] = l
		begun = append(begun, l)
		ls.done.Go(func() { ls.forward(inner, l) })
	}
	return begun
}

// stop ends the listening. It waits for the mounts, but not for one that does not
// answer: its goroutine ends when it gives up to tell that server.
func (ls *mountListeners) stop() {
	for _, l := range ls.running {
		l.cancel()
	}
	ended := make(chan struct{})
	go func() {
		ls.done.Wait()
		close(ended)
	}()
	timer := time.NewTimer(ls.registry.opts.patience())
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// forward marks, on the listener, what a mount tells.
func (ls *mountListeners) forward(ctx context.Context, l *mountListener) {
	listenAgain(ctx, func(again bool) error {
		if again {
			l.late.Store(true)
		}
		err := ls.forwardOnce(ctx, l)
		l.settles(nil)
		return err
	})
}

// forwardOnce forwards until the mount ends it, and returns why.
func (ls *mountListeners) forwardOnce(ctx context.Context, l *mountListener) error {
	filter := *ls.filter
	filter.ResourceSubscriptions = nil
	for _, uri := range ls.filter.ResourceSubscriptions {
		if inner, ok := l.mount.innerName("resource", uri); ok {
			filter.ResourceSubscriptions = append(filter.ResourceSubscriptions, inner)
		}
	}
	req := ls.req.derive(MethodListen, mustMarshal(&ListenParams{Notifications: filter}))
	req.ID = ls.req.ID
	_, err := Serve(contextWithRequest(ctx, req), l.mount.serve, req, l, ls.registry.opts.Logger)
	return err
}

// settles notes the URIs that the mount has agreed to tell of, if it was not known yet.
func (l *mountListener) settles(accepted []string) {
	l.settle.Do(func() {
		l.accepted = accepted
		close(l.settled)
	})
}

// agreed notes that the mount tells of changes from now on. What it refuses to tell of
// does not count as changed: the caller was told that it is not subscribed to.
func (l *mountListener) agreed(accepted []string) {
	l.settles(accepted)
	if !l.late.Load() {
		return
	}
	l.listener.mark(toolsChanged | promptsChanged | resourcesChanged)
	for uri := range l.listener.uris {
		if inner, ok := l.mount.innerName("resource", uri); ok && slices.Contains(accepted, inner) {
			l.listener.markUpdated(uri)
		}
	}
}

// Notify implements [Notifier].
func (l *mountListener) Notify(_ context.Context, method string, params json.RawMessage) error {
	switch method {
	case NotificationAcknowledged:
		var p AcknowledgedParams
		if err := unmarshal(params, &p); err != nil {
			return err
		}
		l.agreed(p.Notifications.ResourceSubscriptions)
		return nil
	case NotificationResourceUpdated:
		var p ResourceUpdatedParams
		if err := unmarshal(params, &p); err != nil {
			return err
		}
		l.listener.markUpdated(l.mount.uriPrefix + p.URI)
		return nil
	}
	for _, c := range changeNotifications {
		if c.method == method {
			l.listener.mark(c.change)
		}
	}
	return nil
}
