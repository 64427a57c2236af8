// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/mcp/transport"
)

// The state of a call may have as many bytes as MaxState says, and the error for a longer
// one says how many it has.
func TestStateBounds(t *testing.T) {
	ask := func(limit int) *mcp.CallToolResult {
		mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{MaxState: limit, Logger: quiet().Logger})
		mux.Tool("t", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			text, err := mcp.Once(ctx, "once", func() (string, error) { return strings.Repeat("x", 100), nil })
			if err != nil {
				return "", err
			}
			_, err = mcp.Elicit[namedField](ctx, "k", "?")
			return text, err
		}, nil))
		p := newPeer(t, mux, eras[0])
		p.send(eras[0].request("1", mcp.MethodCallTool, `"name":"t"`))
		m := p.read()
		if m.Error != nil {
			return &mcp.CallToolResult{IsError: true, Content: mcp.Contents{mcp.Text(m.Error.Message)}}
		}
		return &mcp.CallToolResult{}
	}
	var size int
	refused := textOf(ask(1))
	_, bytes, _ := strings.Cut(refused, "take ")
	if _, err := fmt.Sscanf(bytes, "%d bytes", &size); err != nil || size < 100 {
		t.Fatalf("got %q, %v", refused, err)
	}
	for limit, good := range map[int]bool{size: true, size - 1: false} {
		if res := ask(limit); res.IsError == good || !good && !strings.Contains(textOf(res), "MaxState is "+strconv.Itoa(limit)) {
			t.Errorf("%d bytes with a limit of %d: %s", size, limit, textOf(res))
		}
	}
}

// The state of a mounted server may have twice as many bytes, because it is sealed.
func TestMountedStateBounds(t *testing.T) {
	for size, code := range map[int]int{1001: 0, 1002: mcp.CodeInternalError} {
		mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{MaxState: 500, Logger: quiet().Logger})
		mux.Mount("a_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			return &mcp.InputRequired{RequestState: new(strings.Repeat("x", size))}, nil
		}))
		if _, err := mux.ServeMCP(t.Context(), mcptest.NewRequest(mcp.MethodCallTool, tool("a_t", ""))); mcp.CodeOf(err) != code {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// A handler of a template finds the values of its variables in the request of its context,
// too.
func TestPathValuesInContext(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("test://{x}/{y}", mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		got := mcp.RequestFromContext(ctx)
		text := fmt.Sprint(req.PathValue("x"), req.PathValue("y"), got.PathValue("x"), got.PathValue("y"))
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Name(), Text: text}}}, nil
	}))
	if c, err := readURI(t, mux, "test://a/b"); err != nil || c.Text != "abab" {
		t.Errorf("got %+v, %v", c, err)
	}
}

// A mux makes a subscription at a mount again after a second, and after twice as long each
// time that it fails, up to a minute. One that has lived for longer than that begins anew.
func TestSubscribeAgainDelays(t *testing.T) {
	seconds := func(all ...int) (waits []time.Duration) {
		for _, s := range all {
			waits = append(waits, time.Duration(s)*time.Second)
		}
		return waits
	}
	for _, c := range []struct {
		lives []time.Duration // how long the subscriptions live
		waits []time.Duration // after each of them
	}{
		{seconds(0, 0, 0, 0, 0, 0, 0, 0, 0), seconds(1, 2, 4, 8, 16, 32, 60, 60, 60)},
		{seconds(0, 0, 61, 0, 0), seconds(1, 2, 1, 2, 4)},
		{seconds(0, 0, 60, 0), seconds(1, 2, 4, 8)},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var begun, ended []time.Time
			mux := mcp.NewMux("m", "v1", quiet())
			mux.Mount("b", mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method != mcp.MethodListen {
					return nil, mcp.NewMethodNotFoundError(req.Method)
				}
				if req.IsNotification() {
					t.Error("the request has no ID")
				}
				mu.Lock()
				n := len(begun)
				begun = append(begun, time.Now())
				mu.Unlock()
				if n >= len(c.lives) {
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
				if c.lives[n] > 0 {
					<-time.After(c.lives[n])
				}
				mu.Lock()
				ended = append(ended, time.Now())
				mu.Unlock()
				return nil, mcp.Errorf(mcp.CodeInternalError, "no")
			}))
			conn := connect(t, mux, nil)
			s, err := conn.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {})
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Hour)
			s.Close()
			_ = conn.Close()
			mu.Lock()
			defer mu.Unlock()
			var waits []time.Duration
			for i := range ended {
				waits = append(waits, begun[i+1].Sub(ended[i]))
			}
			if fmt.Sprint(waits) != fmt.Sprint(c.waits) {
				t.Errorf("it waited %v, want %v", waits, c.waits)
			}
		})
	}
}

// A client makes a subscription again after a tenth of a second, and after twice as long each
// time that it fails, up to five seconds. One that has lived for ten seconds begins anew.
func TestClientSubscribesAgain(t *testing.T) {
	short := make([]time.Duration, 8)
	for _, c := range []struct {
		lives []time.Duration // how long the subscriptions live
		want  string          // the delays after each of them
	}{
		{short, "[100ms 200ms 400ms 800ms 1.6s 3.2s 5s 5s]"},
		{[]time.Duration{0, 0, 10 * time.Second, 0, 10*time.Second - 1, 0}, "[100ms 200ms 100ms 200ms 400ms 800ms]"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var delays []time.Duration
			ctx := mcptrace.WithClientTrace(t.Context(), &mcptrace.ClientTrace{Retry: func(i mcptrace.RetryInfo) { delays = append(delays, i.Delay) }})
			conn := connectTo(t, &cutTransport{Transport: mcp.InProcess(hello()), lives: c.lives}, nil)
			s, err := conn.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {})
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Hour)
			s.Close()
			<-s.Done()
			if fmt.Sprint(delays) != c.want {
				t.Errorf("it waited %v, want %v", delays, c.want)
			}
		})
	}
}

// A cutTransport cuts subscriptions, and nothing else, after each of lives.
type cutTransport struct {
	transport.Transport
	lives []time.Duration
}

type cutConn struct {
	transport.Conn
	transport *cutTransport
}

func (c *cutTransport) Connect(ctx context.Context, receive transport.Receiver) (transport.Conn, error) {
	conn, err := c.Transport.Connect(ctx, receive)
	return &cutConn{conn, c}, err
}

func (c *cutConn) Call(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	if lives := c.transport.lives; m.Method == mcp.MethodListen && len(lives) > 0 {
		c.transport.lives = lives[1:]
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, max(lives[0], 1), errCut)
		defer cancel()
	}
	return c.Conn.Call(ctx, m)
}

// Notifications that wait when the connection is closed are dropped.
func TestNotificationsAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("tell", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			for range 10 {
				_ = mcp.RequestFromContext(ctx).Notify(ctx, "notifications/x", nil)
			}
			return "", nil
		}, nil))
		called, goOn := 0, make(chan struct{})
		c := connect(t, mux, &mcp.ClientOptions{Notification: func(context.Context, *mcp.Conn, *mcp.Request) { called++; <-goOn }})
		mustCall(t, c, "tell", "")
		synctest.Wait()
		_ = c.Close()
		close(goOn)
		synctest.Wait()
		if called != 1 {
			t.Errorf("the function was called %d times, want one call, that before Close", called)
		}
	})
}

// That notifications are dropped is logged once, and again only if some were passed on
// meanwhile.
func TestDroppedNotificationsAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flood := strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/x"},`, 3000), ",")
		var log bytes.Buffer
		heard := 0
		goOn := make(chan struct{})
		near := newScripted()
		opened := `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`
		go func() {
			m := <-near.out
			near.in <- []byte(resultFor(idOf(m), opened))
		}()
		c := connectTo(t, streamTo(near), &mcp.ClientOptions{
			Version: "2025-11-25", Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Notification: func(context.Context, *mcp.Conn, *mcp.Request) { heard++; <-goOn },
		})
		for n, warnings := range []int{0, 1, 1, 2} {
			if n == 3 {
				goOn <- struct{}{} // there is room for one more
				synctest.Wait()
			}
			near.in <- []byte(`[` + flood + `]`)
			synctest.Wait()
			if got := strings.Count(log.String(), "notifications are dropped"); got != warnings {
				t.Errorf("after %d times 3000: %d warnings, want %d", n+1, got, warnings)
			}
		}
		close(goOn)
		synctest.Wait()
		if heard != 1+4096+1 {
			t.Errorf("%d notifications were passed on", heard)
		}
		_ = c.Close()
	})
}

// Of the progress that waits because a function is slow, the newest 4096 notifications are
// kept, and the function is called with nothing after the call has returned.
func TestProgressThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 5000
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("talk", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			for n := range all {
				mcp.Progress(ctx, float64(n+1), all, "")
				if n == 0 {
					<-time.After(time.Second) // until the function has the first
				}
			}
			return "", nil
		}, nil))
		ready := make(chan struct{})
		var got []int
		ctx := mcp.WithProgress(t.Context(), func(p *mcp.ProgressParams) {
			<-ready
			got = append(got, int(p.Progress))
		})
		c := connect(t, mux, nil)
		done := make(chan error, 1)
		go func() {
			_, err := c.CallTool(ctx, tool("talk", ""))
			done <- err
		}()
		<-time.After(2 * time.Second)
		close(ready)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if n := len(got); n != 4097 || got[0] != 1 || got[1] != all-4095 || got[n-1] != all {
			t.Errorf("%d notifications: %v…", len(got), got[:2])
		}
	})
}
