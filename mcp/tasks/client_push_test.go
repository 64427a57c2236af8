// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// connectCounting connects a client and counts its requests by method.
func connectCounting(t *testing.T, server mcp.Handler) (c *mcp.Conn, sent func(method string) int) {
	t.Helper()
	var mu sync.Mutex
	counts, opts := map[string]int{}, options()
	opts.Extensions = append(opts.Extensions, flaky(func(req *mcp.Request) error {
		mu.Lock()
		defer mu.Unlock()
		counts[req.Method]++
		return nil
	}))
	return (&mcptest.Client{Options: *opts}).Connect(t, server), func(method string) int {
		mu.Lock()
		defer mu.Unlock()
		return counts[method]
	}
}

// A client listens to a task and receives its messages, questions and end as they occur,
// however long the poll interval is.
func TestClientListens(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), &tasks.Options{PollInterval: time.Hour, Lease: time.Hour}, nil)
		c, sent := connectCounting(t, r.mux)
		r.tool("ask", func(ctx context.Context) (string, error) {
			<-time.After(3 * time.Second)
			c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			if err == nil {
				<-time.After(3 * time.Second)
			}
			return c.Codec, err
		})
		begun := time.Now()
		got, err := mcp.Call[string](t.Context(), c, "ask", nil)
		if got != "av1" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if took := time.Since(begun); took > 10*time.Second { // three runs of three seconds
			t.Errorf("the task took %v", took)
		}
		for method, want := range map[string]int{tasks.MethodGet: 1, mcp.MethodListen: 1, tasks.MethodUpdate: 1} {
			if n := sent(method); n != want {
				t.Errorf("%s was sent %d times, want %d", method, n, want)
			}
		}
	})
}

// A task that ends soon is polled once, without listening to it.
func TestClientPollsAQuickTaskOnce(t *testing.T) {
	for name, takes := range map[string]time.Duration{"at once": 0, "soon": 15 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newReplica(t, store.NewMemory(nil), &tasks.Options{PollInterval: time.Hour, Lease: time.Hour}, nil)
				c, sent := connectCounting(t, r.mux)
				r.tool("quick", func(context.Context) (string, error) {
					if takes > 0 {
						<-time.After(takes)
					}
					return "done", nil
				})
				begun := time.Now()
				if got, err := mcp.Call[string](t.Context(), c, "quick", nil); got != "done" || err != nil {
					t.Errorf("%q, %v", got, err)
				}
				if took := time.Since(begun); sent(tasks.MethodGet) != 1 || sent(mcp.MethodListen) != 0 || took > 100*time.Millisecond {
					t.Errorf("%d polls, %d subscriptions, %v", sent(tasks.MethodGet), sent(mcp.MethodListen), took)
				}
			})
		})
	}
}

// A server that does not push is polled at its interval, after the first poll.
func TestClientWithoutPushes(t *testing.T) {
	for name, listen := range map[string]mcp.HandlerFunc{
		"refuses": func(context.Context, *mcp.Request) (mcp.Result, error) {
			return nil, mcp.NewMethodNotFoundError(mcp.MethodListen)
		},
		"accepts nothing": func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			params := &mcp.AcknowledgedParams{Meta: mcp.Meta{}}
			params.Meta.Set(mcp.MetaSubscriptionID, req.ID)
			if err := req.Notify(ctx, mcp.NotificationAcknowledged, params); err != nil {
				return nil, err
			}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		},
		"accepts and is silent": func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			var p mcp.ListenParams
			if err := json.Unmarshal(req.Params(), &p); err != nil {
				return nil, err
			}
			params := &mcp.AcknowledgedParams{Notifications: p.Notifications, Meta: mcp.Meta{}}
			params.Meta.Set(mcp.MetaSubscriptionID, req.ID)
			if err := req.Notify(ctx, mcp.NotificationAcknowledged, params); err != nil {
				return nil, err
			}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newReplica(t, store.NewMemory(nil), &tasks.Options{PollInterval: 2 * time.Second, Lease: time.Hour}, nil)
				server := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
					if req.Method == mcp.MethodListen {
						return listen(ctx, req)
					}
					return r.mux.ServeMCP(ctx, req)
				})
				r.tool("slow", func(context.Context) (string, error) { <-time.After(9 * time.Second); return "done", nil })
				begun := time.Now()
				c, sent := connectCounting(t, server)
				for range 2 { // the client does not try to listen again
					if got, err := mcp.Call[string](t.Context(), c, "slow", nil); got != "done" || err != nil {
						t.Errorf("%q, %v", got, err)
					}
				}
				if name == "accepts and is silent" {
					if took := time.Since(begun); took > 25*time.Second || sent(tasks.MethodGet) > 2*3 { // the third after ten seconds
						t.Errorf("%d polls, two calls took %v", sent(tasks.MethodGet), took)
					}
					return
				}
				if took := time.Since(begun); sent(tasks.MethodGet) != 2*6 || sent(mcp.MethodListen) != 1 || took > 22*time.Second {
					t.Errorf("%d polls, %d subscriptions, %v", sent(tasks.MethodGet), sent(mcp.MethodListen), took)
				}
			})
		})
	}
}

// When the server stops pushing, because it shuts down or the connection is lost, the
// client polls immediately.
func TestClientPollsWhenPushesEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), &tasks.Options{PollInterval: time.Second, Lease: time.Hour}, nil)
		server := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != mcp.MethodListen {
				return r.mux.ServeMCP(ctx, req)
			}
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return r.mux.ServeMCP(ctx, req)
		})
		r.tool("slow", func(context.Context) (string, error) { <-time.After(4 * time.Second); return "done", nil })
		c, sent := connectCounting(t, server)
		begun := time.Now()
		if got, err := mcp.Call[string](t.Context(), c, "slow", nil); got != "done" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if took := time.Since(begun); took > 6*time.Second || sent(tasks.MethodGet) > 6 {
			t.Errorf("%d polls, %v", sent(tasks.MethodGet), took)
		}
	})
}

// A call that waits for its task fails when the connection is closed.
func TestClosedWhileATaskRuns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		r.tool("slow", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() })
		c, _ := connectCounting(t, r.mux)
		time.AfterFunc(3*time.Second, func() { _ = c.Close() })
		begun := time.Now()
		if _, err := mcp.Call[string](t.Context(), c, "slow", nil); !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(begun); took > 4*time.Second {
			t.Errorf("the call took %v", took)
		}
	})
}

// A call that waits for its task fails when the server's process ends.
func TestProcessEndsWhileATaskRuns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), &tasks.Options{PollInterval: time.Second, Lease: time.Hour}, nil)
		r.tool("slow", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() })
		near, far := transport.Pipe()
		ctx, kill := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- mcpstdio.ServeStream(ctx, r.mux, far, &mcpstdio.StreamOptions{DrainTimeout: -1}) }()
		c := mcptest.Dial(t, transport.FromStream(func(context.Context) (transport.Stream, error) { return near, nil }), options())
		time.AfterFunc(3*time.Second, func() { kill(); <-served; far.Close() })
		begun := time.Now()
		if got, err := mcp.Call[string](t.Context(), c, "slow", nil); err == nil {
			t.Errorf("got %q", got)
		}
		if took := time.Since(begun); took > 4*time.Second {
			t.Errorf("the call took %v", took)
		}
	})
}

// A client listens to at most 16 tasks at once, and to the next ones when those have ended.
func TestClientListensAgainAndAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), &tasks.Options{PollInterval: time.Hour, Lease: time.Hour}, nil)
		c, sent := connectCounting(t, r.mux)
		r.tool("slow", func(context.Context) (string, error) { <-time.After(time.Minute); return "done", nil })
		const rounds, atOnce = 3, 20
		for range rounds {
			var calls sync.WaitGroup
			for range atOnce {
				calls.Go(func() {
					if got, err := mcp.Call[string](t.Context(), c, "slow", nil); got != "done" || err != nil {
						t.Errorf("%q, %v", got, err)
					}
				})
			}
			calls.Wait()
		}
		if n := sent(mcp.MethodListen); n != rounds*16 {
			t.Errorf("subscriptions/listen was sent %d times, want %d", n, rounds*16)
		}
	})
}

// A server that pushes the same state again and again does not keep the client from polling.
func TestClientGetsTheSameStateAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), &tasks.Options{PollInterval: 2 * time.Second, Lease: time.Hour}, nil)
		r.tool("slow", func(context.Context) (string, error) {
			<-time.After(5 * time.Second)
			return "done", nil
		})
		server := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != mcp.MethodListen {
				return r.mux.ServeMCP(ctx, req)
			}
			notify := func(method string, params any, meta *mcp.Meta) error {
				meta.Set(mcp.MetaSubscriptionID, req.ID)
				return req.Notify(ctx, method, params)
			}
			var p mcp.ListenParams
			var ids []string
			if err := req.Decode(&p); err != nil || json.Unmarshal(p.Notifications.Extra["taskIds"], &ids) != nil {
				return nil, mcp.Errorf(mcp.CodeInvalidParams, "no taskIds: %w", err)
			}
			state, err := r.mux.ServeMCP(ctx, sender(nil, true).NewRequest(tasks.MethodGet, &tasks.GetParams{TaskID: ids[0]}))
			if err != nil {
				return nil, err
			}
			ack := &mcp.AcknowledgedParams{Notifications: p.Notifications}
			err = notify(mcp.NotificationAcknowledged, ack, &ack.Meta)
			for err == nil {
				note := &tasks.NotificationParams{DetailedTask: state.(*tasks.GetResult).DetailedTask}
				err = notify(tasks.NotificationTask, note, &note.Meta)
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
					err = context.Cause(ctx)
				}
			}
			return nil, err
		})
		c, _ := connectCounting(t, server)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if got, err := mcp.Call[string](ctx, c, "slow", nil); got != "done" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}
