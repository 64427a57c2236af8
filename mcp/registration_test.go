// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// Update replaces a handler in one step: there is no moment at which it is unknown.
func TestFindingU18ReplaceInOneStep(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", says("0"))
	mux.Resource("r:{id}", reads("0"))
	c := mcptest.Connect(t, mux)
	stop := make(chan struct{})
	var replacing sync.WaitGroup
	replacing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			err := mux.Update(func(m *mcp.Mux) {
				m.RemoveTool("t")
				m.RemoveResource("r:{id}")
				m.Tool("t", says("1"))
				m.Resource("r:{id}", reads("1"))
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	defer replacing.Wait()
	defer close(stop)
	for range 500 {
		mustCall(t, c, "t", "")
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "r:1"}); err != nil {
			t.Fatal(err)
		}
	}
}

// What users of a program write is registered without a panic, and all or nothing of it.
func TestFindingU18ErrorsInsteadOfPanics(t *testing.T) {
	anything := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return mcp.TextResult("ok"), nil })
	run := func(context.Context, map[string]any) (string, error) { return "ok", nil }
	child := mcp.NewMux("child", "v1", quiet())
	child.Tool("own", says(""))
	for name, test := range map[string]struct {
		fn   func(m *mcp.Mux)
		want string
	}{
		"the same name": {func(m *mcp.Mux) { m.Tool("a", says("")) }, `tool "a" registered at registration_test.go:`},
		"no name":       {func(m *mcp.Mux) { m.Prompt("", promptSays("")) }, "the name is empty"},
		"no handler":    {func(m *mcp.Mux) { m.Tool("b", nil) }, "the handler is nil"},
		"a bad schema": {func(m *mcp.Mux) {
			m.Tool("b", mcp.Describe(anything, &mcp.Tool{InputSchema: []byte(`{"type":"objekt"}`)}))
		}, "InputSchema"},
		"typed, too":     {func(m *mcp.Mux) { m.Tool("b", mcp.ToolFunc(run, &mcp.Tool{InputSchema: []byte(`{"type":[]}`)})) }, "ToolFunc at registration_test.go:"},
		"a bad template": {func(m *mcp.Mux) { m.Resource("r:{", reads("")) }, `resource template "r:{"`},
		"two templates":  {func(m *mcp.Mux) { m.Resource("r:{x}", reads("")); m.Resource("r:{y}", reads("")) }, "neither is more specific"},
		"two mounts":     {func(m *mcp.Mux) { m.Mount("x_", says("")); m.Mount("x_", says("")) }, "something is mounted there"},
		"a name above":   {func(m *mcp.Mux) { m.Tool("c_own", says("")); m.Mount("c_", child) }, `"c_own" by the mount`},
		"a method":       {func(m *mcp.Mux) { m.Handle("tools/call", says("")) }, "it is served by the mux itself"},
		"in a group":     {func(m *mcp.Mux) { m.Group(func(g *mcp.Mux) { g.With().Tool("a", says("")) }) }, "is registered at"},
		"in an update":   {func(m *mcp.Mux) { must(m.Update(func(m *mcp.Mux) { m.Tool("a", says("")) })) }, "is registered at"},
	} {
		t.Run(name, func(t *testing.T) {
			mux := mcp.NewMux("m", "v1", quiet())
			mux.Tool("a", says("a"))
			mux.Prompt("p", promptSays(""))
			mux.Resource("q:{x}", reads(""))
			mux.Mount("old_", says(""))
			before := namesIn(t, mux)
			err := mux.Update(func(m *mcp.Mux) {
				m.Tool("new", says(""))
				m.Resource("n:{x}", reads(""))
				m.Mount("new_", says(""))
				m.RemovePrompt("p")
				m.RemoveResource("q:{x}")
				m.Unmount("old_")
				test.fn(m)
			})
			if err == nil || !strings.HasPrefix(err.Error(), "mcp: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error that says %q", err, test.want)
			}
			if after := namesIn(t, mux); !slices.Equal(before, after) {
				t.Errorf("registered are %q, and were %q", after, before)
			}
			mux.Mount("new_", child) // nothing of what failed is left
			child.Tool("later", says(""))
			mux.Unmount("new_")
			child.RemoveTool("later")
		})
	}
}

// must is for errors that a test does not expect.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// namesIn returns what is registered in a mux.
func namesIn(t *testing.T, mux *mcp.Mux) []string {
	t.Helper()
	var names []string
	if err := mux.Walk(func(method, name string, _ mcp.Handler) error {
		names = append(names, method+" "+name)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return names
}

// Update is applied when its function returns. Middleware of the view is kept, mounted
// muxes are checked, and panics that are not about registrations go on.
func TestUpdate(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	var escaped *mcp.Mux
	err := mux.With(middleware.RequireScopes("x")).Update(func(m *mcp.Mux) {
		escaped = m
		m.Tool("protected", says(""))
		if names := namesIn(t, mux); len(names) > 0 {
			t.Errorf("%q can be seen already", names)
		}
		must(m.Update(func(m *mcp.Mux) { m.Tool("nested", says("")) }))
	})
	if names := namesIn(t, mux); err != nil || len(names) != 2 {
		t.Fatalf("registered %q, %v", names, err)
	}
	for _, name := range []string{"protected", "nested"} {
		_, err = callTool(t, mux, name, "")
		wantCode(t, err, mcp.CodeInsufficientScope)
	}
	wantPanic(t, func() { escaped.Tool("late", says("")) }, "its function has returned")
	defer func() {
		if v := recover(); v != "boom" {
			t.Errorf("the panic is %v", v)
		}
	}()
	_ = mux.Update(func(*mcp.Mux) { panic("boom") })
}

// Listeners are notified once of all that an Update changes, and not of one that failed.
func TestUpdateIsAnnouncedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("t", says(""))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := &sink{got: make(chan string, 100)}
		listenFor(ctx, mux, s, mcp.SubscriptionFilter{ToolsListChanged: true})
		if err := mux.Update(func(m *mcp.Mux) { m.Tool("u", says("")); m.Tool("u", says("")) }); err == nil {
			t.Fatal("two tools have one name")
		}
		synctest.Wait()
		if len(s.got) != 0 {
			t.Errorf("%s was announced, but nothing changed", <-s.got)
		}
		if err := mux.Update(func(m *mcp.Mux) { m.RemoveTool("t"); m.Tool("t", says("")); m.Tool("u", says("")) }); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(s.got) != 1 {
			t.Errorf("announced %d times", len(s.got))
		}
	})
}
