// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// notifierFunc adapts a function to a Notifier.
type notifierFunc func(method string) error

func (f notifierFunc) Notify(_ context.Context, method string, _ json.RawMessage) error {
	return f(method)
}

// Notifications queued for a slow function are also limited in bytes.
func TestFindingS28NotesAreBoundedByBytes(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		synctest.Test(t, func(t *testing.T) {
			const size, sent = 1 << 20, 30
			mux := mcp.NewMux("m", "v1", quiet())
			mux.Tool("talk", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
				for range sent {
					if err := mcp.RequestFromContext(ctx).Notify(ctx, "notifications/talk", map[string]string{"text": strings.Repeat("x", size)}); err != nil {
						return "", err
					}
				}
				return "", nil
			}, nil))
			var told atomic.Int32
			opts := quietClient(version)
			opts.Notification = func(context.Context, *mcp.Conn, *mcp.Request) {
				told.Add(1)
				<-time.After(time.Second)
			}
			c := connect(t, mux, opts)
			if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "talk"}); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Hour)
			if n := told.Load(); n == 0 || n > 20 {
				t.Errorf("%s: %d of %d MiB were kept", version, n, sent)
			}
			_ = c.Close()
		})
	}
}

// A subscriber that does not read delays neither other subscribers nor the client's own
// callbacks.
func TestFindingCM16SlowListener(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		synctest.Test(t, func(t *testing.T) {
			mux := mcp.NewMux("m", "v1", quiet())
			mux.Tool("remark", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
				return "", mcp.RequestFromContext(ctx).Notify(ctx, "notifications/remark", none{})
			}, nil))
			own := make(chan string, 8)
			opts := quietClient(version)
			opts.Notification = func(_ context.Context, _ *mcp.Conn, note *mcp.Request) { own <- note.Method }
			c := connect(t, mux, opts)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(mcp.ErrClosed)
			stuck, heard := make(chan struct{}), make(chan string, 8)
			listen := func(n notifierFunc) {
				req, err := mcp.NewRequest(mcp.MethodListen, &mcp.ListenParams{Notifications: mcp.SubscriptionFilter{ToolsListChanged: true}})
				if err != nil {
					t.Error(err)
				}
				req.ID = mcp.IntID(1)
				go func() { _, _ = core.Serve(ctx, c, req, n, quiet().Logger) }()
				synctest.Wait()
			}
			listen(notifierFunc(func(method string) error {
				if method == mcp.NotificationToolsListChanged {
					<-stuck
				}
				return nil
			}))
			listen(notifierFunc(func(method string) error { heard <- method; return nil }))
			mux.Tool("new", uncalled)
			synctest.Wait()
			mux.Tool("newer", uncalled)
			<-time.After(time.Second)
			if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "remark"}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if len(heard) != 3 {
				t.Errorf("%s: somebody else heard %d times", version, len(heard))
			}
			for more := true; more; {
				select {
				case method := <-own:
					more = method != "notifications/remark"
				default:
					t.Errorf("%s: the client's function was not called", version)
					more = false
				}
			}
			close(stuck)
		})
	}
}

// If changes are dropped because a subscriber is slow, it finally learns that everything
// may have changed, so that it misses no change.
func TestFindingCM16DroppedChangesAreMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sent = 6000
		told := listenSlowly(t, []string{"r:a", "r:last"}, func(update func(uri string)) {
			for range sent {
				update("r:a")
			}
			update("r:last")
		})
		if told["r:a"] >= sent || told["r:last"] == 0 {
			t.Errorf("received %v", told)
		}
	})
}

// listenSlowly returns how often a function that is slow is called for each resource, if a server
// sends updates before the function returns for the first time.
func listenSlowly(t *testing.T, uris []string, send func(update func(uri string))) (told map[string]int) {
	t.Helper()
	filter := mcp.SubscriptionFilter{ResourceSubscriptions: uris}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != mcp.MethodListen {
				return next.ServeMCP(ctx, req)
			}
			meta := mcp.Meta{}
			meta.Set(mcp.MetaSubscriptionID, req.ID)
			_ = req.Notify(ctx, mcp.NotificationAcknowledged, &mcp.AcknowledgedParams{Notifications: filter, Meta: meta})
			send(func(uri string) {
				_ = req.Notify(ctx, mcp.NotificationResourceUpdated, &mcp.ResourceUpdatedParams{URI: uri, Meta: meta})
			})
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
	})
	c := connect(t, mux, quietClient("2026-07-28"))
	slow := make(chan struct{})
	told = map[string]int{}
	if _, err := c.Listen(t.Context(), filter, func(ch mcp.Change) {
		<-slow
		told[ch.URI]++
	}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	close(slow)
	synctest.Wait()
	_ = c.Close()
	return told
}

// Mutation 34: the timeout of a call is paused while the user answers. Progress does not
// resume it.
func TestProgressWhileTheUserThinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := transport.Pipe()
		say := func(format string, args ...any) {
			_ = far.Write(context.Background(), fmt.Appendf(nil, format, args...))
		}
		go func() {
			var call mcp.ID
			for {
				data, err := far.Read(context.Background())
				if err != nil {
					return
				}
				m, _ := transport.ParseMessage(data)
				switch {
				case m.IsResponse():
					say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, call)
				case m.Method == mcp.MethodCallTool:
					call = m.ID
					say(aQuestion, 1)
					<-time.After(time.Second)
					say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, requestOf(t, m).ProgressToken())
				default:
					if answer, _ := speaksLegacy(0, m.Method, m.ID.String()); answer != "" {
						say("%s", answer)
					}
				}
			}
		}()
		opts := quietClient("2025-11-25")
		opts.CallTimeout = time.Minute
		opts.Elicit = func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			<-time.After(time.Hour)
			return &mcp.ElicitResult{Action: mcp.ActionDecline}, nil
		}
		c := connectTo(t, transport.FromStream(func(context.Context) (transport.Stream, error) { return near, nil }), opts)
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "x"}); err != nil {
			t.Error(err)
		}
		_ = c.Close()
	})
}

// Mutation 36: a call that failed because its session was lost is retried once.
func TestLostSessionOneRetry(t *testing.T) {
	calls := 0
	transport := mcptest.Faulty(memory(t, remarking()), func(_ int, m *transport.Outgoing) mcptest.Fault {
		if m.Method != mcp.MethodCallTool {
			return mcptest.Fault{}
		}
		calls++
		return mcptest.Fault{Err: mcp.ErrSessionLost}
	})
	c := connectTo(t, transport, quietClient("2025-11-25"))
	_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "remark"})
	if !errors.Is(err, mcp.ErrSessionLost) || calls != 2 {
		t.Errorf("after %d calls: %v", calls, err)
	}
}

// Mutation 37: subscribing while the previous subscription to the same resource is being
// removed subscribes at the server again.
func TestSubscribeWhileAnotherLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var subscribed atomic.Int32
		p := &childProgram{respond: func(_ int, method, id string) (string, bool) {
			switch method {
			case "notifications/initialized":
				return "", true
			case "initialize":
				return resultFor(id, strings.Replace(openedLegacy, `"tools":{}`, `"resources":{"subscribe":true}`, 1)), true
			case "resources/subscribe":
				subscribed.Add(1)
			case "resources/unsubscribe":
				<-time.After(time.Second)
			}
			return resultFor(id, `{}`), true
		}}
		c := connectTo(t, p.transport(), quietClient("2025-11-25"))
		first, err := c.Subscribe(t.Context(), "r:a", func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		first.Close()
		synctest.Wait() // unsubscribing takes the server a second
		if _, err := c.Subscribe(t.Context(), "r:a", func(string) {}); err != nil {
			t.Fatal(err)
		}
		if n := subscribed.Load(); n != 2 {
			t.Errorf("the server was asked %d times", n)
		}
		_ = c.Close()
	})
}

// The state of a call is limited. The error for a larger one reports its
// size.
func TestStateBounds(t *testing.T) {
	ask := func(limit int) *mcp.CallToolResult {
		mux := mcp.NewMux("m", "v1", mcp.LimitState(quiet(), limit))
		mux.Tool("t", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			text, err := mcp.Once(ctx, "once", func(context.Context) (string, error) { return strings.Repeat("x", 100), nil })
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
		if res := ask(limit); res.IsError == good || !good && !strings.Contains(textOf(res), "the limit is "+strconv.Itoa(limit)) {
			t.Errorf("%d bytes with a limit of %d: %s", size, limit, textOf(res))
		}
	}
}

// The state of a mounted server may be twice as large, because it is sealed.
func TestMountedStateBounds(t *testing.T) {
	for size, code := range map[int]int{1001: 0, 1002: mcp.CodeInternalError} {
		mux := mcp.NewMux("m", "v1", mcp.LimitState(quiet(), 500))
		mux.Mount("a_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			return &mcp.InputRequired{RequestState: new(strings.Repeat("x", size))}, nil
		}))
		if _, err := mux.ServeMCP(t.Context(), mcptest.NewRequest(mcp.MethodCallTool, tool("a_t", ""))); mcp.CodeOf(err) != code {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// The handler of a template can also read the values of its variables from the request in
// its context.
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

// A mux renews a subscription at a mount after a second, and doubles the delay with each
// failure, up to a minute. A subscription that lived longer than that resets the delay.
func TestSubscribeAgainDelays(t *testing.T) {
	seconds := func(all ...int) (waits []time.Duration) {
		for _, s := range all {
			waits = append(waits, time.Duration(s)*time.Second)
		}
		return waits
	}
	for _, c := range []struct {
		lives []time.Duration // of the subscriptions
		waits []time.Duration // delay after each of them
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

// A client renews a subscription after a tenth of a second, and doubles the delay with each
// failure, up to five seconds. A subscription that lived longer than that resets the delay.
func TestClientSubscribesAgain(t *testing.T) {
	short := make([]time.Duration, 8)
	for _, c := range []struct {
		lives []time.Duration // of the subscriptions
		want  string          // delays after each of them
	}{
		{short, "[100ms 200ms 400ms 800ms 1.6s 3.2s 5s 5s]"},
		{[]time.Duration{0, 0, 5*time.Second + 1, 0, 5 * time.Second, 0}, "[100ms 200ms 100ms 200ms 400ms 800ms]"},
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

// A cutTransport ends only subscriptions, each after the next duration in lives.
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

// Notifications that are still queued when the connection is closed are dropped.
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

// Dropped notifications are logged once, and again only after others were delivered.
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
				goOn <- struct{}{} // makes room for one more
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

// While a progress function is slow, the newest 4096 notifications are queued for it. It is
// never called after the call has returned.
func TestProgressThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 5000
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("talk", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			for n := range all {
				mcp.Progress(ctx, float64(n+1), all, "")
				if n == 0 {
					<-time.After(time.Second) // until the function has received the first
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

// If a client sends without reading, the server stops reading when the maximum number of
// messages is waiting for an answer, rejections included. Once the client reads, it gets
// every answer.
func TestFindingW15FloodWithoutReading(t *testing.T) {
	const inFlight = 5
	for name, flood := range map[string]func(id int) string{
		"unknown method": func(id int) string { return eras[0].request(fmt.Sprint(id), "tools/nosuch", "") },
		"malformed":      func(int) string { return `{"jsonrpc":"2.0"` },
		"no version":     func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, id) },
		"same id":        func(int) string { return eras[0].request("1", "tools/call", `"name":"wait"`) },
		"too many":       func(id int) string { return eras[0].request(fmt.Sprint(id), "tools/call", `"name":"wait"`) },
		"batches":        func(int) string { return `[]` },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				mux := mcp.NewMux("m", "v1", quiet())
				mux.Tool("wait", mcp.ToolFunc(func(context.Context, none) (string, error) { <-release; return "waited", nil }, nil))
				client, server := transport.Pipe()
				served := make(chan error, 1)
				go func() {
					served <- mcpstdio.ServeStream(t.Context(), mux, server, &mcpstdio.StreamOptions{MaxInFlight: inFlight, Logger: quiet().Logger})
				}()
				ctx, stop := context.WithCancel(t.Context())
				var sent atomic.Int32
				stopped := make(chan struct{})
				go func() {
					defer close(stopped)
					for client.Write(ctx, []byte(flood(int(sent.Load())))) == nil && sent.Load() < 10_000 {
						sent.Add(1)
					}
				}()
				<-time.After(time.Minute)
				const room = 64 // of a pipe, in each direction
				if n := sent.Load(); n > 2*room+4*inFlight {
					t.Errorf("%d messages were read, with room for %d answers and %d requests in flight", n, room, inFlight)
				}
				stop()
				<-stopped
				close(release)
				for range sent.Load() {
					if _, err := client.Read(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if err := client.Write(t.Context(), []byte(eras[0].request("99", "tools/call", `"name":"wait"`))); err != nil {
					t.Fatal(err)
				}
				if answer, err := client.Read(t.Context()); err != nil || !strings.Contains(string(answer), "waited") {
					t.Errorf("got %s, %v", answer, err)
				}
				client.Close()
				<-served
			})
		})
	}
}

// Notifications with a slow handler count as well. Cancellations still reach the requests
// in flight.
func TestFindingW15FloodOfNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var began, cancelled atomic.Int32
		h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			began.Add(1)
			if req.IsNotification() {
				<-release
			} else {
				<-ctx.Done()
				cancelled.Add(1)
			}
			return nil, ctx.Err()
		})
		client, server := transport.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- mcpstdio.ServeStream(t.Context(), h, server, &mcpstdio.StreamOptions{MaxInFlight: 3, Logger: quiet().Logger})
		}()
		for id := range 3 {
			client.Write(t.Context(), []byte(eras[0].request(fmt.Sprint(id), "vendor/wait", "")))
		}
		client.Write(t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`))
		<-time.After(time.Second)
		if n := cancelled.Load(); n != 1 {
			t.Errorf("%d requests were cancelled, want 1", n)
		}
		go func() {
			for range 50 {
				client.Write(t.Context(), []byte(`{"jsonrpc":"2.0","method":"vendor/note","params":{`+eras[0].meta+`}}`))
			}
		}()
		<-time.After(time.Minute)
		if n := began.Load(); n > 3+9 {
			t.Errorf("%d messages are served at once", n)
		}
		close(release)
		<-time.After(time.Minute)
		if n := began.Load(); n != 53 {
			t.Errorf("%d messages were served, want 53", n)
		}
		client.Close()
		<-served
	})
}

// connectToStream connects to a server that only answers the handshake, and returns the
// server's end of the stream.
func connectToStream(t *testing.T, opts *mcp.ClientOptions) (*mcp.Conn, transport.Stream) {
	t.Helper()
	near, far := transport.Pipe()
	go func() {
		for {
			data, err := far.Read(context.Background())
			if err != nil {
				return
			}
			if m, err := transport.ParseMessage(data); err == nil && m.Method != "" {
				if answer, _ := speaksLegacy(0, m.Method, m.ID.String()); answer != "" {
					_ = far.Write(context.Background(), []byte(answer))
				}
			}
		}
	}()
	return connectTo(t, transport.FromStream(func(context.Context) (transport.Stream, error) { return near, nil }), opts), far
}

// A batch of many invalid messages takes memory linear in its length, and they are not
// logged one by one.
func TestFindingW2BatchOfNothing(t *testing.T) {
	const size = 8 << 20
	for name, batch := range map[string]string{
		"numbers":     "[0" + strings.Repeat(",0", size/2) + "]",
		"not closed":  "[0" + strings.Repeat(",0", size/2),
		"objects":     "[{}" + strings.Repeat(",{}", size/3) + "]",
		"nested deep": strings.Repeat("[", size),
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			c, far := connectToStream(t, &mcp.ClientOptions{Version: "2025-11-25", Logger: slog.New(slog.NewTextHandler(&log, nil))})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := far.Write(t.Context(), []byte(batch)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 4*size {
				t.Errorf("%s: %d MiB for %d", name, used>>20, size>>20)
			}
			if lines := strings.Count(log.String(), "\n"); lines == 0 || lines > 40 {
				t.Errorf("%s: %d lines of log", name, lines)
			}
			if err := c.Ping(t.Context()); err != nil && mcp.CodeOf(err) != mcp.CodeMethodNotFound {
				t.Errorf("%s: %v", name, err)
			}
			_ = c.Close()
		})
	}
}

// Garbage from a server does not flood the client's log, and what is logged of it is short.
func TestFindingW2NonsenseIsLoggedSparsely(t *testing.T) {
	for _, nonsense := range []string{
		`{}`, `nonsense`, `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 10_000) + `","result":{"a":1,"a":2}}`,
		`{"jsonrpc":"2.0","id":1000,"result":{"` + strings.Repeat("x", 10_000) + `":1,"` + strings.Repeat("x", 10_000) + `":2}}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			c, far := connectToStream(t, &mcp.ClientOptions{Version: "2025-11-25", Logger: slog.New(slog.NewTextHandler(&log, nil))})
			for range 1_000 {
				if err := far.Write(t.Context(), []byte(nonsense)); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			_ = c.Close()
			if lines := strings.Count(log.String(), "\n"); lines < 16 || lines > 40 || log.Len() > 40_000 {
				t.Errorf("%d lines of log, %d bytes: %.2000s", lines, log.Len(), log.String())
			}
		})
	}
}

// Repeated changes of one resource take the space of one, however long its URI is: nothing else
// counts as changed.
func TestRepeatedChangesTakeNoSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := "r:" + strings.Repeat("a", 64<<10)
		told := listenSlowly(t, []string{long, "r:other"}, func(update func(uri string)) {
			for range 300 {
				update(long)
			}
		})
		if told["r:other"] != 0 || told[long] == 0 {
			t.Errorf("received %d changes of the resource and %d of the other one", told[long], told["r:other"])
		}
	})
}
