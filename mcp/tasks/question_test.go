// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

const av1 = `{"action":"accept","content":{"codec":"av1"}}`

// Answers may arrive one at a time. Unknown keys and repeated answers are ignored.
func TestPartialAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		r.tool("ask", func(ctx context.Context) (string, error) {
			var video, audio codec
			err := mcp.Ask(ctx, mcp.ElicitQuestion("video", "Video?", &video), mcp.ElicitQuestion("audio", "Audio?", &audio))
			return video.Codec + " " + audio.Codec, err
		})
		h := start(t, r.connect(t), "ask")
		until(t, h, tasks.InputRequired)
		update := func(answers map[string]json.RawMessage) *tasks.DetailedTask {
			t.Helper()
			if err := h.Update(t.Context(), answers); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return state(t, h)
		}
		if d := update(map[string]json.RawMessage{"nonsense": json.RawMessage(av1)}); len(d.InputRequests) != 2 {
			t.Errorf("after an unknown key: %+v", d)
		}
		if d := update(map[string]json.RawMessage{"video": json.RawMessage(av1)}); len(d.InputRequests) != 1 || d.Status != tasks.InputRequired {
			t.Errorf("after one answer: %+v", d)
		}
		if d := update(map[string]json.RawMessage{"video": json.RawMessage(`{"action":"decline"}`)}); len(d.InputRequests) != 1 {
			t.Errorf("after the same answer again: %+v", d)
		}
		update(map[string]json.RawMessage{"audio": json.RawMessage(`{"action":"accept","content":{"codec":"h265"}}`)})
		if got := text(t, until(t, h, tasks.Completed)); got != "av1 h265" {
			t.Error(got)
		}
		update(map[string]json.RawMessage{"audio": json.RawMessage(av1)}) // too late, but not an error
	})
}

// If a handler changes the question under its key, the new question gets another key. The
// client never sees one key for two questions.
func TestKeysAreNeverUsedTwice(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		runs := 0
		r.tool("ask", func(ctx context.Context) (string, error) {
			runs++
			_, err := mcp.Elicit[codec](ctx, "codec", fmt.Sprint("Question ", min(runs, 3)))
			return "done", err
		})
		h := start(t, r.connect(t), "ask")
		seen := map[string]string{}
		for range 3 {
			d := until(t, h, tasks.InputRequired)
			for key, q := range d.InputRequests {
				if before, ok := seen[key]; ok && before != string(q.Params) {
					t.Errorf("%q is the key of %s and of %s", key, before, q.Params)
				}
				seen[key] = string(q.Params)
			}
			answer(t, h, d, av1)
			synctest.Wait()
		}
		until(t, h, tasks.Completed)
		if len(seen) != 3 {
			t.Errorf("keys: %v", slices.Sorted(maps.Keys(seen)))
		}
	})
}

// Many clients answer concurrently, and each question gets one answer.
func TestSeveralClientsAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared, steps := store.NewMemory(nil), new(ledger)
		replicas := []*replica{newReplica(t, shared, nil, nil), newReplica(t, shared, nil, nil)}
		for _, r := range replicas {
			r.tool("ask", func(ctx context.Context) (string, error) {
				var questions []mcp.Question
				answers := make([]codec, 8)
				for i := range answers {
					questions = append(questions, mcp.ElicitQuestion(fmt.Sprint(i), fmt.Sprint("Question ", i), &answers[i]))
				}
				if err := mcp.Ask(ctx, questions...); err != nil {
					return "", err
				}
				steps.run("end")
				return fmt.Sprint(answers), nil
			})
		}
		first := start(t, replicas[0].connect(t), "ask")
		d := until(t, first, tasks.InputRequired)
		var wg sync.WaitGroup
		for n, r := range replicas {
			h := tasks.Attach(r.connect(t), first.ID)
			for key := range d.InputRequests {
				wg.Go(func() {
					content := []string{av1, strings.Replace(av1, "av1", "h265", 1)}[n]
					if err := h.Update(context.Background(), map[string]json.RawMessage{key: json.RawMessage(content)}); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		until(t, first, tasks.Completed)
		if n := steps.count("end"); n != 1 {
			t.Errorf("the handler came to its end %d times", n)
		}
	})
}

// A handler can ask with its own result and state, more than once.
func TestHandlerAsksByItself(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		r.background.Tool("ask", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			var p struct {
				State   string                     `json:"requestState"`
				Answers map[string]json.RawMessage `json:"inputResponses"`
			}
			if err := json.Unmarshal(req.Params(), &p); err != nil {
				return nil, err
			}
			if len(p.State) == 2 {
				return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text(fmt.Sprint(p.State, " ", len(p.Answers)))}}, nil
			}
			next := p.State + "x"
			question := mcp.InputRequest{Method: mcp.MethodElicit, Params: json.RawMessage(
				`{"message":"Round ` + next + `","requestedSchema":{"type":"object","properties":{"codec":{"type":"string"}}}}`)}
			return &mcp.InputRequired{InputRequests: map[string]mcp.InputRequest{"q": question}, RequestState: &next}, nil
		}))
		h := start(t, r.connect(t), "ask")
		var keys []string
		for range 2 {
			d := until(t, h, tasks.InputRequired)
			keys = append(keys, slices.Collect(maps.Keys(d.InputRequests))...)
			answer(t, h, d, av1)
			synctest.Wait()
		}
		if got := text(t, until(t, h, tasks.Completed)); got != "xx 1" || len(keys) != 2 || keys[0] == keys[1] {
			t.Errorf("%q with the keys %v", got, keys)
		}
	})
}

// Questions asked before the call becomes a task are ordinary questions. Earlier answers
// and steps are kept when it does, even if nothing has been asked or remembered in that run
// yet.
func TestAfterKeepsWhatWasRemembered(t *testing.T) {
	for _, early := range []bool{true, false} {
		t.Run(fmt.Sprint("remembered early=", early), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				shared, steps := store.NewMemory(nil), new(ledger)
				var first *replica
				tool := func(ctx context.Context) (string, error) {
					steps.run("all")
					second := steps.count("all") == 2
					if second && !early {
						<-time.After(5 * time.Second) // the call becomes a task here
					}
					if err := steps.once(ctx, "step"); err != nil {
						return "", err
					}
					c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
					if err != nil {
						return "", err
					}
					if second {
						<-time.After(5 * time.Second)
						if err := steps.once(ctx, "late"); err != nil {
							return "", err
						}
						first.link.cut()
						<-ctx.Done()
						return "", context.Cause(ctx)
					}
					return c.Codec, nil
				}
				after := &tasks.BackgroundOptions{After: time.Second}
				first = newReplica(t, shared, nil, after)
				first.tool("ask", tool)
				other := newReplica(t, shared, nil, after)
				other.tool("ask", tool)
				h := start(t, first.connect(t), "ask")
				if got := text(t, until(t, tasks.Attach(other.connect(t), h.ID), tasks.Completed)); got != "av1" {
					t.Error(got)
				}
				if again := steps.repeated(); len(again) != 1 || steps.count("all") != 3 {
					t.Errorf("run again: %v", again)
				}
			})
		})
	}
}

// The answers with which a call became a task are stored when its handler first reads them,
// because the state in which they arrived cannot be used again.
func TestAnswersReadInATask(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		shared, runs := store.NewMemory(nil), new(ledger)
		after := &tasks.BackgroundOptions{After: time.Second}
		first, other := newReplica(t, shared, nil, after), newReplica(t, shared, nil, after)
		tool := func(ctx context.Context) (string, error) {
			runs.run("tool")
			if runs.count("tool") == 2 {
				<-time.After(5 * time.Second) // the call becomes a task here
			}
			c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			if err == nil && runs.count("tool") == 2 {
				first.link.cut()
				<-ctx.Done()
				return "", context.Cause(ctx)
			}
			return c.Codec, err
		}
		first.tool("ask", tool)
		other.tool("ask", tool)
		h := tasks.Attach(other.connect(t), start(t, first.connect(t), "ask").ID)
		if got := text(t, until(t, h, tasks.Completed)); got != "av1" || runs.count("tool") != 3 {
			t.Errorf("%q after %d runs", got, runs.count("tool"))
		}
	})
}

// A call that could not become a task tries again after the poll interval. Its outcome is then
// that of the task, even if it is an error.
func TestAfterTriesAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, &tasks.BackgroundOptions{After: time.Second})
		r.background.Tool("fail", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			<-time.After(5 * time.Second)
			return nil, mcp.Errorf(mcp.CodeInvalidParams, "no such codec")
		}))
		r.link.cut()
		time.AfterFunc(1500*time.Millisecond, func() { r.link.set(nil) })
		h := start(t, r.connect(t), "fail")
		if d := until(t, h, tasks.Failed); d.Error == nil || d.Error.Message != "no such codec" {
			t.Errorf("the error is %v", d.Error)
		}
	})
}

// A call that cannot become a task because the store fails stays an ordinary call and keeps
// everything that it remembers.
func TestAfterWithoutAStore(t *testing.T) {
	for _, f := range []fault{fails, unheard, hangs} {
		t.Run(fmt.Sprint("fault ", f), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				steps := new(ledger)
				shared := store.NewMemory(nil)
				r := newReplica(t, shared, nil, &tasks.BackgroundOptions{After: time.Second})
				tool := func(ctx context.Context) (string, error) {
					for i := range 5 {
						<-time.After(300 * time.Millisecond)
						if err := steps.once(ctx, fmt.Sprint("step ", i)); err != nil {
							return "", err
						}
					}
					c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
					return c.Codec, err
				}
				r.tool("ask", tool)
				r.link.set(func(op, key string) fault {
					if op == "put" && kindOf(key) == "task" {
						return f
					}
					return works
				})
				h, res, err := tasks.Start(t.Context(), r.connect(t), &mcp.CallToolParams{Name: "ask", Arguments: json.RawMessage("{}")})
				if err != nil || h != nil || res.IsError {
					t.Fatalf("%v, %+v, %v", h, res, err)
				}
				r.link.set(nil)
				<-time.After(time.Minute) // a sweeper finds nothing to run
				if again := steps.repeated(); again != nil {
					t.Error("run again:", again)
				}
			})
		})
	}
}
