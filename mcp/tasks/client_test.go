// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcphttp"
)

// Status messages reach the progress callback.
func TestClientProgress(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		r.tool("work", func(ctx context.Context) (string, error) {
			for i := range 3 {
				mcp.Progress(ctx, float64(i+1), 3, "step")
				<-time.After(time.Second)
			}
			return "done", nil
		})
		var messages []string
		ctx := mcp.WithProgress(t.Context(), func(p *mcp.ProgressParams) { messages = append(messages, p.Message) })
		got, err := mcp.Call[string](ctx, r.connect(t), "work", struct{}{})
		if want := []string{"step (1 of 3)", "step (2 of 3)", "step (3 of 3)"}; got != "done" || err != nil || !slices.Equal(messages, want) {
			t.Errorf("%q, %v with %q", got, err, messages)
		}
	})
}

// If the caller gives up, the task is cancelled and the call returns the cause.
func TestClientGivesUp(t *testing.T) {
	for _, waits := range []bool{false, true} {
		t.Run(fmt.Sprint("asked=", waits), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newReplica(t, store.NewMemory(nil), nil, nil)
				ended := make(chan error, 1)
				r.tool("work", func(ctx context.Context) (string, error) {
					if waits {
						_, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
						return "", err
					}
					<-ctx.Done()
					ended <- context.Cause(ctx)
					return "", context.Cause(ctx)
				})
				opts := options()
				opts.Elicit = func(ctx context.Context, _ *mcp.Conn, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
				c := (&mcptest.Client{Options: *opts}).Connect(t, r.mux)
				enough := errors.New("enough")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(3*time.Second, func() { cancel(enough) })
				if _, err := mcp.Call[string](ctx, c, "work", struct{}{}); !errors.Is(err, enough) && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				if !waits {
					var cancelled *mcp.CancelError
					if err := <-ended; !errors.As(err, &cancelled) {
						t.Errorf("the handler ended with %v", err)
					}
				}
			})
		})
	}
}

// If the caller gives up during a poll, the task is cancelled, too, whatever the cause. In
// a gateway, the cause is that its own client has closed the connection.
func TestClientGivesUpDuringAPoll(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		r.tool("work", func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		cancelled := false
		opts := options()
		opts.Extensions = append(opts.Extensions, flaky(func(req *mcp.Request) error {
			cancelled = cancelled || req.Method == tasks.MethodCancel
			if req.Method == tasks.MethodGet {
				cancel(mcp.ErrClosed)
			}
			return nil
		}))
		c := (&mcptest.Client{Options: *opts}).Connect(t, r.mux)
		if _, err := mcp.Call[string](ctx, c, "work", struct{}{}); !errors.Is(err, mcp.ErrClosed) || !cancelled {
			t.Errorf("%v, and tasks/cancel was sent: %v", err, cancelled)
		}
	})
}

// If the client cannot answer a question, the task is cancelled and the call fails like any
// other whose question is not answered.
func TestClientCannotAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		r.tool("ask", func(ctx context.Context) (string, error) {
			_, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			return "", err
		})
		opts := options()
		opts.Elicit = func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return nil, errors.New("no user")
		}
		cancelled := false
		opts.Extensions = append(opts.Extensions, flaky(func(req *mcp.Request) error {
			cancelled = cancelled || req.Method == tasks.MethodCancel
			return nil
		}))
		c := (&mcptest.Client{Options: *opts}).Connect(t, r.mux)
		var failed *mcp.ToolError
		if _, err := mcp.Call[string](t.Context(), c, "ask", struct{}{}); !errors.As(err, &failed) || !strings.Contains(err.Error(), "no user") {
			t.Error(err)
		}
		if !cancelled {
			t.Error("the task was not cancelled")
		}
	})
}

// Requests about the task that fail because of the connection, or because the server is
// busy or shutting down, are retried, so that another process can answer. The user is asked
// once.
func TestClientOnAFlakyConnection(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		r.tool("ask", func(ctx context.Context) (string, error) {
			c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			return c.Codec, err
		})
		var asked atomic.Int64
		sent := map[string]int{}
		shutdown := mcp.Errorf(mcp.CodeInternalError, "the server is shutting down")
		shutdown.Cause = &mcphttp.StatusError{Status: http.StatusServiceUnavailable}
		opts := options()
		opts.Elicit = func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			asked.Add(1)
			return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: json.RawMessage(`{"codec":"av1"}`)}, nil
		}
		opts.Extensions = append(opts.Extensions, flaky(func(req *mcp.Request) error {
			if !strings.HasPrefix(req.Method, "tasks/") {
				return nil
			}
			sent[req.Method]++
			return []error{nil, errDown, mcp.NewRateLimitedError(time.Second, "busy"), errDown, shutdown}[sent[req.Method]%5]
		}))
		c := (&mcptest.Client{Options: *opts}).Connect(t, r.mux)
		if got, err := mcp.Call[string](t.Context(), c, "ask", struct{}{}); got != "av1" || err != nil || asked.Load() != 1 {
			t.Errorf("%q, %v; asked %d times", got, err, asked.Load())
		}
	})
}

// flaky returns a client extension that calls fail for each request, which may make it fail.
func flaky(fail func(*mcp.Request) error) *mcp.ClientExtension {
	return &mcp.ClientExtension{ID: "com.example/flaky", Middleware: func(*mcp.Conn) mcp.Middleware {
		return func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if err := fail(req); err != nil {
					return nil, err
				}
				return next.ServeMCP(ctx, req)
			})
		}
	}}
}

// The timeout of a call does not run between polls, so a task may take longer.
func TestClientTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), &tasks.Options{PollInterval: 20 * time.Second}, nil)
		r.tool("work", func(context.Context) (string, error) { <-time.After(time.Minute); return "done", nil })
		opts := options()
		opts.CallTimeout = 5 * time.Second
		c := (&mcptest.Client{Options: *opts}).Connect(t, r.mux)
		if got, err := mcp.Call[string](t.Context(), c, "work", struct{}{}); got != "done" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A client that reconnects can attach to its task and wait for it.
func TestAttachAndWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		r.tool("ask", func(ctx context.Context) (string, error) {
			<-time.After(5 * time.Second)
			c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			return c.Codec, err
		})
		first := r.connect(t)
		id := start(t, first, "ask").ID
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		h := tasks.Attach(r.connect(t), id)
		for range 2 { // the second time, it has already ended
			res, err := h.Wait(t.Context())
			if err != nil || res.IsError || res.Content[0].(*mcp.TextContent).Text != "av1" {
				t.Errorf("%+v, %v", res, err)
			}
		}
		if _, err := tasks.Attach(r.connect(t), strings.Repeat("a", 26)).Wait(t.Context()); mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Errorf("an unknown task: %v", err)
		}
	})
}

// If the server's answer is neither a result nor a task, the call fails. Odd poll intervals
// are limited.
func TestClientAndOddServers(t *testing.T) {
	for name, test := range map[string]struct{ created, got, want string }{
		"no ID":           {`{"resultType":"task","status":"working"}`, `{}`, "neither a result nor a task"},
		"another type":    {`{"resultType":"task","taskId":7}`, `{}`, "the server's answer"},
		"odd interval":    {`{"resultType":"task","taskId":"x","status":"working","ttlMs":null,"pollIntervalMs":9223372036854775807}`, `{"taskId":"x","status":"failed","ttlMs":null}`, "the task failed"},
		"another ID":      {`{"resultType":"task","taskId":"x","status":"working","ttlMs":null}`, `{"taskId":"y","status":"cancelled","ttlMs":null}`, "cancelled"},
		"no result":       {`{"resultType":"task","taskId":"x","status":"working","ttlMs":null}`, `{"taskId":"x","status":"completed","ttlMs":null}`, ""},
		"result is a 7":   {`{"resultType":"task","taskId":"x","status":"working","ttlMs":null}`, `{"taskId":"x","status":"completed","ttlMs":null,"result":7}`, ""},
		"params in error": {`{"resultType":"task","taskId":"x","status":"working","ttlMs":null}`, `{"taskId":"x","status":"failed","ttlMs":null,"error":{"code":-32050,"message":"on fire"}}`, "on fire"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				mux := mcp.NewMux("odd", "1", nil)
				mux.Use(func(next mcp.Handler) mcp.Handler {
					return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
						raw := map[string]string{mcp.MethodCallTool: test.created, tasks.MethodGet: test.got}[req.Method]
						if raw == "" {
							return next.ServeMCP(ctx, req)
						}
						return rawResult(t, raw), nil
					})
				})
				client := mcp.NewClient("test", "1", options())
				c, err := client.Connect(t.Context(), mcp.InProcess(mux))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if _, err := mcp.Call[string](t.Context(), c, "tool", struct{}{}); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Error(err)
				}
			})
		})
	}
}

// rawResult returns a result with the members of raw.
func rawResult(t *testing.T, raw string) mcp.Result {
	res := &mcp.EmptyResult{}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(raw), &members); err != nil {
		t.Fatal(err)
	}
	if kind, ok := members["resultType"]; ok {
		res.ResultType = strings.Trim(string(kind), `"`)
		delete(members, "resultType")
	}
	res.Extra = members
	return res
}

// No goroutine is left after tasks, clients and managers have ended.
func TestNoLeaks(t *testing.T) {
	mcptest.NoLeaks(t)
	t.Run("", func(t *testing.T) {
		f := newFarm(t, nil, nil)
		c := mcptest.Dial(t, mcp.InProcess(f.mux), options())
		for range 20 {
			if _, err := mcp.Call[string](t.Context(), c, "ask", nil); err != nil {
				t.Error(err)
			}
		}
		h := start(t, c, "wait")
		<-f.begun
		if err := h.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		start(t, c, "wait")
		<-f.begun
	})
}

// A task that failed for an unknown reason says so.
func TestFindingY15FailedWithoutReason(t *testing.T) {
	for message, want := range map[string]string{"": "the task failed; the server does not say why", "no disk": "the task failed: no disk"} {
		failed := tasks.Task{ID: "t", Status: tasks.Failed, StatusMessage: message, CreatedAt: time.Now(), LastUpdatedAt: time.Now()}
		server := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			switch req.Method {
			case mcp.MethodCallTool:
				return &tasks.CreateResult{ResultBase: mcp.ResultBase{ResultType: tasks.ResultTask}, Task: failed}, nil
			case tasks.MethodGet:
				return &tasks.GetResult{DetailedTask: tasks.DetailedTask{Task: failed}}, nil
			}
			return &mcp.DiscoverResult{SupportedVersions: mcp.ModernVersions(), Capabilities: &mcp.ServerCapabilities{}}, nil
		})
		c, err := mcp.NewClient("c", "v1", &mcp.ClientOptions{Extensions: []*mcp.ClientExtension{tasks.Client()}}).Connect(t.Context(), mcp.InProcess(server))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "t"}); err == nil || err.Error() != want+" (code -32603)" {
			t.Errorf("%q: %v", message, err)
		}
	}
}
