// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// hostile and victim are two callers of a server.
var hostile, victim = &mcp.Principal{Subject: "hostile"}, &mcp.Principal{Subject: "victim"}

// Limits on the number of tasks are exact, except for those that apply to all callers
// together, which refuse no call before nine tenths.
func TestFindingK8LimitsRefuseAtWhatTheySay(t *testing.T) {
	for name, test := range map[string]struct {
		opts   func(limit int) (opts *tasks.Options, working int)
		caller *mcp.Principal
		exact  bool
	}{
		"of a caller": {func(limit int) (*tasks.Options, int) { return &tasks.Options{MaxPerCaller: limit}, 0 }, victim, true},
		"anonymous":   {func(limit int) (*tasks.Options, int) { return &tasks.Options{MaxPerCaller: limit / 10}, 0 }, nil, false},
		"working": {func(limit int) (*tasks.Options, int) {
			return &tasks.Options{MaxRunning: 1, MaxPerCaller: math.MaxInt}, limit
		}, victim, false},
	} {
		for _, limit := range []int{1, 7, 100, 320, 1000, 10_000} {
			if limit < 10 && name == "anonymous" {
				continue // a caller may have one task
			}
			if limit == 10_000 && name != "anonymous" {
				continue // it takes long
			}
			t.Run(fmt.Sprint(name, "=", limit), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					opts, working := test.opts(limit)
					opts.TTL, opts.Lease = time.Hour, time.Hour
					r := newReplicaWithin(t, store.NewMemory(nil), opts, nil, working)
					gate := make(chan struct{})
					t.Cleanup(func() { close(gate) })
					r.tool("quick", func(context.Context) (string, error) {
						if name == "working" {
							<-gate
						}
						return "", nil
					})
					c := r.connectAs(t, test.caller)
					started, first, refusals := 0, 0, 0
					for refusals < 20 {
						_, _, err := tasks.Start(t.Context(), c, quickCall)
						switch _, limited := mcp.RetryAfter(err); {
						case err == nil:
							started++
						case !limited:
							t.Fatal(err)
						case refusals == 0:
							first = started
							fallthrough
						default:
							refusals++
						}
					}
					if started > limit || first < limit-limit/10 || test.exact && first != limit {
						t.Errorf("the first refusal came after %d tasks; %d were started", first, started)
					}
				})
			})
		}
	}
}

// A task that was accepted goes on after an answer, however many tasks are working.
func TestFindingK8AcceptedTasksGoOn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplicaWithin(t, store.NewMemory(nil), &tasks.Options{MaxRunning: 1, PollInterval: time.Second}, nil, 2)
		r.tool("ask", func(ctx context.Context) (string, error) {
			c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			return c.Codec, err
		})
		r.tool("slow", func(context.Context) (string, error) { <-time.After(10 * time.Second); return "", nil })
		c := r.connectAs(t, victim)
		asks := start(t, c, "ask")
		waiting := until(t, asks, tasks.InputRequired)
		start(t, c, "slow") // takes the slot
		start(t, c, "slow")
		if _, _, err := tasks.Start(t.Context(), c, &mcp.CallToolParams{Name: "slow"}); err == nil {
			t.Error("the list is not full")
		}
		answer(t, asks, waiting, `{"action":"accept","content":{"codec":"av1"}}`)
		if d := until(t, asks, tasks.Completed); text(t, d) != "av1" {
			t.Errorf("%+v", d)
		}
	})
}

// The longest TTL is no reason to refuse tasks.
func TestFindingK13LongestTTL(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for name, opts := range map[string]*tasks.Options{"longest": {TTL: math.MaxInt64}, "almost": {TTL: math.MaxInt64 - time.Minute}} {
			for _, caller := range []*mcp.Principal{nil, victim} {
				r := newReplica(t, store.NewMemory(nil), opts, nil)
				r.tool("quick", func(context.Context) (string, error) { return "done", nil })
				if d := until(t, start(t, r.connectAs(t, caller), "quick"), tasks.Completed); *d.TTLMs < math.MaxInt64/2_000_000 {
					t.Errorf("%s: the TTL is %d ms", name, *d.TTLMs)
				}
			}
		}
	})
}

// One caller cannot fill the store: its tasks have a limit in bytes, whatever makes them
// large. Other callers notice nothing.
func TestFindingX8OneCallerCannotFillTheStore(t *testing.T) {
	const piece = 64 << 10
	large := strings.Repeat("x", piece)
	for name, test := range map[string]struct {
		tool      string
		arguments string
	}{
		"results":        {"result", "{}"},
		"slow results":   {"slow", "{}"},
		"requests":       {"wait", `{"x":"` + large + `"}`},
		"values of Once": {"once", "{}"},
		"questions":      {"ask", "{}"},
		"small requests": {"wait", `{"x":"` + large[:7<<10] + `"}`},
		"small results":  {"small", "{}"},
	} {
		for _, caller := range []*mcp.Principal{hostile, nil} {
			t.Run(fmt.Sprintf("%s/authenticated=%v", name, caller != nil), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					const calls, limit = 100, 512 << 10
					shared := store.NewMemory(nil)
					opts := &tasks.Options{TTL: time.Hour, Lease: time.Minute, MaxBytes: limit, MaxRunning: 2000, MaxPerCaller: 2000}
					r := newReplica(t, shared, opts, nil)
					r.tool("result", func(context.Context) (string, error) { return large, nil })
					r.tool("slow", func(context.Context) (string, error) { <-time.After(time.Second); return large, nil })
					r.tool("small", func(context.Context) (string, error) { return large[:7<<10], nil })
					r.tool("once", func(ctx context.Context) (string, error) {
						_, err := mcp.Once(ctx, "step", func(context.Context) (string, error) { return large, nil })
						<-ctx.Done()
						return "", errors.Join(err, context.Cause(ctx))
					})
					r.tool("ask", func(ctx context.Context) (string, error) {
						_, err := mcp.Elicit[codec](ctx, "codec", large)
						return "", err
					})
					r.background.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ struct {
						X string `json:"x"`
					}) (string, error) {
						<-ctx.Done()
						return "", context.Cause(ctx)
					}, nil))
					c := r.connectAs(t, caller)
					refused := 0
					for range calls {
						h, _, err := tasks.Start(t.Context(), c, &mcp.CallToolParams{Name: test.tool, Arguments: json.RawMessage(test.arguments)})
						_, limited := mcp.RetryAfter(err)
						switch {
						case limited:
							refused++
							if !strings.Contains(err.Error(), "the limit is 524288") {
								t.Fatal(err)
							}
						case err != nil:
							t.Fatal(err)
						case h == nil:
							t.Fatal("the call did not become a task")
						}
					}
					<-time.After(5 * time.Second)
					if kept := sizeOf(t, shared); kept > limit+calls*(smallTask+1000) || kept < limit/2 {
						t.Errorf("the store keeps %d bytes of %d calls, of which %d were refused", kept, calls, refused)
					}
					if refused == 0 && (strings.HasPrefix(name, "small") || name == "requests") {
						t.Error("no call was refused")
					}
					begun := time.Now()
					until(t, start(t, r.connectAs(t, victim), "result"), tasks.Completed)
					if took := time.Since(begun); took > time.Second {
						t.Errorf("the other caller waited for %v", took)
					}
				})
			})
		}
	}
}

// smallTask is the size up to which tasks are only counted.
const smallTask = 2 << 10

// sizeOf returns how much of a store with default options is used.
func sizeOf(t *testing.T, s *store.Memory) (used int) {
	t.Helper()
	const piece = 64 << 10
	for free := 0; ; free += piece {
		if _, err := s.Put(t.Context(), fmt.Sprint("free/", free), make([]byte, piece-200), 0, time.Nanosecond); errors.Is(err, store.ErrFull) {
			<-time.After(time.Millisecond)
			return 64<<20 - free
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// A task whose result does not fit fails, and says why. What the caller has kept stays.
func TestFindingX8ResultThatDoesNotFit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), &tasks.Options{MaxBytes: 100 << 10, TTL: time.Hour}, nil)
		r.tool("work", func(context.Context) (string, error) {
			<-time.After(time.Second)
			return strings.Repeat("x", 60<<10), nil
		})
		c := r.connectAs(t, hostile)
		first, second := start(t, c, "work"), start(t, c, "work")
		until(t, first, tasks.Completed)
		d := until(t, second, tasks.Failed)
		if d.Error == nil || d.Error.Code != mcp.CodeTooLarge || !strings.Contains(d.Error.Message, "the limit is 102400") {
			t.Errorf("%+v, %v", d, d.Error)
		}
		<-time.After(time.Hour + time.Minute)
		until(t, start(t, c, "work"), tasks.Completed)
	})
}

// If the store is full, a call is an ordinary one, or is refused, without a delay. It leaves
// nothing in the store.
func TestFindingX8FullStore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		r := newReplica(t, shared, &tasks.Options{Lease: time.Minute}, nil)
		r.tool("result", func(context.Context) (string, error) { return strings.Repeat("x", 1<<20), nil })
		r.tool("slow", func(context.Context) (string, error) { <-time.After(time.Second); return "", nil })
		for i := 0; ; i++ { // leaves less than 600 KiB
			if _, err := shared.Put(t.Context(), fmt.Sprint("full/", i), make([]byte, 600<<10), 0, 0); err != nil {
				break
			}
		}
		before := sizeOf(t, shared)
		c, begun := r.connectAs(t, victim), time.Now()
		for range 3 {
			h, res, err := tasks.Start(t.Context(), c, &mcp.CallToolParams{Name: "result"})
			if h != nil || res == nil || err != nil {
				t.Errorf("%v, %v", h, err)
			}
		}
		for i := 0; ; i++ {
			if _, err := shared.Put(t.Context(), fmt.Sprint("fuller/", i), make([]byte, 100), 0, 0); err != nil {
				break
			}
		}
		if _, _, err := tasks.Start(t.Context(), c, &mcp.CallToolParams{Name: "slow"}); err == nil || !strings.Contains(err.Error(), "tasks cannot be stored at the moment") {
			t.Errorf("slow: %v", err)
		}
		if took := time.Since(begun); took > 100*time.Millisecond {
			t.Errorf("the calls took %v", took)
		}
		if after := sizeOf(t, shared); before > after+64<<10 {
			t.Errorf("the store had %d bytes before, and %d after", before, after)
		}
	})
}

// A caller whose tasks do not end does not occupy all slots, and neither do several together,
// unless there are few.
func TestFindingX11SlowTasksLeaveSlots(t *testing.T) {
	for _, slots := range []int{4, 8, 64} {
		for callers := 1; callers <= 1+slots/32; callers++ {
			t.Run(fmt.Sprint(callers, " on ", slots), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					r := newReplica(t, store.NewMemory(nil), &tasks.Options{MaxRunning: slots, Lease: time.Minute}, nil)
					running := new(ledger)
					r.tool("slow", func(ctx context.Context) (string, error) {
						running.run(mcp.PrincipalFromContext(ctx).Subject)
						<-ctx.Done()
						return "", context.Cause(ctx)
					})
					r.tool("quick", func(context.Context) (string, error) { return "done", nil })
					total := 0
					for i := range callers {
						name := fmt.Sprint("hostile ", i)
						c := r.connectAs(t, &mcp.Principal{Subject: name})
						for range 2 * slots {
							start(t, c, "slow")
						}
						synctest.Wait()
						total += running.count(name)
					}
					if total >= slots || callers == 1 && total != slots*3/4 {
						t.Errorf("%d of %d slots are occupied", total, slots)
					}
					begun := time.Now()
					until(t, start(t, r.connectAs(t, victim), "quick"), tasks.Completed)
					if took := time.Since(begun); took > time.Second {
						t.Errorf("the victim waited for %v", took)
					}
				})
			})
		}
	}
}

// When a caller has its share of the slots, the task of the next caller runs, and the tasks
// that wait run as the others end.
func TestFindingX11SharesArePassedOn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), &tasks.Options{MaxRunning: 8, Lease: time.Minute}, nil)
		r.tool("quick", func(context.Context) (string, error) { <-time.After(time.Second); return "done", nil })
		c := (&mcptest.Client{Principal: hostile, Options: *options()}).Connect(t, r.mux)
		var handles []*tasks.Handle
		for range 24 {
			handles = append(handles, start(t, c, "quick"))
		}
		begun := time.Now()
		for _, h := range handles {
			until(t, h, tasks.Completed)
		}
		if took := time.Since(begun); took > 5*time.Second { // six at a time
			t.Errorf("24 tasks of a second took %v", took)
		}
	})
}
