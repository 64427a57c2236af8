// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// restless is a server that can go away and come back. Like a command, it is started by
// each connection, and then serves the current handler.
type restless struct {
	mu      sync.Mutex
	handler mcp.Handler
	refuses error // error for new connections; nil accepts
	starts  int
	crashes []func()
	running sync.WaitGroup
}

func (r *restless) transport() transport.Transport {
	return transport.FromStream(func(context.Context) (transport.Stream, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.starts++
		if r.refuses != nil {
			return nil, r.refuses
		}
		near, far := transport.Pipe()
		h := r.handler
		r.running.Go(func() { _ = mcpstdio.ServeStream(context.Background(), h, far, nil) })
		r.crashes = append(r.crashes, func() { _ = far.Close() })
		return near, nil
	})
}

// become sets the handler or error for future connections.
func (r *restless) become(h mcp.Handler, refuses error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handler, r.refuses = h, refuses
}

// crash closes all connections.
func (r *restless) crash() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, crash := range r.crashes {
		crash()
	}
	r.crashes = nil
}

func (r *restless) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.starts
}

// withTools returns a server with tools that return their names, and a resource.
func withTools(names ...string) *mcp.Mux {
	mux := mcp.NewMux("m", "v1", quiet())
	for _, name := range names {
		mux.Tool(name, says(name))
	}
	mux.Resource("r:r", reads(""))
	return mux
}

// maintain returns an Upstream that is closed when the test ends.
func maintain(t *testing.T, r *restless, version string, opts *mcp.UpstreamOptions) *mcp.Upstream {
	t.Helper()
	client := mcp.NewClient("c", "v1", &mcp.ClientOptions{Version: version, Forward: true, Logger: quiet().Logger})
	u := client.Maintain(t.Context(), r.transport(), opts)
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
		r.running.Wait()
	})
	return u
}

func listedTools(t *testing.T, c *mcp.Conn) string {
	t.Helper()
	var names []string
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

// A server behind a gateway restarts with different contents. Calls wait for it,
// subscribers learn that lists and resources have changed, and subscriptions continue.
func TestUpstreamRestarts(t *testing.T) {
	for _, back := range bothEras {
		for _, front := range bothEras {
			t.Run(front+" in front of "+back, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := &restless{handler: withTools("old")}
					gw := mcp.NewMux("gateway", "v1", quiet())
					gw.Mount("b_", maintain(t, server, back, nil))
					c := connect(t, gw, &mcp.ClientOptions{Version: front, Logger: quiet().Logger})
					s, changes := listen(t, c, mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"mount:b_:r:r"}})
					if !s.Accepted().ToolsListChanged || len(s.Accepted().ResourceSubscriptions) != 1 {
						t.Fatalf("accepted %+v", s.Accepted())
					}
					if got := listedTools(t, c) + " " + mustCall(t, c, "b_old", ""); got != "b_old old" {
						t.Errorf("at first %q", got)
					}
					synctest.Wait()
					for len(changes) > 0 {
						t.Errorf("unasked %+v", <-changes)
					}
					replacement := withTools("old", "new")
					server.become(replacement, nil)
					server.crash()
					synctest.Wait()
					if got := mustCall(t, c, "b_new", ""); got != "new" { // waits for the restart
						t.Errorf("after the restart %q", got)
					}
					next(t, changes, mcp.NotificationToolsListChanged)
					next(t, changes, mcp.NotificationResourceUpdated)
					if got := listedTools(t, c); got != "b_new b_old" {
						t.Errorf("listed %q", got)
					}
					replacement.RemoveTool("old")
					next(t, changes, mcp.NotificationToolsListChanged)
					replacement.ResourceUpdated("r:r")
					next(t, changes, mcp.NotificationResourceUpdated)
				})
			})
		}
	}
}

// Calls wait for a server that has just gone away, but fail immediately if it has been down
// for long. Callers do not see the reason.
func TestUpstreamWaitsOrFailsFast(t *testing.T) {
	down := errors.New("dial https://key@example.com: refused")
	for name, test := range map[string]struct {
		wait, outage, want time.Duration // since the start of the outage
		fails              bool
	}{
		"comes back":   {wait: 10 * time.Second, outage: 2 * time.Second, want: 10 * time.Second},
		"too late":     {wait: 10 * time.Second, outage: time.Hour, want: 10 * time.Second, fails: true},
		"never waits":  {wait: -1, outage: time.Hour, want: 0, fails: true},
		"not for long": {outage: time.Hour, want: 3 * time.Second, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &restless{handler: withTools("t")}
				u := maintain(t, server, mcp.LatestVersion, &mcp.UpstreamOptions{Wait: test.wait})
				synctest.Wait()
				server.become(nil, down)
				server.crash()
				synctest.Wait()
				start := time.Now()
				time.AfterFunc(test.outage, func() { server.become(withTools("t"), nil) })
				_, err := callTool(t, u, "t", "")
				if took := time.Since(start); (err != nil) != test.fails || took > test.want || test.fails && took != test.want {
					t.Errorf("got %v after %v", err, took)
				}
				if !test.fails {
					return
				}
				var coded *mcp.Error
				if !errors.As(err, &coded) || strings.Contains(coded.Message, "key") || !errors.Is(err, mcp.ErrNotConnected) {
					t.Errorf("got %v", err)
				}
				<-time.After(time.Minute)
				start = time.Now()
				if _, err := u.Conn(t.Context()); !errors.Is(err, down) || time.Since(start) > 0 {
					t.Errorf("later it got %v after %v", err, time.Since(start))
				}
			})
		})
	}
}

// A gateway keeps declaring the tasks extension while its server is gone, so that clients
// connecting meanwhile see it.
func TestUpstreamHasTasks(t *testing.T) {
	const extension = "io.modelcontextprotocol/tasks"
	synctest.Test(t, func(t *testing.T) {
		opts := quiet()
		opts.Capabilities = &mcp.ServerCapabilities{Extensions: mcp.Extensions{extension: json.RawMessage(`{}`)}}
		server := &restless{handler: mcp.NewMux("m", "v1", opts)}
		gw := mcp.NewMux("gateway", "v1", quiet())
		gw.Mount("b_", maintain(t, server, mcp.LatestVersion, nil))
		synctest.Wait()
		for _, when := range []string{"at first", "while it is gone"} {
			c := connect(t, gw, &mcp.ClientOptions{Logger: quiet().Logger})
			if c.Server().Capabilities.Extensions[extension] == nil {
				t.Errorf("%s: %+v", when, c.Server().Capabilities)
			}
			server.become(nil, errors.New("gone"))
			server.crash()
			synctest.Wait()
		}
	})
}

// Attempts to connect to a server that is unreachable, or dies on first use, become less
// frequent and eventually stop.
func TestUpstreamBacksOff(t *testing.T) {
	for name, life := range map[string]time.Duration{"down": 0, "flapping": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &restless{handler: withTools("t")}
				if life == 0 {
					server.refuses = errors.New("down")
				}
				u := maintain(t, server, mcp.LatestVersion, &mcp.UpstreamOptions{
					MaxDowntime: 2 * time.Hour,
					Connected: func(context.Context, *mcp.Conn) error {
						time.AfterFunc(life, server.crash)
						return nil
					},
				})
				ended := make(chan error, 1)
				go func() {
					s, err := u.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {})
					if err == nil {
						<-s.Done()
						err = s.Err()
					}
					ended <- err
				}()
				<-time.After(time.Minute)
				if n := server.count(); n < 5 || n > 12 {
					t.Errorf("%d attempts in the first minute", n)
				}
				<-time.After(time.Hour)
				if n := server.count(); n < 55 || n > 135 {
					t.Errorf("%d attempts in an hour", n)
				}
				<-u.Done()
				if err := u.Err(); err == nil || !strings.Contains(err.Error(), "gave up after 2h0m0s") || !u.State().Closed {
					t.Errorf("it ended with %v", err)
				}
				if err := <-ended; err == nil {
					t.Error("the subscription ended without an error")
				}
				if _, err := u.Conn(t.Context()); !errors.Is(err, u.Err()) {
					t.Errorf("a call got %v", err)
				}
			})
		})
	}
}

// However an Upstream ends, it leaves nothing behind, and waiting calls fail immediately.
func TestUpstreamEnds(t *testing.T) {
	hangs := transport.FromStream(func(ctx context.Context) (transport.Stream, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	refuses := &restless{refuses: errors.New("down")}
	gone := errors.New("gone")
	for name, test := range map[string]struct {
		server transport.Transport
		end    func(u *mcp.Upstream, cancel context.CancelCauseFunc)
		want   error
	}{
		"closed while connecting": {hangs, func(u *mcp.Upstream, _ context.CancelCauseFunc) { _ = u.Close() }, mcp.ErrClosed},
		"closed while it pauses":  {refuses.transport(), func(u *mcp.Upstream, _ context.CancelCauseFunc) { _ = u.Close() }, mcp.ErrClosed},
		"its context is done":     {refuses.transport(), func(_ *mcp.Upstream, cancel context.CancelCauseFunc) { cancel(gone) }, gone},
		"closed twice":            {hangs, func(u *mcp.Upstream, _ context.CancelCauseFunc) { _ = errors.Join(u.Close(), u.Close()) }, mcp.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				u := mcp.NewClient("c", "v1", &mcp.ClientOptions{Version: mcp.LatestVersion, Logger: quiet().Logger}).Maintain(ctx, test.server, &mcp.UpstreamOptions{Wait: time.Hour})
				waiting := make(chan error, 1)
				go func() {
					_, err := u.Conn(t.Context())
					waiting <- err
				}()
				<-time.After(10 * time.Second)
				start := time.Now()
				test.end(u, cancel)
				<-u.Done()
				if err := <-waiting; !errors.Is(err, test.want) || time.Since(start) > 0 {
					t.Errorf("the call got %v after %v", err, time.Since(start))
				}
				if err := u.Err(); errors.Is(err, gone) != errors.Is(test.want, gone) || errors.Is(test.want, mcp.ErrClosed) && err != nil {
					t.Errorf("it ended with %v", err)
				}
			})
		})
	}
}

// A connection rejected by the Connected function counts as failed. A failed login is
// retried only if the Retry function says so.
func TestUpstreamRetries(t *testing.T) {
	refused := fmt.Errorf("no: %w", mcp.ErrUnauthorized)
	for name, test := range map[string]struct {
		opts    mcp.UpstreamOptions
		refuses error
		again   bool
	}{
		"refused":         {mcp.UpstreamOptions{}, refused, false},
		"refused, always": {mcp.UpstreamOptions{Retry: func(error) bool { return true }}, refused, true},
		"not content":     {mcp.UpstreamOptions{Connected: func(context.Context, *mcp.Conn) error { return errors.New("too old") }}, nil, true},
		"a panic":         {mcp.UpstreamOptions{Connected: func(context.Context, *mcp.Conn) error { panic("boom") }}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &restless{handler: withTools("t"), refuses: test.refuses}
				u := maintain(t, server, mcp.LatestVersion, &test.opts)
				<-time.After(time.Minute)
				s := u.State()
				if again := server.count() > 1; again != test.again || s.Closed == again || s.Conn != nil || s.Err == nil || again && s.Failures < 3 {
					t.Errorf("%d attempts, state %+v", server.count(), s)
				}
			})
		})
	}
}

// State describes the current connection, and each change is reported.
func TestUpstreamState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		server := &restless{refuses: down}
		var seen []string
		var u *mcp.Upstream
		u = maintain(t, server, mcp.LatestVersion, &mcp.UpstreamOptions{StateChanged: func(s mcp.UpstreamState) {
			seen = append(seen, fmt.Sprintf("%t %d %t %t", s.Conn != nil, s.Failures, !s.Next.IsZero(), s.Closed))
			if s.Conn != nil {
				_ = u.Close() // it may be closed in this callback
			}
		}})
		synctest.Wait()
		if s := u.State(); s.Failures != 1 || !errors.Is(s.Err, down) || time.Until(s.Next) <= 0 || time.Until(s.Next) > 500*time.Millisecond {
			t.Errorf("the state is %+v", s)
		}
		server.become(withTools("t"), nil)
		<-u.Done()
		synctest.Wait()
		if got, want := strings.Join(seen, ", "), "false 1 true false, false 1 false false, true 0 false false, false 0 false false, false 0 false true"; got != want {
			t.Errorf("seen %s, want %s", got, want)
		}
	})
}

// A host can subscribe before its server is connected. It is notified when the server
// appears and when it returns. The server must accept the resources.
func TestUpstreamListen(t *testing.T) {
	for _, version := range bothEras {
		synctest.Test(t, func(t *testing.T) {
			server := &restless{refuses: errors.New("not yet")}
			u := maintain(t, server, version, nil)
			synctest.Wait()
			changes := make(chan mcp.Change, 100)
			s, err := u.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(c mcp.Change) { changes <- c })
			if err != nil || !s.Accepted().ToolsListChanged {
				t.Fatalf("accepted %+v, %v", s, err)
			}
			time.AfterFunc(5*time.Minute, func() { server.become(withTools("t"), nil) })
			for range 3 { // the first connection, then two more
				next(t, changes, mcp.NotificationToolsListChanged)
				c, err := u.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if got := listedTools(t, c); got != "t" {
					t.Errorf("listed %q", got)
				}
				<-time.After(5 * time.Second)
				server.crash()
			}
			s.Close()
			<-s.Done()
			if err := s.Err(); err != nil {
				t.Error(err)
			}
			s, err = u.Listen(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{"r:r", "r:none"}}, func(mcp.Change) {})
			if err != nil || len(s.Accepted().ResourceSubscriptions) != 1 {
				t.Errorf("accepted %+v, %v", s, err)
			}
			server.become(nil, errors.New("gone"))
			server.crash()
			synctest.Wait()
			time.AfterFunc(time.Minute, func() { server.become(withTools("t"), nil) })
			s, err = u.Listen(t.Context(), mcp.SubscriptionFilter{ // waits for the server
				ResourceSubscriptions: []string{"r:r"}, Extra: mcp.Extra{"extension/x": json.RawMessage("true")},
			}, func(mcp.Change) {})
			if err != nil || len(s.Accepted().ResourceSubscriptions) != 1 {
				t.Errorf("accepted %+v, %v", s, err)
			}
		})
	}
}

// When a stopping server ends its subscriptions without an error, that of the Upstream
// continues. A server without subscriptions may be replaced by one that supports them.
func TestUpstreamListenIsKept(t *testing.T) {
	for _, connected := range []bool{false, true} { // when subscribing
		synctest.Test(t, func(t *testing.T) {
			deaf := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method == mcp.MethodListen {
					return nil, mcp.NewMethodNotFoundError(req.Method)
				}
				return withTools("t").ServeMCP(ctx, req)
			})
			server := &restless{handler: deaf}
			u := maintain(t, server, mcp.LatestVersion, nil)
			if connected {
				if _, err := u.Conn(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			changes := make(chan mcp.Change, 100)
			s, err := u.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(c mcp.Change) { changes <- c })
			if err != nil || !s.Accepted().ToolsListChanged {
				t.Fatalf("accepted %+v, %v", s, err)
			}
			polite := withTools("t")
			server.become(polite, nil)
			server.crash()
			next(t, changes, mcp.NotificationToolsListChanged)
			polite.Tool("u", says(""))
			next(t, changes, mcp.NotificationToolsListChanged)
		})
	}
}

// When a program that serves an Upstream stops, it ends its subscriptions with a result, as
// any server does.
func TestUpstreamListenEndsWithItsServer(t *testing.T) {
	for _, connected := range []bool{true, false} { // when it stops
		for _, version := range bothEras {
			synctest.Test(t, func(t *testing.T) {
				server := &restless{handler: withTools("t")}
				u := maintain(t, server, version, nil)
				near, far := transport.Pipe()
				ctx, stop := context.WithCancel(t.Context())
				go mcpstdio.ServeStream(ctx, u, far, nil) // until ctx is cancelled
				to := transport.FromStream(func(context.Context) (transport.Stream, error) { return near, nil })
				c := connectTo(t, to, &mcp.ClientOptions{Version: mcp.LatestVersion})
				s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {})
				if err != nil {
					t.Fatal(err)
				}
				if !connected {
					server.become(nil, errors.New("gone"))
					server.crash()
					synctest.Wait()
				}
				stop()
				<-s.Done()
				if err := s.Err(); err != nil {
					t.Errorf("%s, connected %v: the subscription ended with %v", version, connected, err)
				}
			})
		}
	}
}

// A reconnecting client notices that the program at the same address now speaks another
// revision.
func TestUpstreamOfAnotherRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unsupported := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodDiscover {
				return withTools().ServeMCP(t.Context(), req)
			}
			return nil, &mcp.Error{Code: mcp.CodeUnsupportedVersion, Message: "no"}
		})
		server := &restless{handler: unsupported}
		u := maintain(t, server, mcp.LatestVersion, nil)
		_, err := callTool(t, u, "t", "")
		wantCode(t, err, mcp.CodeUnsupportedVersion)
		server.become(withTools("t"), nil)
		synctest.Wait()
		if res, err := callTool(t, u, "t", ""); err != nil || textOf(res) != "t" || server.count() != 2 {
			t.Errorf("got %+v, %v with connection %d", res, err, server.count())
		}
	})
}

// A connection that lasts as long as the maximum delay counts as a success and resets the
// delay.
func TestUpstreamLastingBounds(t *testing.T) {
	for lasted, quick := range map[time.Duration]bool{8 * time.Second: true, 8*time.Second - 1: false} {
		synctest.Test(t, func(t *testing.T) {
			r := &restless{}
			r.become(nil, errors.New("not yet"))
			began := make(chan time.Time, 100)
			maintain(t, r, mcp.LatestVersion, &mcp.UpstreamOptions{
				MinDelay: time.Second, MaxDelay: 8 * time.Second, MaxDowntime: time.Hour,
				Connected: func(context.Context, *mcp.Conn) error { began <- time.Now(); return nil },
			})
			<-time.After(20 * time.Second) // the delay has grown
			r.become(withTools("a"), nil)
			<-time.After(8 * time.Second)
			<-time.After(time.Until((<-began).Add(lasted)))
			starts := r.count()
			r.crash()
			<-time.After(1100 * time.Millisecond)
			if again := r.count() > starts; again != quick {
				t.Errorf("after %v, connected again within a second: %t", lasted, again)
			}
		})
	}
}

// slowToClose is a transport whose connections end immediately when closed, but report it
// two seconds later, like HTTP connections that send a DELETE to a server that hangs.
type slowToClose struct{ transport.Transport }

func (s slowToClose) Connect(ctx context.Context, receive transport.Receiver) (transport.Conn, error) {
	c, err := s.Transport.Connect(ctx, receive)
	return &slowConn{Conn: c, done: make(chan struct{})}, err
}

type slowConn struct {
	transport.Conn
	done chan struct{}
}

func (c *slowConn) Done() <-chan struct{} { return c.done }

func (c *slowConn) Close() error {
	err := c.Conn.Close()
	<-time.After(2 * time.Second)
	close(c.done)
	return err
}

// When a server stops responding and its connection takes time to close, calls in flight
// return the reason, and later calls wait for the next connection.
func TestUpstreamClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		mux := withTools("hello")
		mux.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if hangs.Load() {
					<-ctx.Done()
				}
				return next.ServeMCP(ctx, req)
			})
		})
		client := mcp.NewClient("c", "v1", &mcp.ClientOptions{KeepAlive: time.Second, Logger: quiet().Logger})
		u := client.Maintain(t.Context(), slowToClose{mcp.InProcess(mux)}, &mcp.UpstreamOptions{Wait: time.Minute})
		defer u.Close()
		hello := func() (string, error) {
			c, err := u.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return mcp.Call[string](t.Context(), c, "hello", nil)
		}
		if got, err := hello(); err != nil || got != "hello" {
			t.Fatalf("%q, %v", got, err)
		}
		hangs.Store(true)
		if _, err := hello(); !errors.Is(err, mcp.ErrNoAnswer) || !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("the call in flight returned %v", err)
		}
		hangs.Store(false)
		if got, err := hello(); err != nil || got != "hello" {
			t.Errorf("the next call returned %q, %v", got, err)
		}
	})
}
