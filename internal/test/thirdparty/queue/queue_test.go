// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package queue_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"

	"example.com/thirdparty/queue"
)

// site is what the workers of a test share, as replicas do.
type site struct {
	served  atomic.Int64
	stopped chan error // receives the cause of a cancelled call
	muxes   []*mcp.Mux
}

// start starts workers of one subject, and returns a connected client whose messages are
// checked.
func (s *site) start(t *testing.T, workers int, opts *mcp.ClientOptions) *mcp.Conn {
	t.Helper()
	b, bus := new(queue.Broker), store.NewMemory(nil)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	for range workers {
		mux := s.mux(&mcp.MuxOptions{StateKeys: [][]byte{make([]byte, 32)}, Bus: bus})
		s.muxes = append(s.muxes, mux)
		go queue.Serve(ctx, b, "mcp", mux) // until cancel
	}
	synctest.Wait() // they have subscribed
	return mcptest.Dial(t, mcptest.Check(t, queue.NewTransport(b, "mcp")), opts)
}

func (s *site) mux(opts *mcp.MuxOptions) *mcp.Mux {
	mux := mcp.NewMux("worker", "v1.0.0", opts)
	mux.Tool("count", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (int, error) {
		s.served.Add(1)
		for i := range 3 {
			mcp.Progress(ctx, float64(i+1), 3, "counting")
		}
		return 3, nil
	}, nil))
	mux.Tool("greet", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		who, err := mcp.Elicit[struct {
			Name string `json:"name"`
		}](ctx, "who", "Your name?")
		return "Hello, " + who.Name, err
	}, nil))
	mux.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		s.stopped <- context.Cause(ctx)
		return "", ctx.Err()
	}, nil))
	return mux
}

// Calls are answered, with the notifications about them in order, by any of the workers.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(site)
		c := s.start(t, 3, nil)
		var seen []float64
		ctx := mcp.WithProgress(t.Context(), func(p *mcp.ProgressParams) { seen = append(seen, p.Progress) })
		if got, err := mcp.Call[int](ctx, c, "count", nil); err != nil || got != 3 {
			t.Fatalf("got %d, %v", got, err)
		}
		synctest.Wait()
		if !slices.Equal(seen, []float64{1, 2, 3}) {
			t.Errorf("progress %v", seen)
		}
		if _, err := mcp.Call[string](t.Context(), c, "none", nil); mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Errorf("an unknown tool: %v", err)
		}
	})
}

// A question is answered at a worker, and the call is continued by another one.
func TestQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(site).start(t, 2, &mcp.ClientOptions{
			Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				return mcp.AcceptElicit(map[string]string{"name": "Ada"})
			},
		})
		if got, err := mcp.Call[string](t.Context(), c, "greet", nil); err != nil || got != "Hello, Ada" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// A caller that no longer waits stops its handler, and only that one.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{stopped: make(chan error, 1)}
		c := s.start(t, 1, nil)
		ctx, cancel := context.WithCancel(t.Context())
		called := make(chan error, 1)
		go func() {
			_, err := mcp.Call[string](ctx, c, "wait", nil)
			called <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-called; !errors.Is(err, context.Canceled) {
			t.Errorf("the call returned %v", err)
		}
		if _, ok := errors.AsType[*mcp.CancelError](<-s.stopped); !ok {
			t.Error("the handler was not cancelled by its client")
		}
		if got, err := mcp.Call[int](t.Context(), c, "count", nil); err != nil || got != 3 {
			t.Errorf("afterwards got %d, %v", got, err)
		}
	})
}

// A subscription is a call that lasts: changes at any worker arrive.
func TestSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(site)
		c := s.start(t, 2, nil)
		changes := make(chan mcp.Change, 8)
		sub, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(change mcp.Change) { changes <- change })
		if err != nil {
			t.Fatal(err)
		}
		for _, mux := range s.muxes {
			mux.Tool("more", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil))
			if got := <-changes; got.Method != mcp.NotificationToolsListChanged {
				t.Errorf("got %+v", got)
			}
		}
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
	})
}
