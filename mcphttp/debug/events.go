// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"context"
	"net/http"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/go-psi/psi/mcp"
)

// The events of the stream. They only report that something has changed; the script of the page
// then reloads its content.
const (
	eventActivity = "activity" // requests, sessions, streams
	eventLists    = "lists"    // what is registered
	eventRuns     = "runs"     // calls made from the page
)

const (
	activityInterval = time.Second // minimum interval between activity events
	// heartbeat updates ages and plots, and keeps proxies from closing the stream.
	heartbeat    = 5 * time.Second  // maximum interval between events
	writeTimeout = 10 * time.Second // for one event; slower browsers are disconnected
	retryDelay   = time.Second      // before a browser reconnects
	maxWatchers  = 32               // pages that are updated live; each keeps a connection and a goroutine
)

// serveEvents sends events to a page until it is closed. Events say only that something
// changed: the script then fetches the page again, so that all HTML is generated in one way,
// with everything escaped.
func (p *page) serveEvents(w http.ResponseWriter, r *http.Request, caller *mcp.Principal) {
	watcher, ok := p.attention.watch()
	if !ok {
		p.fail(w, r, failure{http.StatusServiceUnavailable, "too many pages are open"})
		return
	}
	defer p.attention.removeWatcher(watcher)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer p.followLists(ctx, caller)()
	shutdown := p.servers.channelFor(r) // before the client knows that the stream is open
	s := &eventStream{w: w, control: http.NewResponseController(w)}
	_ = s.control.SetReadDeadline(time.Time{}) // the deadline of http.Server is for requests, and would end the stream
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	s.send(&sse.Message{Type: sse.Type("open"), Retry: retryDelay})
	s.watch(ctx, p, watcher, shutdown)
}

// An eventStream is the response to a watcher.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	last    time.Time
	err     error // from the first write that failed
}

// watch sends events until one cannot be sent, or ctx or the server ends.
func (s *eventStream) watch(ctx context.Context, p *page, w *watcher, shutdown <-chan struct{}) {
	ticker := time.NewTicker(activityInterval)
	defer ticker.Stop()
	for seen := uint64(0); s.err == nil; {
		select {
		case <-ctx.Done():
			return
		case <-shutdown:
			return
		case <-w.Wake():
			events, _ := w.Drain()
			for _, event := range events {
				s.send(&sse.Message{Type: sse.Type(event)})
			}
		case <-ticker.C:
			if now := p.recorder.changes(); now != seen || time.Since(s.last) >= heartbeat {
				seen = now
				s.send(&sse.Message{Type: sse.Type(eventActivity)})
			}
		}
	}
}

// send sends an event. Browsers ignore one without data.
func (s *eventStream) send(m *sse.Message) {
	m.AppendData("{}")
	s.last = time.Now()
	_ = s.control.SetWriteDeadline(s.last.Add(writeTimeout)) // not all writers support deadlines
	if _, s.err = m.WriteTo(s.w); s.err == nil {
		s.err = s.control.Flush()
	}
}

// followLists announces changes of the lists until stop is called.
func (p *page) followLists(ctx context.Context, caller *mcp.Principal) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := p.connect(ctx, caller, true, nil)
		if err != nil {
			return // the page itself shows the error
		}
		defer conn.Close()
		filter := mcp.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true}
		s, err := conn.Listen(ctx, filter, func(mcp.Change) { p.attention.announce(eventLists) })
		if err != nil {
			return // the server announces no changes
		}
		defer s.Close()
		<-ctx.Done()
	}()
	return func() { cancel(); <-ended }
}
