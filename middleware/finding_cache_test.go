// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// toolsOf requests the list of tools and returns the name of the first.
func toolsOf(t *testing.T, h mcp.Handler) string {
	t.Helper()
	res, err := h.ServeMCP(t.Context(), outgoing(t, mcp.MethodListTools, nil))
	list, ok := res.(*mcp.ListToolsResult)
	if err != nil || !ok || len(list.Tools) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	return list.Tools[0].Name
}

// lists is a server with one tool.
func lists(name func() string) mcp.Handler {
	return mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: name()}}, Cacheable: mcp.CacheFor(time.Hour, mcp.CachePublic)}, nil
	})
}

// A Cache on two connections does not mix up their servers. A change drops the results of
// both.
func TestFindingS19CacheOfTwoConnections(t *testing.T) {
	cache, change := middleware.NewCache(nil), ""
	git := cache.Middleware(lists(func() string { return "git" + change }))
	bank := cache.Middleware(lists(func() string { return "bank" + change }))
	for range 2 {
		for want, h := range map[string]mcp.Handler{"git": git, "bank": bank} {
			if got := toolsOf(t, h); got != want {
				t.Errorf("the tool %q, want %q", got, want)
			}
		}
	}
	change = "2"
	if got := toolsOf(t, git); got != "git" {
		t.Errorf("%q is not from the cache", got)
	}
	cache.Changed(mcp.Change{Method: mcp.NotificationToolsListChanged})
	for want, h := range map[string]mcp.Handler{"git2": git, "bank2": bank} {
		if got := toolsOf(t, h); got != want {
			t.Errorf("after a change: the tool %q, want %q", got, want)
		}
	}
}

// The result of a request in flight when the list changes is not kept: it may be old.
func TestFindingCM5CacheOfAnswersUnderWay(t *testing.T) {
	for name, test := range map[string]struct {
		change mcp.Change
		want   string // result of the next request
	}{
		"the list changed":   {mcp.Change{Method: mcp.NotificationToolsListChanged}, "new"},
		"something else did": {mcp.Change{Method: mcp.NotificationPromptsListChanged}, "old"},
		"a resource did":     {mcp.Change{Method: mcp.NotificationResourceUpdated, URI: "a:"}, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			cache, tool := middleware.NewCache(nil), "old"
			h := cache.Middleware(lists(func() string {
				answer := tool
				if tool = "new"; answer == "old" {
					cache.Changed(test.change) // before the response has arrived
				}
				return answer
			}))
			if got := toolsOf(t, h); got != "old" {
				t.Errorf("first %q", got)
			}
			if got := toolsOf(t, h); got != test.want {
				t.Errorf("then %q, want %q", got, test.want)
			}
		})
	}
}

// The same for a resource, and for several requests of one caller at once.
func TestFindingCM5CacheOfResources(t *testing.T) {
	cache, n := middleware.NewCache(nil), 0
	h := cache.Middleware(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		if n++; n == 1 {
			cache.Changed(mcp.Change{Method: mcp.NotificationResourceUpdated, URI: "a:"})
		}
		return &mcp.ReadResourceResult{Cacheable: mcp.CacheFor(time.Hour, mcp.CachePrivate)}, nil
	}))
	for want := range 3 {
		do(t, h, mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "a:"}))
		if want = min(want+1, 2); n != want {
			t.Errorf("the server was asked %d times, want %d", n, want)
		}
	}
}

// A request made after a change does not share the response to one made before it, and that
// response is not kept.
func TestFindingCM5CacheAroundSingleflight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan string)
		cache := middleware.NewCache(nil)
		h := mcp.Chain(lists(func() string { return <-answers }), cache.Middleware, middleware.Singleflight())
		got := make(chan string, 2)
		ask := func() {
			go func() { got <- toolsOf(t, h) }()
			synctest.Wait()
		}
		ask()
		cache.Changed(mcp.Change{Method: mcp.NotificationToolsListChanged})
		ask()
		for _, answer := range []string{"old", "new"} {
			select {
			case answers <- answer:
			case <-time.After(time.Minute):
				t.Fatal("the server was asked once only")
			}
			synctest.Wait()
		}
		both := []string{<-got, <-got}
		slices.Sort(both)
		if !slices.Equal(both, []string{"new", "old"}) {
			t.Errorf("answered %q", both)
		}
		ask()
		select {
		case name := <-got:
			t.Logf("kept is %q", name)
		default:
			t.Error("the answer to the second is not kept")
			answers <- "again"
		}
	})
}
