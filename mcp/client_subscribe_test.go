// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
)

// reluctant returns a server with the resources res://a and res://b. The first
// subscription to res://b is never answered.
func reluctant() *mcp.Mux {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("res://a", reads("a"))
	mux.Resource("res://b", reads("b"))
	waits := true
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			var p mcp.ListenParams
			if req.Method == mcp.MethodListen && req.Decode(&p) == nil && waits && slices.Contains(p.Notifications.ResourceSubscriptions, "res://b") {
				waits = false
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			return next.ServeMCP(ctx, req)
		})
	})
	return mux
}

// A subscription that is cancelled before it is acknowledged is undone.
func TestSubscribeGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s spy
		c := connectTo(t, s.on(memory(t, reluctant())), &mcp.ClientOptions{Version: "2025-11-25"})
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			_, err := c.Listen(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: []string{"res://a", "res://b"}}, func(mcp.Change) {})
			failed <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("Listen returned %v", err)
		}
		synctest.Wait()
		if n := len(s.sent("resources/unsubscribe")); n != 1 {
			t.Errorf("%d resources were unsubscribed from, want the one that had been subscribed to", n)
		}
	})
}

// A subscription to a resource receives updates even if an earlier one to the same resource
// is cancelled meanwhile.
func TestSubscribeAfterOneWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := reluctant()
		c := connect(t, mux, &mcp.ClientOptions{Version: "2025-11-25"})
		ctx, cancel := context.WithCancel(t.Context())
		go c.Subscribe(ctx, "res://b", func(string) {})
		synctest.Wait()
		heard, subscribed := make(chan string, 8), make(chan error, 1)
		go func() {
			_, err := c.Subscribe(t.Context(), "res://b", func(uri string) { heard <- uri })
			subscribed <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-subscribed; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		mux.ResourceUpdated("res://b")
		synctest.Wait()
		if len(heard) != 1 {
			t.Errorf("heard of %d updates", len(heard))
		}
	})
}

// A server that ends a subscription at once, without an error, has not agreed to it.
func TestSubscriptionWithoutAgreement(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == mcp.MethodListen {
			return &mcp.EmptyResult{}, nil
		}
		return mux.ServeMCP(ctx, req)
	})
	conn, err := mcp.NewClient("c", "v1", nil).Connect(t.Context(), mcp.InProcess(h))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s, err := conn.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {})
	if s != nil || err == nil || !strings.Contains(err.Error(), "before it agreed to it") {
		t.Errorf("got %v, %v", s, err)
	}
}

// A change that belongs to a subscription is delivered to that alone, in both eras. A legacy
// server announces changes whether or not there is a subscription: the others are
// notifications.
func TestChangesOfSubscriptionsAreNoNotifications(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mux := mcp.NewMux("m", "v1", quiet())
				mux.Tool("old", uncalled)
				mux.Resource("res://a", reads("a"))
				var notes, changes []string
				c := connect(t, mux, &mcp.ClientOptions{Version: version, Notification: func(_ context.Context, _ *mcp.Conn, note *mcp.Request) {
					notes = append(notes, note.Method)
				}})
				filter := mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"res://a"}}
				sub, err := c.Listen(t.Context(), filter, func(ch mcp.Change) { changes = append(changes, ch.Method+" "+ch.URI) })
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // a legacy server does not say when it has subscribed
				mux.Tool("new", uncalled)
				synctest.Wait()
				mux.ResourceUpdated("res://a")
				synctest.Wait()
				if want := []string{mcp.NotificationToolsListChanged + " ", mcp.NotificationResourceUpdated + " res://a"}; !slices.Equal(changes, want) {
					t.Errorf("the subscription was told %q, want %q", changes, want)
				}
				if len(notes) > 0 {
					t.Errorf("Notification was called for %q as well", notes)
				}
				sub.Close()
				synctest.Wait()
				mux.RemoveTool("new")
				<-time.After(time.Minute) // changes in quick succession are announced together
				synctest.Wait()
				var want []string
				if version != mcp.LatestVersion {
					want = []string{mcp.NotificationToolsListChanged}
				}
				if !slices.Equal(notes, want) || len(changes) != 2 {
					t.Errorf("after the subscription: notifications %q, want %q; changes %q", notes, want, changes)
				}
			})
		})
	}
}
