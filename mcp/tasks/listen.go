// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp"
)

// maxWatched bounds the number of tasks in one subscription.
const maxWatched = 1000

// A watcher collects the IDs of the changed tasks of one subscription.
type watcher = async.Set[string]

func newWatcher() *watcher {
	return async.NewSet(maxWatched, math.MaxInt, strings.Compare, func(string) int { return 0 })
}

// listen serves subscriptions/listen with taskIds: in addition to the notifications of the
// server, the subscription receives the tasks.
func (m *Manager) listen(ctx context.Context, next mcp.Handler, req *mcp.Request) (mcp.Result, error) {
	var p mcp.ListenParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	raw, wanted := p.Notifications.Extra[tasking.TaskIDs]
	if !wanted {
		return next.ServeMCP(ctx, req)
	}
	if !supports(req) {
		return nil, errUnsupported()
	}
	var ids []string
	if err := strictjson.Unmarshal(raw, &ids); err != nil {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "params.notifications.taskIds must be a list of strings")
	}
	if len(ids) > maxWatched {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "params.notifications.taskIds has %d IDs; the limit is %d", len(ids), maxWatched)
	}
	w := newWatcher()
	own, err := m.watch(ctx, req, w, ids)
	if err != nil {
		return nil, clientError(err)
	}
	defer m.unwatch(w, own)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var pushing sync.WaitGroup
	defer pushing.Wait()
	defer cancel()
	sender := &taskSender{req: req, ids: own, acknowledged: sync.OnceFunc(func() {
		w.Add(own...)
		pushing.Go(func() { m.push(ctx, req, w, own) })
	})}
	inner := core.Detach(req)
	return core.Serve(core.ContextWithRequest(ctx, inner), next, inner, sender, m.opts.Logger)
}

// watch registers a watcher for the tasks that the caller may use, and returns their IDs.
func (m *Manager) watch(ctx context.Context, req *mcp.Request, w *watcher, ids []string) (own []string, err error) {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		switch _, err := m.loadFor(ctx, req.Principal, id); {
		case err == nil:
			own = append(own, id)
		case !isRefused(err):
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range own {
		if m.watchers[id] == nil {
			m.watchers[id] = map[*watcher]struct{}{}
		}
		m.watchers[id][w] = struct{}{}
	}
	return own, nil
}

func (m *Manager) unwatch(w *watcher, ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		delete(m.watchers[id], w)
		if len(m.watchers[id]) == 0 {
			delete(m.watchers, id)
		}
	}
}

// push sends tasks that have changed. Hints can be lost, so all tasks are also checked
// periodically.
func (m *Manager) push(ctx context.Context, req *mcp.Request, w *watcher, ids []string) {
	ticker := time.NewTicker(m.opts.Lease)
	defer ticker.Stop()
	sent := map[string]time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.Add(ids...)
		case <-w.Wake():
		}
		changed, _ := w.Drain() // there is room for all tasks of the subscription
		for _, id := range changed {
			m.pushTask(ctx, req, id, sent)
		}
	}
}

func (m *Manager) pushTask(ctx context.Context, req *mcp.Request, id string, sent map[string]time.Time) {
	rec, err := m.loadFor(ctx, req.Principal, id)
	if err != nil || rec.Task.LastUpdatedAt.Equal(sent[id]) {
		return
	}
	d, err := m.detailed(ctx, rec)
	if err != nil {
		return
	}
	params := &NotificationParams{DetailedTask: d}
	params.Meta.Set(mcp.MetaSubscriptionID, req.ID)
	if req.Notify(ctx, NotificationTask, params) == nil {
		sent[id] = rec.Task.LastUpdatedAt
	}
}

// A taskSender forwards the notifications of a subscription. It adds the task IDs to the
// acknowledgement.
type taskSender struct {
	req          *mcp.Request
	ids          []string
	acknowledged func()
}

// Notify implements the notifier of a request.
func (s *taskSender) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if method != mcp.NotificationAcknowledged {
		return s.req.Notify(ctx, method, params)
	}
	defer s.acknowledged()
	filter := jsonscan.Member(params, "notifications")
	if len(s.ids) > 0 {
		ids := s.ids
		var mounted []string // of mounted servers
		if strictjson.Unmarshal(jsonscan.Member(filter, tasking.TaskIDs), &mounted) == nil {
			ids = slices.Concat(ids, mounted)
		}
		with := append(jsonscan.AppendKey([]byte{'{'}, tasking.TaskIDs), strictjson.MustMarshal(ids)...)
		filter = jsonscan.AppendMembers(with, filter, tasking.TaskIDs)
	}
	with := append(jsonscan.AppendKey([]byte{'{'}, "notifications"), filter...)
	return s.req.Notify(ctx, method, json.RawMessage(jsonscan.AppendMembers(with, params, "notifications")))
}
