// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun []string
		release := make(chan struct{})
		work := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			begun = append(begun, req.Name())
			<-release
			return mcp.TextResult(""), nil
		})
		mux := mcp.NewMux("m", "v1", quiet())
		bound := middleware.Concurrency(1, 2)
		for _, name := range []string{"a", "b", "c", "d"} { // one limit for all of them
			mux.With(bound).Tool(name, work)
		}
		errs := map[string]chan error{}
		serve := func(ctx context.Context, name string) {
			errs[name] = make(chan error, 1)
			go func() {
				_, err := mux.ServeMCP(ctx, call(name))
				errs[name] <- err
			}()
			synctest.Wait()
		}
		waits, cancel := context.WithCancelCause(t.Context())
		serve(t.Context(), "a")
		serve(waits, "b")
		mux.Tool("more", says("")) // rebuilds the chains
		serve(t.Context(), "c")
		serve(t.Context(), "d")
		if err := <-errs["d"]; !isRateLimited(err) {
			t.Errorf("beyond the queue: got %v", err)
		}
		cancel(errLost)
		if err := <-errs["b"]; !errors.Is(err, errLost) {
			t.Errorf("who is cancelled while waiting: got %v", err)
		}
		serve(t.Context(), "d") // there is room in the queue again
		for _, name := range []string{"a", "c", "d"} {
			release <- struct{}{}
			if err := <-errs[name]; err != nil {
				t.Errorf("%s: got %v", name, err)
			}
			synctest.Wait()
		}
		if !slices.Equal(begun, []string{"a", "c", "d"}) {
			t.Errorf("begun were %q", begun)
		}
	})
	mustPanic(t, "Concurrency(0, 0)", func() { middleware.Concurrency(0, 0) })
	mustPanic(t, "Concurrency(1, -1)", func() { middleware.Concurrency(1, -1) })
}

func isRateLimited(err error) bool {
	after, ok := mcp.RetryAfter(err)
	return ok && after > 0
}

// A panic, an error and a cancelled request each free their slot.
func TestConcurrencyGivesBack(t *testing.T) {
	for _, h := range []mcp.Handler{panicking("boom"), answering(nil, errLost), answering(nil, context.Canceled)} {
		bound := middleware.Concurrency(1, 0)
		for range 3 {
			_, _, _ = mcptest.Do(t, bound(h), call("t"))
		}
		_, _, err := mcptest.Do(t, bound(says("")), call("t"))
		wantCode(t, err, 0)
	}
}

// Notifications are not rejected, and subscriptions do not occupy a slot.
func TestConcurrencyLeavesAlone(t *testing.T) {
	bound := middleware.Concurrency(1, 0)
	full := bound(mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
		note, err := mcp.NewRequest(mcp.NotificationRootsListChanged, nil)
		if err != nil {
			return nil, err
		}
		for _, req := range []*mcp.Request{note, mcptest.NewRequest(mcp.MethodListen, nil)} {
			if _, err := bound(answering(&mcp.EmptyResult{}, nil)).ServeMCP(ctx, req); err != nil {
				return nil, err
			}
		}
		return bound(says("")).ServeMCP(ctx, call("t"))
	}))
	_, _, err := mcptest.Do(t, full, call("t"))
	wantCode(t, err, mcp.CodeRateLimited)
}

func ExampleConcurrency() {
	mux := mcp.NewMux("server", "v1.0.0", nil)
	// Two at once, ten waiting, for both tools together.
	mux.Group(func(g *mcp.Mux) {
		g.Use(middleware.Concurrency(2, 10))
		g.Tool("render", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "rendered", nil }, nil))
		g.Tool("encode", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "encoded", nil }, nil))
	})
	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(mcp.Call[string](ctx, conn, "render", struct{}{}))
	// Output: rendered <nil>
}
