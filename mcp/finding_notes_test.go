// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// notifierFunc is a function as a Notifier.
type notifierFunc func(method string) error

func (f notifierFunc) Notify(_ context.Context, method string, _ json.RawMessage) error {
	return f(method)
}

// Notifications that wait for a slow function are bounded by their size as well.
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
// functions.
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
			listen := func(n serving.Notifier) {
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

// A subscriber so slow that changes are dropped is told in the end that everything may have
// changed, so that it misses no change.
func TestFindingCM16DroppedChangesAreMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sent = 6000
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method != mcp.MethodListen {
					return next.ServeMCP(ctx, req)
				}
				meta := mcp.Meta{}
				meta.Set(mcp.MetaSubscriptionID, req.ID)
				_ = req.Notify(ctx, mcp.NotificationAcknowledged, &mcp.AcknowledgedParams{
					Notifications: mcp.SubscriptionFilter{ResourceSubscriptions: []string{"r:a", "r:last"}}, Meta: meta,
				})
				for range sent {
					_ = req.Notify(ctx, mcp.NotificationResourceUpdated, &mcp.ResourceUpdatedParams{URI: "r:a", Meta: meta})
				}
				_ = req.Notify(ctx, mcp.NotificationResourceUpdated, &mcp.ResourceUpdatedParams{URI: "r:last", Meta: meta})
				<-ctx.Done()
				return nil, context.Cause(ctx)
			})
		})
		c := connect(t, mux, quietClient("2026-07-28"))
		slow := make(chan struct{})
		var told, last int
		if _, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{"r:a", "r:last"}}, func(ch mcp.Change) {
			<-slow
			told++
			if ch.URI == "r:last" {
				last++
			}
		}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		close(slow)
		synctest.Wait()
		if told >= sent || last == 0 {
			t.Errorf("told %d times, %d of the last", told, last)
		}
		_ = c.Close()
	})
}

// Mutation 34: the timeout of a call is paused while the user is asked. Progress does not
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
		opts.Elicit = func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
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

// Mutation 36: a call that failed because the session was lost is made once more.
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

// Mutation 37: a subscription made while the last one before is being ended is made at the
// server again.
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
		synctest.Wait() // the server takes its time
		if _, err := c.Subscribe(t.Context(), "r:a", func(string) {}); err != nil {
			t.Fatal(err)
		}
		if n := subscribed.Load(); n != 2 {
			t.Errorf("the server was asked %d times", n)
		}
		_ = c.Close()
	})
}
