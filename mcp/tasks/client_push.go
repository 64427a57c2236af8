// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

// maxListening bounds the tasks of one connection that a client listens to concurrently.
// Other tasks are polled. Each is a stream.
const maxListening = 16

// pushPoll is the minimum interval between polls of a task that the server pushes. A push is
// never guaranteed.
const pushPoll = 10 * time.Second

// A pushSource listens to the tasks of one connection.
type pushSource struct {
	next    mcp.Handler   // sends requests
	slots   chan struct{} // one for each subscription
	refused atomic.Bool   // the server does not push tasks
}

func newPushSource(next mcp.Handler) *pushSource {
	return &pushSource{next: next, slots: make(chan struct{}, maxListening)}
}

// listen subscribes to a task until ctx is done or the subscription is ended. It returns
// nil if there are too many subscriptions or the server does not push tasks.
func (p *pushSource) listen(ctx context.Context, id string, r *reader) *pushes {
	if p.refused.Load() {
		return nil
	}
	select {
	case p.slots <- struct{}{}:
	default:
		return nil
	}
	ctx, end := context.WithCancel(ctx)
	s := &pushes{id: id, reader: r, states: make(chan *DetailedTask, 1), ended: make(chan struct{}), end: end}
	s.declined = func() {
		p.refused.Store(true)
		end()
	}
	go func() {
		defer func() { <-p.slots }()
		defer end()
		defer close(s.ended)
		defer s.accepted.Store(false) // before ended is closed: await returns once for it
		filter := mcp.SubscriptionFilter{Extra: mcp.Extra{"taskIds": strictjson.MustMarshal([]string{id})}}
		req, err := mcp.NewRequest(mcp.MethodListen, &mcp.ListenParams{Notifications: filter})
		if err == nil {
			req.ID = mcp.StringID(id)
			_, err = core.Serve(ctx, p.next, req, s, slog.New(slog.DiscardHandler))
		}
		if ctx.Err() == nil && err != nil {
			p.refused.Store(true)
		}
	}()
	return s
}

// pushes receives the states of one task that a server pushes. A state that has not been
// received is replaced by the next one.
type pushes struct {
	id       string
	reader   *reader
	states   chan *DetailedTask
	accepted atomic.Bool   // the server pushes the task
	ended    chan struct{} // closed when the subscription has ended
	declined func()        // called if the server does not push the task
	end      func()        // ends the subscription
}

// Notify implements the notifier of a request.
func (s *pushes) Notify(_ context.Context, method string, params json.RawMessage) error {
	switch method {
	case mcp.NotificationAcknowledged:
		var p mcp.AcknowledgedParams
		var ids []string
		_ = strictjson.Unmarshal(params, &p)
		_ = strictjson.Unmarshal(p.Notifications.Extra["taskIds"], &ids)
		s.accepted.Store(slices.Contains(ids, s.id))
		if !s.accepted.Load() {
			s.declined()
		}
	case NotificationTask:
		t, err := s.reader.decode(params)
		if err != nil || t.ID != s.id {
			return nil //nolint:nilerr // polling finds out
		}
		select {
		case <-s.states:
		default:
		}
		s.states <- t // the only sender
	}
	return nil
}
