// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
	"github.com/go-psi/psi/middleware"
)

func TestListChanged(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", says(""))
	mux.Prompt("p", promptSays(""))
	mux.Resource("r:r", reads(""))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		everything := mcp.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true}
		s, changes := listen(t, c, everything)
		if !s.Accepted().ToolsListChanged || !s.Accepted().PromptsListChanged || !s.Accepted().ResourcesListChanged {
			t.Fatalf("accepted %+v", s.Accepted())
		}
		mux.Tool("new", says(""))
		next(t, changes, mcp.NotificationToolsListChanged)
		mux.RemoveTool("new")
		next(t, changes, mcp.NotificationToolsListChanged)
		mux.Prompt("new", promptSays(""))
		next(t, changes, mcp.NotificationPromptsListChanged)
		mux.RemovePrompt("new")
		mux.Resource("r:{new}", reads(""))
		next(t, changes, mcp.NotificationResourcesListChanged)
		mux.RemoveResource("r:{new}")
	})
}

func TestResourceUpdated(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("file:///etc/{name}", reads(""))
	mux.Resource("file:///etc/", reads(""))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		ctx, cancel := context.WithCancelCause(t.Context())
		changes := make(chan mcp.Change, 10)
		s, err := c.Listen(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: []string{"file:///etc/hosts", "file:///etc/", "other:x"}}, func(change mcp.Change) { changes <- change })
		if err != nil || !slices.Equal(s.Accepted().ResourceSubscriptions, []string{"file:///etc/hosts", "file:///etc/"}) {
			t.Fatalf("accepted %+v, %v", s, err)
		}
		for _, uri := range []string{"file:///etc/hosts", "file:///etc/fstab"} { // the second through its directory
			mux.ResourceUpdated("file:///usr")
			mux.ResourceUpdated(uri)
			if got := next(t, changes, mcp.NotificationResourceUpdated); got.URI != uri {
				t.Errorf("got %s, want %s", got.URI, uri)
			}
		}
		gone := errors.New("gone")
		cancel(gone)
		<-s.Done()
		if err := s.Err(); !errors.Is(err, gone) {
			t.Errorf("the subscription ended with %v", err)
		}
	})
}

// sink is a client that records notifications, or one that never reads them.
type sink struct {
	dead bool
	got  chan string
}

func (s *sink) Notify(ctx context.Context, method string, _ json.RawMessage) error {
	if s.dead && method != mcp.NotificationAcknowledged {
		<-ctx.Done()
		return ctx.Err()
	}
	s.got <- method
	return nil
}

// listenFor subscribes s to mux until the context is done.
func listenFor(ctx context.Context, mux *mcp.Mux, s *sink, f mcp.SubscriptionFilter) {
	req := mcptest.NewRequest(mcp.MethodListen, &mcp.ListenParams{Notifications: f})
	go core.Serve(ctx, mux, req, s, nil)
	<-s.got // acknowledged
}

// The debug page shows subscriptions, which then go on as before.
func TestSubscriptionsAreShown(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("r:r", reads(""))
	s := &sink{got: make(chan string, 1)}
	listenFor(t.Context(), mux, s, mcp.SubscriptionFilter{ResourceSubscriptions: []string{"r:r"}})
	for range 2 {
		if shown := core.Subscriptions(mux); len(shown) != 1 || shown[0].Covers != 1 || shown[0].Waiting != 0 {
			t.Errorf("shown are %+v", shown)
		}
		mux.ResourceUpdated("r:r")
		<-s.got
	}
}

// T52: a dead listener does not delay the others.
func TestDeadListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Resource("r:r", reads(""))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		sinks := make([]*sink, 100)
		for i := range sinks {
			sinks[i] = &sink{dead: i == 42, got: make(chan string, 100)}
			listenFor(ctx, mux, sinks[i], mcp.SubscriptionFilter{ResourceSubscriptions: []string{"r:r"}})
		}
		start := time.Now()
		for range 3 {
			mux.ResourceUpdated("r:r")
			synctest.Wait()
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("publishing took %v", took)
		}
		for i, s := range sinks {
			want := 3
			if s.dead {
				want = 0
			}
			if len(s.got) != want {
				t.Errorf("listener %d got %d updates", i, len(s.got))
			}
		}
	})
}

// T52: a burst of changes is announced immediately, and once more when it ends.
func TestBurstOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("first", says(""))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := &sink{got: make(chan string, 2000)}
		listenFor(ctx, mux, s, mcp.SubscriptionFilter{ToolsListChanged: true})
		for i := range 1000 {
			mux.Tool(fmt.Sprint(i), says(""))
		}
		synctest.Wait()
		if len(s.got) != 1 {
			t.Errorf("announced %d times at once", len(s.got))
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if len(s.got) != 2 {
			t.Errorf("announced %d times", len(s.got))
		}
	})
}

// When a server shuts down, it ends its subscriptions with a result.
func TestListenEndsWithTheServer(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", says(""))
	near, far := transport.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- mcpstdio.ServeStream(ctx, mux, far, nil) }()
	open := transport.FromStream(func(context.Context) (transport.Stream, error) { return near, nil })
	c := mcptest.Dial(t, open, &mcp.ClientOptions{Version: mcp.LatestVersion})
	s, _ := listen(t, c, mcp.SubscriptionFilter{ToolsListChanged: true})
	stop()
	<-s.Done()
	if err := s.Err(); err != nil {
		t.Errorf("the subscription ended with %v", err)
	}
	<-served
}

// A limited number of updates is queued for a listener that does not read. Beyond the
// limit, one update for the subscribed directory replaces those of the resources below it.
func TestSlowListenerGetsTheDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Resource("notes://{+path}", reads("note"))
		ctx, cancel := context.WithCancel(t.Context())
		blocked, told := make(chan struct{}), map[string]int{}
		listener := notifying(func(method string, params json.RawMessage) {
			if method == mcp.NotificationResourceUpdated {
				var p mcp.ResourceUpdatedParams
				_ = json.Unmarshal(params, &p)
				told[p.URI]++
			}
			<-blocked
		})
		req := mcptest.NewRequest(mcp.MethodListen, &mcp.ListenParams{Notifications: mcp.SubscriptionFilter{ResourceSubscriptions: []string{"notes://"}}})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = core.Serve(ctx, mux, req, listener, quiet().Logger)
		}()
		synctest.Wait()
		for i := range 5000 {
			mux.ResourceUpdated(fmt.Sprint("notes://", i))
		}
		close(blocked)
		synctest.Wait()
		cancel()
		<-done
		if len(told) > 1025 || told["notes://"] != 1 {
			t.Errorf("told of %d resources, and of the directory %d times", len(told), told["notes://"])
		}
	})
}

// A directory that replaces updates of several resources hidden from the listener is sent
// once.
func TestHiddenUpdatesAreSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Resource("notes://{+path}", reads("note"))
		for _, hidden := range []string{"notes://a/{+path}", "notes://z/{+path}"} {
			mux.With(middleware.RequireScopes("secret")).Resource(hidden, reads("secret"))
		}
		ctx, cancel := context.WithCancel(t.Context())
		blocked, told := make(chan struct{}), []string(nil)
		listener := notifying(func(_ string, params json.RawMessage) {
			var p mcp.ResourceUpdatedParams
			_ = json.Unmarshal(params, &p)
			told = append(told, p.URI)
			<-blocked
		})
		req := mcptest.NewRequest(mcp.MethodListen, &mcp.ListenParams{Notifications: mcp.SubscriptionFilter{ResourceSubscriptions: []string{"notes://"}}})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = core.Serve(ctx, mux, req, listener, quiet().Logger)
		}()
		synctest.Wait() // for the acknowledgement to block
		for _, uri := range []string{"notes://z/1", "notes://open", "notes://a/1", "notes://a/2"} {
			mux.ResourceUpdated(uri)
		}
		close(blocked)
		synctest.Wait()
		cancel()
		<-done
		if got := strings.Join(told, " "); got != " notes:// notes://open" {
			t.Errorf("told of %s", got)
		}
	})
}

type notifying func(method string, params json.RawMessage)

func (f notifying) Notify(_ context.Context, method string, params json.RawMessage) error {
	f(method, params)
	return nil
}

// A change made while the server ends a subscription is still delivered.
func TestChangeAtTheEndOfASubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("a", says("a"))
		ctx, cancel := context.WithCancelCause(t.Context())
		var told []string
		blocked := make(chan struct{})
		listener := notifying(func(method string, _ json.RawMessage) {
			told = append(told, method)
			<-blocked
		})
		req := mcptest.NewRequest(mcp.MethodListen, &mcp.ListenParams{Notifications: mcp.SubscriptionFilter{ToolsListChanged: true}})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = core.Serve(ctx, mux, req, listener, quiet().Logger)
		}()
		synctest.Wait() // for the acknowledgement to block
		mux.Tool("b", says("b"))
		cancel(mcp.ErrClosed)
		close(blocked)
		<-done
		if len(told) != 2 || told[1] != mcp.NotificationToolsListChanged {
			t.Errorf("told of %v", told)
		}
	})
}

// The changes that are pending when a server ends a subscription are sent before its result.
// The transports refuse to send with a context that is done.
func TestFindingKMutant61LastChangesAreSent(t *testing.T) {
	for range 20 { // the subscription sees the change and the end in any order
		synctest.Test(t, func(t *testing.T) {
			mux := mcp.NewMux("m", "v1", quiet())
			mux.Tool("a", says("a"))
			mux.Resource("res:a", reads("a"))
			ctx, cancel := context.WithCancelCause(t.Context())
			var told []string
			blocked := make(chan struct{})
			stream := obedient(func(method string) {
				told = append(told, method)
				<-blocked
			})
			filter := mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"res:a"}}
			req := mcptest.NewRequest(mcp.MethodListen, &mcp.ListenParams{Notifications: filter})
			done := make(chan error, 1)
			go func() {
				_, err := core.Serve(ctx, mux, req, stream, quiet().Logger)
				done <- err
			}()
			synctest.Wait() // for the acknowledgement to block
			mux.Tool("b", says("b"))
			mux.ResourceUpdated("res:a")
			cancel(mcp.ErrClosed)
			close(blocked)
			err := <-done
			want := []string{mcp.NotificationAcknowledged, mcp.NotificationToolsListChanged, mcp.NotificationResourceUpdated}
			if err != nil || !slices.Equal(told, want) {
				t.Errorf("sent %v and %v, want %v and a result", told, err, want)
			}
		})
	}
}

// obedient is a stream that sends nothing once the context is done.
type obedient func(method string)

func (f obedient) Notify(ctx context.Context, method string, _ json.RawMessage) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f(method)
	return nil
}
