// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// sender returns a client of raw requests. It declares the extension if declares is set.
func sender(caller *mcp.Principal, declares bool) *mcptest.Client {
	caps := &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{Form: new(struct{})}}
	if declares {
		caps.Extensions = mcp.Extensions{tasks.Extension: json.RawMessage("{}")}
	}
	return &mcptest.Client{Principal: caller, Options: mcp.ClientOptions{Capabilities: caps}}
}

// If the extension is not declared, the methods, the subscription and a tool that requires
// tasks are rejected with the missing capability. Other tools are called as usual.
func TestUndeclared(t *testing.T) {
	r := newReplica(t, store.NewMemory(nil), nil, &tasks.BackgroundOptions{Required: true})
	r.tool("required", func(context.Context) (string, error) { return "done", nil })
	optional := r.mux.With(r.manager.Background(nil))
	optional.Tool("optional", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "done", nil }, nil))
	client := sender(nil, false)
	for method, params := range map[string]any{
		tasks.MethodGet:    map[string]any{"taskId": "x"},
		tasks.MethodUpdate: map[string]any{"taskId": "x", "inputResponses": map[string]any{}},
		tasks.MethodCancel: map[string]any{"taskId": "x"},
		mcp.MethodCallTool: map[string]any{"name": "required", "arguments": map[string]any{}},
		mcp.MethodListen:   map[string]any{"notifications": map[string]any{"taskIds": []string{"x"}}},
	} {
		_, _, err := mcptest.Do(t, r.mux, client.NewRequest(method, params))
		var data struct {
			RequiredCapabilities mcp.ClientCapabilities `json:"requiredCapabilities"`
		}
		e, _ := errors.AsType[*mcp.Error](err)
		if e == nil || e.Code != mcp.CodeMissingCapability || json.Unmarshal(e.Data, &data) != nil || !data.RequiredCapabilities.HasExtension(tasks.Extension) {
			t.Errorf("%s: %v", method, err)
		}
	}
	res, _, err := mcptest.Do(t, r.mux, client.NewRequest(mcp.MethodCallTool, map[string]any{"name": "optional", "arguments": map[string]any{}}))
	if got, ok := res.(*mcp.CallToolResult); !ok || got.IsError || err != nil {
		t.Errorf("an ordinary call: %v, %v", res, err)
	}
}

// Unknown, foreign, forged and expired IDs get the same answer, which reveals nothing else.
func TestUnknownIDs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, &tasks.BackgroundOptions{TTL: time.Minute})
		r.tool("quick", func(context.Context) (string, error) { return "done", nil })
		ada, bob := &mcp.Principal{Issuer: "a", Subject: "ada"}, &mcp.Principal{Issuer: "a", Subject: "bob"}
		own, other := start(t, r.connectAs(t, bob), "quick"), start(t, r.connectAs(t, ada), "quick")
		anonymous := start(t, r.connectAs(t, nil), "quick")
		ids := map[string]string{
			"foreign": other.ID, "anonymous": anonymous.ID, "none": "", "short": "x", "unknown": strings.Repeat("a", 26), "no UTF-8": strings.Repeat("\xff", 26),
			"control": "\x00" + own.ID[1:], "upper case": strings.ToUpper(own.ID), "part": own.ID + "/0", "path": "../" + own.ID[3:], "long": strings.Repeat("a", 100_000),
		}
		check := func(name, id string) {
			for _, method := range []string{tasks.MethodGet, tasks.MethodUpdate, tasks.MethodCancel} {
				raw, _ := json.Marshal(map[string]any{"taskId": id, "inputResponses": map[string]any{}})
				_, _, err := mcptest.Do(t, r.mux, sender(bob, true).NewRequest(method, json.RawMessage(raw)))
				if mcp.CodeOf(err) != mcp.CodeInvalidParams || !strings.HasPrefix(err.Error(), "params.taskId names no task, or one that is no longer kept") {
					t.Errorf("%s, %s: %v", name, method, err)
				}
			}
		}
		for name, id := range ids {
			check(name, id)
		}
		state(t, own)
		<-time.After(2 * time.Minute)
		check("expired", own.ID)
	})
}

// Params of the wrong shape are rejected with a message that says where. The task is
// unchanged.
func TestWrongShapes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		r.tool("ask", func(ctx context.Context) (string, error) {
			c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			return c.Codec, err
		})
		h := start(t, r.connect(t), "ask")
		before := until(t, h, tasks.InputRequired)
		for _, test := range []struct{ method, params, want string }{
			{tasks.MethodGet, `{}`, "taskId"},
			{tasks.MethodGet, `{"taskId":null}`, "taskId"},
			{tasks.MethodGet, `{"taskId":7}`, "taskId"},
			{tasks.MethodGet, `{"taskId":["ID"]}`, "taskId"},
			{tasks.MethodCancel, `{}`, "taskId"},
			{tasks.MethodCancel, `{"taskId":{}}`, "taskId"},
			{tasks.MethodUpdate, `{}`, ""},
			{tasks.MethodUpdate, `{"taskId":"ID"}`, "inputResponses"},
			{tasks.MethodUpdate, `{"taskId":"ID","inputResponses":{"codec":"av1"}}`, "codec"},
			{tasks.MethodUpdate, `{"taskId":"ID","inputResponses":{"codec":null}}`, "codec"},
			{tasks.MethodUpdate, `{"taskId":"ID","inputResponses":{"codec":[{}]}}`, "codec"},
			{tasks.MethodUpdate, `{"taskId":"ID","inputResponses":{"codec":{}}}`, "must have an action of accept, decline or cancel"},
			{tasks.MethodUpdate, `{"taskId":"ID","inputResponses":{"codec":{"action":"accept"}}}`, `inputResponses["codec"]: the answer does not fit the form: /codec: expected string, got nothing`},
			{tasks.MethodUpdate, `{"taskId":"ID","inputResponses":{"codec":{"action":"accept","content":{"codec":"vhs"}}}}`, "vhs"},
			{tasks.MethodUpdate, `{"taskId":"ID","inputResponses":{"codec":{"action":"accept","content":["av1"]}}}`, "must be an object"},
			{mcp.MethodListen, `{"notifications":{"taskIds":"ID"}}`, "taskIds"},
			{mcp.MethodListen, `{"notifications":{"taskIds":[7]}}`, "taskIds"},
		} {
			params := json.RawMessage(strings.ReplaceAll(test.params, "ID", h.ID))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := serve(ctx, r.mux, sender(nil, true).NewRequest(test.method, params), nil)
			cancel()
			if mcp.CodeOf(err) != mcp.CodeInvalidParams || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s %s: %v", test.method, params, err)
			}
		}
		if d := state(t, h); !d.LastUpdatedAt.Equal(before.LastUpdatedAt) || d.Status != tasks.InputRequired {
			t.Errorf("the task is %+v", d)
		}
	})
}

// Cancelling ends a task in every state, even if the process that ran it is gone.
func TestCancel(t *testing.T) {
	cancelled := func(t *testing.T, h *tasks.Handle) {
		t.Helper()
		for range 2 { // the second call has no effect
			if err := h.Cancel(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		until(t, h, tasks.Cancelled)
	}
	t.Run("waiting", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			r := newReplica(t, store.NewMemory(nil), nil, nil)
			r.tool("ask", func(ctx context.Context) (string, error) {
				_, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
				return "", err
			})
			h := start(t, r.connect(t), "ask")
			d := until(t, h, tasks.InputRequired)
			cancelled(t, h)
			answer(t, h, d, av1)
			until(t, h, tasks.Cancelled)
		})
	})
	t.Run("queued", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			r := newBusyReplica(t, store.NewMemory(nil))
			r.tool("quick", func(context.Context) (string, error) { t.Error("the handler was run"); return "", nil })
			cancelled(t, start(t, r.connect(t), "quick"))
		})
	})
	t.Run("after the owner is gone", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			shared := store.NewMemory(nil)
			first, second := newReplica(t, shared, nil, nil), newReplica(t, shared, nil, nil)
			first.tool("hold", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", context.Cause(ctx) })
			second.tool("hold", func(context.Context) (string, error) { t.Error("the handler was run again"); return "", nil })
			h := tasks.Attach(second.connect(t), start(t, first.connect(t), "hold").ID)
			synctest.Wait()
			first.link.cut()
			cancelled(t, h)
		})
	})
	t.Run("and the handler ends well", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			r := newReplica(t, store.NewMemory(nil), nil, nil)
			r.tool("stubborn", func(ctx context.Context) (string, error) { <-ctx.Done(); return "done", nil })
			h := start(t, r.connect(t), "stubborn")
			if err := h.Cancel(t.Context()); err != nil {
				t.Fatal(err)
			}
			if d := until(t, h, tasks.Completed); text(t, d) != "done" {
				t.Error(d)
			}
			before, _ := r.link.counts()
			if err := h.Cancel(t.Context()); err != nil {
				t.Fatal(err)
			}
			if after, _ := r.link.counts(); after["task"] != before["task"] {
				t.Error("a task that has ended is written again")
			}
		})
	})
}

// A task keeps the capabilities of the client, even if the call was made by a handler that
// passes on the client's request with other params.
func TestFindingK11CallOfAHandler(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		r.tool("inner", func(ctx context.Context) (string, error) {
			var all string
			for _, key := range []string{"video", "audio"} {
				c, err := mcp.Elicit[codec](ctx, key, "Which codec?")
				if err != nil {
					return "", err
				}
				all += c.Codec
			}
			return all, nil
		})
		r.mux.Tool("outer", mcp.WithDescription(mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			inner, err := req.WithParams(&mcp.CallToolParams{Name: "inner", Arguments: json.RawMessage("{}")})
			if err != nil {
				return nil, err
			}
			return r.mux.ServeMCP(ctx, inner)
		}), &mcp.Tool{}))
		h := start(t, r.connect(t), "outer")
		for range 2 {
			answer(t, h, until(t, h, tasks.InputRequired), av1)
			synctest.Wait()
		}
		if got := text(t, until(t, h, tasks.Completed)); got != "av1av1" {
			t.Errorf("the result is %q", got)
		}
	})
}

// A mux can have several managers: each serves its own tasks.
func TestFindingV9TwoManagersOnOneMux(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		other := tasks.New("other", &tasks.Options{PollInterval: 100 * time.Millisecond})
		other.Register(r.mux)
		t.Cleanup(func() { _ = other.Shutdown(context.Background()) })
		ask := mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			return c.Codec, err
		}, nil)
		r.background.Tool("first", ask)
		r.mux.With(other.Background(nil)).Tool("second", ask)
		c := r.connectAs(t, &mcp.Principal{Subject: "ada"})
		for _, tool := range []string{"first", "second"} {
			h := start(t, c, tool)
			answer(t, h, until(t, h, tasks.InputRequired), av1)
			if got := text(t, until(t, h, tasks.Completed)); got != "av1" {
				t.Errorf("%s: the result is %q", tool, got)
			}
			if err := start(t, c, tool).Cancel(t.Context()); err != nil {
				t.Errorf("%s: tasks/cancel: %v", tool, err)
			}
			if got, err := mcp.Call[string](t.Context(), c, tool, struct{}{}); got != "av1" || err != nil {
				t.Errorf("%s: %q, %v", tool, got, err)
			}
		}
		unknown := tasks.Attach(c, strings.Repeat("a", 26))
		if _, err := unknown.Get(t.Context()); mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Errorf("a task of neither: %v", err)
		}
	})
}

// The tools of a Manager that is not registered work, but never as tasks. That is logged once,
// because it is hardly intended.
func TestFindingV10NotRegistered(t *testing.T) {
	var logged strings.Builder
	logger, before := slog.New(slog.NewTextHandler(&logged, nil)), slog.Default()
	slog.SetDefault(logger)
	defer slog.SetDefault(before)
	for name, opts := range map[string]*tasks.Options{"its own logger": {Logger: logger}, "the default logger": nil} {
		logged.Reset()
		mux := mcp.NewMux("farm", "1", &mcp.MuxOptions{Logger: slog.New(slog.DiscardHandler)})
		background := mux.With(tasks.New("films", opts).Background(nil))
		background.Tool("quick", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "done", nil }, nil))
		c := (&mcptest.Client{Options: *options()}).Connect(t, mux)
		for range 2 {
			if got, err := mcp.Call[string](t.Context(), c, "quick", struct{}{}); got != "done" || err != nil {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		if lines := strings.Count(logged.String(), "\n"); lines != 1 || !strings.Contains(logged.String(), "level=ERROR") || !strings.Contains(logged.String(), "Manager.Register") {
			t.Errorf("%s: logged: %s", name, logged.String())
		}
	}
}
