// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
)

// A tool that calls another tool keeps what it asked and remembered, and two tools
// that run at once do not see each other's.
func TestFindingCH4(t *testing.T) {
	var ran atomic.Int32
	mux := mcp.NewMux("m", "v1", quiet())
	once := func(value string) mcp.Handler {
		return mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			return mcp.Once(ctx, "k", func() (string, error) { return value, nil })
		}, nil)
	}
	mux.Tool("a", once("a"))
	mux.Tool("b", once("b"))
	call := func(ctx context.Context, name string) (string, error) {
		req, err := mcp.RequestFromContext(ctx).WithParams(tool(name, "{}"))
		if err != nil {
			return "", err
		}
		res, err := mux.ServeMCP(ctx, req)
		if err != nil {
			return "", err
		}
		return textOf(res.(*mcp.CallToolResult)), nil
	}
	mux.Tool("sequential", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		n, err := mcp.Once(ctx, "k", func() (int32, error) { return ran.Add(1), nil })
		if err != nil {
			return "", err
		}
		inner, err := call(ctx, "a")
		if err != nil {
			return "", err
		}
		answer, err := mcp.Elicit[yes](ctx, "sure", "Sure?")
		return fmt.Sprintf("%d %s %t", n, inner, answer.OK), err
	}, nil))
	mux.Tool("parallel", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		var wg sync.WaitGroup
		got := make([]string, 20)
		for i := range got {
			wg.Go(func() { got[i], _ = call(ctx, string(rune('a'+i%2))) })
		}
		wg.Wait()
		return strings.Join(got, ""), nil
	}, nil))
	user(map[string]any{"Sure?": yes{true}}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		ran.Store(0)
		if got := mustCall(t, c, "sequential", ""); got != "1 a true" {
			t.Errorf("got %q", got)
		}
		if got, want := mustCall(t, c, "parallel", ""), strings.Repeat("ab", 10); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A goroutine that a handler leaves behind may still ask: what was asked before is
// encoded meanwhile.
func TestFindingCM1(t *testing.T) {
	var left sync.WaitGroup
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		left.Go(func() {
			for i := range 200 {
				_, _ = mcp.Elicit[yes](ctx, fmt.Sprint("late", i%10), "Late?")
			}
		})
		_, err := mcp.Elicit[yes](ctx, "k", "Sure?")
		return "", err
	}, nil))
	for range 20 {
		res, _, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodCallTool, tool("ask", "")))
		asked, ok := res.(*mcp.InputRequired)
		if err != nil || !ok {
			t.Fatalf("got %+v, %v", res, err)
		}
		for range 50 {
			if _, err := json.Marshal(asked.InputRequests); err != nil {
				t.Fatal(err)
			}
		}
	}
	left.Wait()
}

// Goroutines of one handler that ask Once for the same key share one run of its
// function, and its failure is everyone's chance to try again.
func TestFindingCM11(t *testing.T) {
	var ran atomic.Int32
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("once", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		var wg sync.WaitGroup
		got := make([]int32, 16)
		for i := range got {
			wg.Go(func() {
				for got[i] == 0 {
					got[i], _ = mcp.Once(ctx, "k", func() (int32, error) {
						if n := ran.Add(1); n > 1 {
							return n, nil
						}
						return 0, fmt.Errorf("the first fails")
					})
				}
			})
		}
		wg.Wait()
		return fmt.Sprint(got), nil
	}, nil))
	res, err := callTool(t, mux, "once", "")
	if want := "[" + strings.TrimSpace(strings.Repeat("2 ", 16)) + "]"; err != nil || textOf(res) != want || ran.Load() != 2 {
		t.Errorf("got %+v, %v after %d runs", res, err, ran.Load())
	}
}

// Two questions under one key are a mistake that is reported, not one answer for both.
func TestFindingCM19U6OneKeyTwoQuestions(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("wipe", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		if _, err := mcp.Elicit[yes](ctx, "k", "Delete?"); err != nil {
			return "", err
		}
		_, err := mcp.Elicit[yes](ctx, "k", "Really delete everything?")
		return "deleted", err
	}, nil))
	mux.Tool("mixed", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		if _, err := mcp.Elicit[yes](ctx, "k", "Delete?"); err != nil {
			return "", err
		}
		roots, err := mcp.Roots(ctx, "k")
		return fmt.Sprint(roots), err
	}, nil))
	user(map[string]any{"Delete?": yes{true}, "Really delete everything?": yes{true}}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for _, name := range []string{"wipe", "mixed"} {
			_, err := c.CallTool(t.Context(), tool(name, ""))
			if mcp.CodeOf(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), `two different questions under the key "k"`) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}

// An answer is one to the question as it was asked: whoever agreed to pay 10 has not
// agreed to pay 1000.
func TestFindingCM19TheQuestionChanges(t *testing.T) {
	var log lockedBuffer
	opts := &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	price := 1
	mux := mcp.NewMux("m", "v1", opts)
	mux.Tool("buy", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		price = min(price*10, 1000)
		message := fmt.Sprintf("Buy for %d?", price)
		_, err := mcp.Elicit[yes](ctx, "sure", message)
		return message, err
	}, nil))
	var asked []string
	client := &mcptest.Client{Options: mcp.ClientOptions{Elicit: func(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		asked = append(asked, p.Message)
		return mcptest.Accept(yes{true}), nil
	}}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		price, asked = 1, nil
		got := mustCall(t, c, "buy", "")
		if want := "[Buy for 10? Buy for 100? Buy for 1000?]"; got != "Buy for 1000?" || fmt.Sprint(asked) != want {
			t.Errorf("got %q after %v, want %s", got, asked, want)
		}
	})
	if !strings.Contains(log.String(), "has changed since it was answered") || !strings.Contains(log.String(), "key=sure") {
		t.Errorf("got the log %s", log.String())
	}
}

// What a handler keeps has a limit, and exceeding it is an error that says so.
func TestFindingCM19StateIsBounded(t *testing.T) {
	opts := quiet()
	opts.MaxState = 1000
	mux := mcp.NewMux("m", "v1", opts)
	mux.Tool("keep", mcp.ToolFunc(func(ctx context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		if _, err := mcp.Once(ctx, "big", func() (string, error) { return strings.Repeat("x", in.N), nil }); err != nil {
			return "", err
		}
		_, err := mcp.Elicit[yes](ctx, "k", "Sure?")
		return "done", err
	}, nil))
	user(map[string]any{"Sure?": yes{true}}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if got := mustCall(t, c, "keep", `{"n":500}`); got != "done" {
			t.Errorf("got %q", got)
		}
		_, err := c.CallTool(t.Context(), tool("keep", `{"n":2000}`))
		if mcp.CodeOf(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), "MuxOptions.MaxState is 1000") {
			t.Errorf("got %v", err)
		}
	})
}

// State is bound to the server, to the mounts on the way to it and to the method, also
// where keys, names and arguments are the same.
func TestFindingS22Mutation15(t *testing.T) {
	key := bytes.Repeat([]byte("k"), 32)
	server := func(name string) *mcp.Mux {
		mux := mcp.NewMux(name, "v1", &mcp.MuxOptions{StateKeys: [][]byte{key}, Logger: quiet().Logger})
		ask := func(ctx context.Context, _ none) (string, error) {
			answer, err := mcp.Elicit[yes](ctx, "k", "Sure?")
			return fmt.Sprint(answer.OK), err
		}
		mux.Tool("ask", mcp.ToolFunc(ask, nil))
		mux.Prompt("ask", mcp.PromptFunc(ask, nil))
		return mux
	}
	gateway := mcp.NewMux("gateway", "v1", quiet())
	inner := server("inner")
	gateway.Mount("a_", inner)
	gateway.Mount("b_", inner)
	client := new(mcptest.Client)
	state := stateOf(t, server("one"), client, tool("ask", ""))
	mounted := stateOf(t, gateway, client, tool("a_ask", ""))
	for _, test := range []struct {
		name   string
		server mcp.Handler
		params *mcp.CallToolParams
		ok     bool
	}{
		{"a replica", server("one"), answered(tool("ask", ""), state), true},
		{"another server", server("two"), answered(tool("ask", ""), state), false},
		{"the same mount", gateway, answered(tool("a_ask", ""), mounted), true},
		{"another mount", gateway, answered(tool("b_ask", ""), mounted), false},
		{"not mounted", inner, answered(tool("ask", ""), mounted), false},
	} {
		_, _, err := mcptest.Do(t, test.server, client.NewRequest(mcp.MethodCallTool, test.params))
		if (err == nil) != test.ok {
			t.Errorf("%s: got %v", test.name, err)
		}
	}
	p := &mcp.GetPromptParams{Name: "ask", Retry: answered(tool("ask", ""), state).Retry}
	_, _, err := mcptest.Do(t, server("one"), client.NewRequest(mcp.MethodGetPrompt, p))
	wantCode(t, err, mcp.CodeInvalidParams)
}

// State is bound to all that a request says, not to its name and arguments alone.
func TestFindingS2StateIsBoundToAllParams(t *testing.T) {
	mux := asking(quiet())
	client := new(mcptest.Client)
	asked := tool("ask", "")
	asked.Extra = mcp.Extra{"account": json.RawMessage(`1`)}
	state := stateOf(t, mux, client, asked)
	again := answered(asked, state)
	if _, _, err := mcptest.Do(t, mux, client.NewRequest(mcp.MethodCallTool, again)); err != nil {
		t.Error(err)
	}
	again.Extra = mcp.Extra{"account": json.RawMessage(`2`)}
	_, _, err := mcptest.Do(t, mux, client.NewRequest(mcp.MethodCallTool, again))
	wantCode(t, err, mcp.CodeInvalidParams)
}

// With a store, the same answers are good for one attempt, at all replicas together.
func TestFindingS23StateIsSingleUse(t *testing.T) {
	used := store.NewMemory(nil)
	replica := func() *mcp.Mux {
		return asking(&mcp.MuxOptions{StateKeys: [][]byte{bytes.Repeat([]byte("k"), 32)}, StateStore: used, Logger: quiet().Logger})
	}
	client := new(mcptest.Client)
	again := answered(tool("ask", ""), stateOf(t, replica(), client, tool("ask", "")))
	if _, _, err := mcptest.Do(t, replica(), client.NewRequest(mcp.MethodCallTool, again)); err != nil {
		t.Fatal(err)
	}
	_, _, err := mcptest.Do(t, replica(), client.NewRequest(mcp.MethodCallTool, again))
	if mcp.CodeOf(err) != mcp.CodeInvalidParams || !strings.Contains(err.Error(), "used before") {
		t.Errorf("got %v", err)
	}
	user(map[string]any{"Sure?": yes{true}}).Run(t, replica(), func(t *testing.T, c *mcp.Conn) {
		if got := mustCall(t, c, "ask", ""); got != "true" {
			t.Errorf("got %q", got)
		}
	})
}

// Answers to what was not asked are ignored, and are not kept.
func TestFindingW16(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		if _, err := mcp.Elicit[yes](ctx, "first", "First?"); err != nil {
			return "", err
		}
		if _, err := mcp.Elicit[yes](ctx, "k", "Second?"); err != nil {
			return "", err
		}
		_, err := mcp.Elicit[yes](ctx, "last", "Last?")
		return "", err
	}, nil))
	mux.Tool("remember", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		if _, err := mcp.Once(ctx, "quote", func() (int, error) { return 1, nil }); err != nil {
			return "", err
		}
		_, err := mcp.Elicit[yes](ctx, "first", "First?")
		return "", err
	}, nil))
	client := new(mcptest.Client)
	ask := func(p *mcp.CallToolParams) *mcp.InputRequired {
		t.Helper()
		res, _, err := mcptest.Do(t, mux, client.NewRequest(mcp.MethodCallTool, p))
		asked, ok := res.(*mcp.InputRequired)
		if err != nil || !ok {
			t.Fatalf("got %+v, %v", res, err)
		}
		return asked
	}
	accept := json.RawMessage(`{"action":"accept","content":{"ok":true}}`)
	p := tool("ask", "")
	p.InputResponses = map[string]json.RawMessage{"first": accept, "k": accept}
	asked := ask(p) // without a state, answers can be to what is asked first, and to nothing else
	if _, ok := asked.InputRequests["k"]; !ok {
		t.Errorf("got %+v", asked)
	}
	remembering := tool("remember", "") // what was remembered is held still by the state
	remembering.InputResponses = p.InputResponses
	if asked := ask(remembering); len(asked.InputRequests) != 1 {
		t.Errorf("got %+v", asked)
	}
	plain := len(*asked.RequestState)
	for i := range 1000 {
		p.InputResponses[fmt.Sprint("unasked", i)] = accept
	}
	p.RequestState = asked.RequestState
	asked = ask(p)
	if _, ok := asked.InputRequests["last"]; !ok || len(*asked.RequestState) > 2*plain+200 {
		t.Errorf("got %v with a state of %d bytes", asked.InputRequests, len(*asked.RequestState))
	}
}

// A handler that does not pass on the error of a question leaves a line in the log.
func TestFindingU6TheErrorIsNotPassedOn(t *testing.T) {
	var log lockedBuffer
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		if _, err := mcp.Elicit[yes](ctx, "sure", "Sure?"); err != nil {
			return "default", nil //nolint:nilerr // the mistake under test
		}
		return "asked", nil
	}, nil))
	if _, err := callTool(t, mux, "ask", ""); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"did not return the error of Ask", "name=ask", "keys=[sure]"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log does not say %s: %s", part, log.String())
		}
	}
}

// A value that Once keeps as another type is an error that names the key.
func TestFindingU6OnceWithTwoTypes(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("once", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		if _, err := mcp.Once(ctx, "k", func() (int, error) { return 1, nil }); err != nil {
			return "", err
		}
		return mcp.Once(ctx, "k", func() (string, error) { return "one", nil })
	}, nil))
	_, err := callTool(t, mux, "once", "")
	if mcp.CodeOf(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), `under "k"`) {
		t.Errorf("got %v", err)
	}
}

// A question that a plain handler writes itself must be JSON before it is sent.
func TestFindingCH3Questions(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.InputRequired{InputRequests: map[string]mcp.InputRequest{
			"k": {Method: mcp.MethodElicit, Params: json.RawMessage(`{}},"method":"ping","x":{"y":{}`)},
		}}, nil
	}))
	user(nil).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		_, err := c.CallTool(t.Context(), tool("ask", ""))
		if mcp.CodeOf(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), `the question "k"`) {
			t.Errorf("got %v", err)
		}
	})
}
