// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
)

// dozing is a server that answers nothing while it sleeps.
type dozing struct {
	server mcp.Handler
	awake  chan struct{} // closed when it wakes
}

func (d *dozing) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	select {
	case <-d.awake:
		return d.server.ServeMCP(ctx, req)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// toolNames are the names of all tools, after how long it took to list them.
func toolNames(t *testing.T, c *mcp.Conn) (names []string, took time.Duration) {
	t.Helper()
	start := time.Now()
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names, time.Since(start)
}

// A mounted server that does not answer costs its own part, for as long as it does not:
// discovery, lists and subscriptions of the gateway go on without it, and it is there
// again when it comes back.
func TestFindingCM4W9SilentMountCostsItself(t *testing.T) {
	for _, back := range bothEras {
		for _, front := range bothEras {
			t.Run(front+" in front of "+back, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { silentMount(t, front, back) })
			})
		}
	}
}

func silentMount(t *testing.T, front, back string) {
	gw := mcp.NewMux("gateway", "v1", quiet())
	gw.Tool("own", says("own"))
	opts := &mcp.ClientOptions{Version: back, Logger: quiet().Logger}
	gw.Mount("good_", connect(t, hello(), opts))
	awake := make(chan struct{})
	for _, prefix := range []string{"a_", "b_", "z_"} {
		d := &dozing{server: hello(), awake: make(chan struct{})}
		ready := d.awake
		close(ready)
		conn := connect(t, d, opts)
		d.awake = awake
		gw.Mount(prefix, conn)
	}
	start := time.Now()
	c := connect(t, gw, &mcp.ClientOptions{Version: front})
	if took := time.Since(start); took > 2*time.Second { // of which one is for notifications/initialized
		t.Errorf("connecting took %v", took)
	}
	names, took := toolNames(t, c)
	if want := []string{"own", "good_hello"}; !slices.Equal(names, want) || took > 6*time.Second { // one of them as above
		t.Errorf("listed %q after %v, want %q", names, took, want)
	}
	changes := make(chan string, 64)
	start = time.Now()
	s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(ch mcp.Change) { changes <- ch.Method })
	if err != nil || !s.Accepted.ToolsListChanged || time.Since(start) > 2*time.Second {
		t.Fatalf("subscribing: %+v, %v after %v", s, err, time.Since(start))
	}
	start = time.Now()
	gw.Tool("second", says(""))
	if <-changes; time.Since(start) > time.Second {
		t.Errorf("a change was heard of after %v", time.Since(start))
	}
	close(awake)
	<-changes
	if names, _ := toolNames(t, c); len(names) != 6 || !slices.Contains(names, "z_hello") {
		t.Errorf("after the servers came back: %q", names)
	}
	s.Close()
	<-s.Done()
}

// The bound can be set, and taken off.
func TestFindingW9MountTimeout(t *testing.T) {
	for _, test := range []struct{ timeout, want time.Duration }{
		{0, 5 * time.Second}, {200 * time.Millisecond, 200 * time.Millisecond}, {-1, 10 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := quiet()
			o.MountTimeout = test.timeout
			gw := mcp.NewMux("gateway", "v1", o)
			gw.Tool("own", says("own"))
			d := &dozing{server: hello(), awake: make(chan struct{})}
			gw.Mount("a_", d)
			time.AfterFunc(10*time.Minute, func() { close(d.awake) })
			c := connect(t, gw, &mcp.ClientOptions{Version: mcp.LatestVersion})
			if names, took := toolNames(t, c); took > test.want || took < test.want-2*time.Second {
				t.Errorf("%v: listed %q after %v, want %v", test.timeout, names, took, test.want)
			}
			gw.Mount("b_", &dozing{server: hello(), awake: make(chan struct{})})
			start := time.Now()
			_, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {})
			if took := time.Since(start); err != nil || took != min(test.want, time.Second) {
				t.Errorf("%v: subscribed after %v, %v", test.timeout, took, err)
			}
			c.Close()
			gw.Unmount("a_")
			gw.Unmount("b_")
		})
	}
}

// A mounted handler that ignores its context and one that panics are left out like one
// that fails, and said to be in the log.
func TestFindingW9MountThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gw, log := logged()
		gw.Tool("own", says("own"))
		release := make(chan struct{})
		gw.Mount("deaf_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			<-release
			return nil, nil
		}))
		gw.Mount("panics_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { panic("no") }))
		c := connect(t, gw, &mcp.ClientOptions{Version: mcp.LatestVersion})
		if names, took := toolNames(t, c); took > 5*time.Second || !slices.Equal(names, []string{"own"}) {
			t.Errorf("listed %q after %v", names, took)
		}
		for _, part := range []string{"deaf_", "panics_", "no answer to tools/list within 5s"} {
			if !strings.Contains(log.String(), part) {
				t.Errorf("the log does not have %q:\n%s", part, log)
			}
		}
		close(release)
		c.Close()
	})
}

// Pages of mounts are not asked for in turn, and none is lost or given twice.
func TestFindingW9PagesOfManyMounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := quiet()
		small.PageSize = 2
		gw := mcp.NewMux("gateway", "v1", small)
		gw.Tool("own", says(""))
		var want []string
		want = append(want, "own")
		for _, prefix := range []string{"a_", "b_", "c_", "d_"} {
			remote := mcp.NewMux(prefix, "v1", small)
			for _, name := range []string{"1", "2", "3"} {
				remote.Tool(name, says(""))
				want = append(want, prefix+name)
			}
			gw.Mount(prefix, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				<-time.After(time.Second)
				return remote.ServeMCP(ctx, req)
			}))
		}
		c := connect(t, gw, &mcp.ClientOptions{Version: mcp.LegacyVersions()[0]})
		if names, took := toolNames(t, c); !slices.Equal(names, want) || took > 10*time.Second {
			t.Errorf("listed %q after %v, want %q", names, took, want)
		}
		c.Close()
	})
}

// A part that several lists were sent without is announced once, if it comes within ten
// minutes.
func TestLateMountIsAwaitedOnce(t *testing.T) {
	for _, comes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			gw := mcp.NewMux("gateway", "v1", quiet())
			gw.Tool("own", says("own"))
			c := connect(t, gw, &mcp.ClientOptions{Version: mcp.LatestVersion})
			_, changes := listen(t, c, mcp.SubscriptionFilter{ToolsListChanged: true})
			d := &dozing{server: hello(), awake: make(chan struct{})}
			gw.Mount("late_", d)
			for range 3 {
				if names, _ := toolNames(t, c); !slices.Equal(names, []string{"own"}) {
					t.Errorf("listed %q", names)
				}
			}
			received(changes) // it was mounted
			if comes {
				close(d.awake)
			}
			<-time.After(time.Second)
			if n := len(received(changes)); n > 0 != comes {
				t.Errorf("that the part is there was announced %d times; it came: %t", n, comes)
			}
			<-time.After(15 * time.Minute)
			if n := len(received(changes)); n != 0 {
				t.Errorf("%d more changes were announced", n)
			}
			c.Close()
			gw.Unmount("late_")
		})
	}
}

// A server that is late every time does not make clients list without end: that its
// part is there is announced, but no more than once a minute.
func TestFindingW9LateMountIsAnnouncedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gw := mcp.NewMux("gateway", "v1", quiet())
		gw.Tool("own", says("own"))
		gw.Mount("late_", mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodListTools {
				<-time.After(6 * time.Second)
			}
			return hello().ServeMCP(ctx, req)
		}))
		c := connect(t, gw, &mcp.ClientOptions{Version: mcp.LatestVersion})
		changes := make(chan string, 1000)
		s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(ch mcp.Change) { changes <- ch.Method })
		if err != nil {
			t.Fatal(err)
		}
		start, told := time.Now(), 0
		for time.Since(start) < 10*time.Minute {
			if names, _ := toolNames(t, c); !slices.Equal(names, []string{"own"}) {
				t.Fatalf("listed %q", names)
			}
			<-changes
			told++
		}
		if told < 9 || told > 12 {
			t.Errorf("%d changes in ten minutes", told)
		}
		s.Close()
		<-s.Done()
		c.Close()
		gw.Unmount("late_")
	})
}
