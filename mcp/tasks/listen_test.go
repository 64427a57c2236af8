// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// listenTo subscribes to tasks until the test ends.
func listenTo(t *testing.T, r *replica, caller *mcp.Principal, ids ...string) *mcptest.Recorder {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	rec, ended := new(mcptest.Recorder), make(chan error)
	req := sender(caller, true).NewRequest(mcp.MethodListen, map[string]any{"notifications": map[string]any{"taskIds": ids, "toolsListChanged": true}})
	go func() {
		_, err := serve(ctx, r.mux, req, rec)
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && ctx.Err() == nil {
			t.Error("subscriptions/listen:", err)
		}
	})
	synctest.Wait()
	return rec
}

// pushed returns the acknowledged IDs and the states that were pushed for one task.
func pushed(t *testing.T, rec *mcptest.Recorder, id string) (acknowledged []string, states []tasks.Status, last tasks.NotificationParams) {
	t.Helper()
	for _, n := range rec.Notifications() {
		switch n.Method {
		case mcp.NotificationAcknowledged:
			var p struct {
				Notifications struct {
					TaskIDs []string `json:"taskIds"`
				} `json:"notifications"`
			}
			if err := n.Decode(&p); err != nil {
				t.Fatal(err)
			}
			acknowledged = p.Notifications.TaskIDs
		case tasks.NotificationTask:
			var p tasks.NotificationParams
			if err := n.Decode(&p); err != nil {
				t.Fatal(err)
			}
			if p.Meta[mcp.MetaSubscriptionID] == nil {
				t.Errorf("without a subscription: %s", n.Params)
			}
			if p.ID == id {
				states, last = append(states, p.Status), p
			}
		case mcp.NotificationToolsListChanged:
		default:
			t.Errorf("a listener got %s", n.Method)
		}
	}
	return acknowledged, states, last
}

// A listener receives every state of its tasks from any process, and nothing else about
// them.
func TestListen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		runs, watches := newReplica(t, shared, nil, nil), newReplica(t, shared, nil, nil)
		for _, r := range []*replica{runs, watches} {
			r.tool("ask", func(ctx context.Context) (string, error) {
				mcp.Progress(ctx, 1, 2, "begun")
				mcp.ClientLogger(ctx).InfoContext(ctx, "begun")
				<-time.After(time.Second)
				c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
				return c.Codec, err
			})
		}
		ada := &mcp.Principal{Subject: "ada"}
		h := start(t, runs.connectAs(t, ada), "ask")
		foreign := start(t, runs.connectAs(t, &mcp.Principal{Subject: "bob"}), "ask")
		rec := listenTo(t, watches, ada, foreign.ID, h.ID, "nonsense", strings.Repeat("a", 26), h.ID)
		d := until(t, h, tasks.InputRequired)
		synctest.Wait()
		if _, _, last := pushed(t, rec, h.ID); len(last.InputRequests) != 1 {
			t.Errorf("pushed without the question: %+v", last)
		}
		answer(t, h, d, av1)
		until(t, h, tasks.Completed)
		synctest.Wait()
		acknowledged, states, last := pushed(t, rec, h.ID)
		if !slices.Equal(acknowledged, []string{h.ID}) {
			t.Errorf("acknowledged: %v", acknowledged)
		}
		if want := []tasks.Status{tasks.Working, tasks.InputRequired, tasks.Working, tasks.Completed}; !slices.Equal(slices.Compact(states), want) {
			t.Errorf("pushed: %v", states)
		}
		if text(t, &last.DetailedTask) != "av1" {
			t.Errorf("pushed: %s", last.Result)
		}
		if _, states, _ := pushed(t, rec, foreign.ID); states != nil {
			t.Errorf("a foreign task was pushed: %v", states)
		}
		n := len(rec.Notifications())
		<-time.After(time.Minute)
		if again := rec.Notifications()[n:]; len(again) > 0 {
			t.Errorf("pushed again: %v", again)
		}
	})
}

// The last state is pushed even if all states occur in the same millisecond, and if all
// hints of other processes are lost.
func TestListenMissesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		runs, watches := newReplica(t, shared, nil, nil), newReplica(t, shared, nil, nil)
		runs.link.set(func(op, _ string) fault {
			if op == "publish" {
				return fails
			}
			return works
		})
		gate := make(chan struct{})
		runs.tool("fast", func(ctx context.Context) (string, error) {
			_, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			return "done", err
		})
		h := start(t, runs.connect(t), "fast")
		d := until(t, h, tasks.InputRequired)
		near, far := listenTo(t, runs, nil, h.ID), listenTo(t, watches, nil, h.ID)
		answer(t, h, d, av1)
		close(gate)
		synctest.Wait()
		if _, states, _ := pushed(t, near, h.ID); len(states) == 0 || states[len(states)-1] != tasks.Completed {
			t.Errorf("pushed where the task ran: %v", states)
		}
		<-time.After(10 * time.Second)
		if _, states, _ := pushed(t, far, h.ID); len(states) == 0 || states[len(states)-1] != tasks.Completed {
			t.Errorf("pushed by the other process: %v", states)
		}
	})
}

// If the store fails, a subscription is rejected rather than missing tasks.
func TestListenWithoutAStore(t *testing.T) {
	r := newReplica(t, store.NewMemory(nil), nil, nil)
	r.link.cut()
	req := sender(nil, true).NewRequest(mcp.MethodListen, map[string]any{"notifications": map[string]any{"taskIds": []string{strings.Repeat("a", 26)}}})
	if _, err := serve(t.Context(), r.mux, req, nil); mcp.CodeOf(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), "try again") {
		t.Error(err)
	}
}

// An engine that lost hints says so. The process continues with those that follow.
func TestHintsAfterAnOverflow(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		rare := &tasks.Options{PollInterval: time.Hour, Lease: time.Hour}
		runs, other := newReplica(t, overflowing{shared}, rare, nil), newReplica(t, shared, rare, nil)
		cancelled := make(chan struct{})
		runs.tool("work", func(ctx context.Context) (string, error) {
			<-ctx.Done()
			close(cancelled)
			return "", context.Cause(ctx)
		})
		h := tasks.Attach(other.connect(t), start(t, runs.connect(t), "work").ID)
		synctest.Wait()
		begun := time.Now()
		if err := h.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-cancelled
		if took := time.Since(begun); took > 0 {
			t.Errorf("the handler heard of the cancellation after %v", took)
		}
	})
}

// An overflowing store loses the first message of each subscription.
type overflowing struct{ store.Store }

func (s overflowing) Subscribe(ctx context.Context, topic string) (store.Subscription, error) {
	sub, err := s.Store.Subscribe(ctx, topic)
	return &overflowed{Subscription: sub}, err
}

type overflowed struct {
	store.Subscription
	once bool
}

func (s *overflowed) Next(ctx context.Context) ([]byte, error) {
	if !s.once {
		s.once = true
		return nil, store.ErrOverflow
	}
	return s.Subscription.Next(ctx)
}

// A state is pushed once, however often the task is checked, and two states are never taken for
// one because they occurred at the same time.
func TestEachStateIsPushedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		runs, watches := newReplica(t, shared, nil, nil), newReplica(t, shared, nil, nil)
		gate := make(chan struct{})
		runs.tool("work", func(ctx context.Context) (string, error) {
			<-gate
			c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			return c.Codec, err
		})
		h := start(t, runs.connect(t), "work")
		rec := listenTo(t, watches, nil, h.ID)
		<-time.After(time.Minute) // renewals of the lease are no changes
		if _, states, _ := pushed(t, rec, h.ID); !slices.Equal(states, []tasks.Status{tasks.Working}) {
			t.Errorf("pushed while nothing changed: %v", states)
		}
		close(gate)
		synctest.Wait()
		answer(t, h, state(t, h), av1) // in the same millisecond
		synctest.Wait()
		<-time.After(time.Minute)
		_, states, last := pushed(t, rec, h.ID)
		if len(states) < 2 || last.Status != tasks.Completed || len(states) != len(slices.Compact(slices.Clone(states))) {
			t.Errorf("pushed: %v", states)
		}
	})
}
