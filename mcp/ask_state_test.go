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
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
)

// asking returns a server with two tools and one prompt that ask questions.
func asking(opts *mcp.MuxOptions) *mcp.Mux {
	mux := mcp.NewMux("m", "v1", opts)
	ask := func(ctx context.Context, in struct {
		N json.RawMessage `json:"n,omitempty"`
	}) (string, error) {
		answer, err := mcp.Elicit[yes](ctx, "k", "Sure?")
		return fmt.Sprint(answer.OK), err
	}
	mux.Tool("ask", mcp.ToolFunc(ask, nil))
	mux.Tool("other", mcp.ToolFunc(ask, nil))
	mux.Prompt("ask", mcp.PromptFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Elicit[yes](ctx, "k", "Sure?")
		return "", err
	}, nil))
	return mux
}

// stateOf sends a request that asks a question, and returns the sealed state.
func stateOf(t *testing.T, h mcp.Handler, cl *mcptest.Client, p *mcp.CallToolParams) *string {
	t.Helper()
	res, _, err := mcptest.Do(t, h, cl.NewRequest(mcp.MethodCallTool, p))
	asked, ok := res.(*mcp.InputRequired)
	if err != nil || !ok || asked.RequestState == nil || asked.ResultType != mcp.ResultInputRequired {
		t.Fatalf("got %+v, %v", res, err)
	}
	return asked.RequestState
}

func answered(p *mcp.CallToolParams, state *string) *mcp.CallToolParams {
	again := *p
	again.RequestState = state
	again.InputResponses = map[string]json.RawMessage{"k": json.RawMessage(`{"action":"accept","content":{"ok":true}}`)}
	return &again
}

// A server that cannot decrypt a state logs once what replicas need for that, however often
// it happens.
func TestFindingZ6StateOfAnotherProcessIsLogged(t *testing.T) {
	var log bytes.Buffer
	one, two := asking(quiet()), asking(&mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	client := new(mcptest.Client)
	state := stateOf(t, one, client, tool("ask", ""))
	for range 100 {
		_, _, err := mcptest.Do(t, two, client.NewRequest(mcp.MethodCallTool, answered(tool("ask", ""), state)))
		wantCode(t, err, mcp.CodeInvalidParams)
	}
	if got := strings.Count(log.String(), "MuxOptions.StateKeys"); got != 1 {
		t.Errorf("logged %d times:\n%s", got, log.String())
	}
}

// T51: request state is valid only for the request it was created for.
func TestStateIsBound(t *testing.T) {
	keyA, keyB := bytes.Repeat([]byte("a"), 32), bytes.Repeat([]byte("b"), 32)
	withKeys := func(keys ...[]byte) *mcp.Mux {
		opts := quiet()
		opts.StateKeys = keys
		return asking(opts)
	}
	server := withKeys(keyA)
	ann := &mcptest.Client{Principal: &mcp.Principal{Issuer: "i", Subject: "ann"}}
	bob := &mcptest.Client{Principal: &mcp.Principal{Issuer: "i", Subject: "bob"}}
	evil := &mcptest.Client{Principal: &mcp.Principal{Issuer: "evil", Subject: "ann"}}
	asked := tool("ask", `{"n":{"a":1.0,"b":[2]}}`)
	state := stateOf(t, server, ann, asked)
	forged := *state
	if forged[len(forged)/2] != 'A' {
		forged = forged[:len(forged)/2] + "A" + forged[len(forged)/2+1:]
	} else {
		forged = forged[:len(forged)/2] + "B" + forged[len(forged)/2+1:]
	}
	empty := ""
	for _, test := range []struct {
		name   string
		server mcp.Handler
		who    *mcptest.Client
		params *mcp.CallToolParams
		ok     bool
	}{
		{"as it was made", server, ann, answered(asked, state), true},
		{"twice", server, ann, answered(asked, state), true},
		{"arguments written otherwise", server, ann, answered(tool("ask", `{ "n":{"b":[2], "a":1.0} }`), state), true},
		{"a replica with the key", withKeys(keyA), ann, answered(asked, state), true},
		{"a replica with a new key first", withKeys(keyB, keyA), ann, answered(asked, state), true},
		{"a replica without the key", withKeys(keyB), ann, answered(asked, state), false},
		{"a process of its own", asking(quiet()), ann, answered(asked, state), false},
		{"another caller", server, bob, answered(asked, state), false},
		{"another issuer", server, evil, answered(asked, state), false},
		{"nobody", server, new(mcptest.Client), answered(asked, state), false},
		{"another tool", server, ann, answered(tool("other", `{"n":{"a":1.0,"b":[2]}}`), state), false},
		{"other arguments", server, ann, answered(tool("ask", `{"n":{"a":1.0,"b":[3]}}`), state), false},
		{"no arguments", server, ann, answered(tool("ask", ""), state), false},
		{"forged", server, ann, answered(asked, &forged), false},
		{"empty", server, ann, answered(asked, &empty), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			res, _, err := mcptest.Do(t, test.server, test.who.NewRequest(mcp.MethodCallTool, test.params))
			if !test.ok {
				wantCode(t, err, mcp.CodeInvalidParams)
				return
			}
			if done, ok := res.(*mcp.CallToolResult); err != nil || !ok || textOf(done) != "true" {
				t.Errorf("got %+v, %v", res, err)
			}
		})
	}
	t.Run("another method", func(t *testing.T) {
		p := &mcp.GetPromptParams{Name: "ask", Resume: answered(asked, state).Resume}
		_, _, err := mcptest.Do(t, server, ann.NewRequest(mcp.MethodGetPrompt, p))
		wantCode(t, err, mcp.CodeInvalidParams)
	})
}

// T51: request state expires.
func TestStateExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet()
		opts.StateTTL = time.Minute
		mux, cl, p := asking(opts), new(mcptest.Client), tool("ask", "")
		state := stateOf(t, mux, cl, p)
		<-time.After(59 * time.Second)
		if _, _, err := mcptest.Do(t, mux, cl.NewRequest(mcp.MethodCallTool, answered(p, state))); err != nil {
			t.Errorf("before its time: %v", err)
		}
		<-time.After(time.Second)
		_, _, err := mcptest.Do(t, mux, cl.NewRequest(mcp.MethodCallTool, answered(p, state)))
		wantCode(t, err, mcp.CodeInvalidParams)
	})
}

// Request state is sealed: clients can neither read it nor change an answer in it.
func TestStateIsSealed(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		if _, err := mcp.Once(ctx, "secret", func(context.Context) (string, error) { return "hunter2", nil }); err != nil {
			return "", err
		}
		first, err := mcp.Elicit[yes](ctx, "k", "First?")
		if err != nil {
			return "", err
		}
		_, err = mcp.Elicit[yes](ctx, "l", "Second?")
		return fmt.Sprint(first.OK), err
	}, nil))
	cl, p := new(mcptest.Client), tool("ask", "")
	state := stateOf(t, mux, cl, p)
	if strings.Contains(*state, "hunter") {
		t.Errorf("the state is %s", *state)
	}
	state = stateOf(t, mux, cl, answered(p, state))
	again := answered(p, state)
	again.InputResponses = map[string]json.RawMessage{
		"k": json.RawMessage(`{"action":"accept","content":{"ok":false}}`),
		"l": json.RawMessage(`{"action":"accept","content":{"ok":true}}`),
	}
	res, _, err := mcptest.Do(t, mux, cl.NewRequest(mcp.MethodCallTool, again))
	if err != nil || textOf(res.(*mcp.CallToolResult)) != "true" {
		t.Errorf("got %+v, %v", res, err)
	}
}

// Unreadable state fails every use of it, even if the handler continues after the first
// error.
func TestUnreadableStateFailsEveryUse(t *testing.T) {
	var errs []error
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		for _, key := range []string{"a", "b"} {
			_, err := mcp.Once(ctx, key, func(context.Context) (int, error) { return 1, nil })
			errs = append(errs, err)
		}
		_, err := mcp.Elicit[yes](ctx, "k", "Sure?")
		errs = append(errs, err)
		return "", nil
	}, nil))
	p, state := tool("ask", ""), "forged"
	p.RequestState = &state
	if _, _, err := mcptest.Do(t, mux, new(mcptest.Client).NewRequest(mcp.MethodCallTool, p)); err != nil {
		t.Error("the handler decides:", err)
	}
	for i, err := range errs {
		if mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Errorf("use %d: %v", i, err)
		}
	}
	if len(errs) != 3 {
		t.Errorf("%d uses", len(errs))
	}
}

// A handler can send the user only to http and https URLs.
func TestURLsToVisit(t *testing.T) {
	for url, ok := range map[string]bool{
		"https://example.com/a?b#c": true, "http://localhost:1/": true, "": false, "example.com": false, "https://": false, "https:/example.com": false,
		"ftp://example.com/": false, "javascript:alert(1)": false, "//example.com": false, "https://%zz": false,
	} {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("ask", mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
			return nil, mcp.ElicitURL(ctx, "k", "?", url)
		}))
		client := &mcptest.Client{Options: mcp.ClientOptions{ElicitURL: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) { return nil, nil }}}
		res, _, err := mcptest.Do(t, mux, client.NewRequest(mcp.MethodCallTool, tool("ask", "")))
		if _, asked := res.(*mcp.InputRequired); asked != ok || !ok && !strings.Contains(fmt.Sprint(err), "is not the URL of a page") {
			t.Errorf("%q: %+v, %v", url, res, err)
		}
	}
}

// If a mounted handler returns a cursor longer than 64 KiB, its list ends there and the
// reason is logged.
func TestLongCursorOfSource(t *testing.T) {
	for size, more := range map[int]bool{64 << 10: true, 64<<10 + 1: false} {
		var log lockedBuffer
		inner := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != mcp.MethodListTools {
				return nil, mcp.NewMethodNotFoundError(req.Method)
			}
			cursor := strings.Repeat("c", size)
			return &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}}, Page: mcp.Page{NextCursor: &cursor}}, nil
		})
		mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		mux.Mount("in_", inner)
		res, _, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodListTools, nil))
		if err != nil {
			t.Fatal(err)
		}
		list := res.(*mcp.ListToolsResult)
		if len(list.Tools) != 1 || (list.NextCursor != nil) != more || strings.Contains(log.String(), "its cursor has 65537 bytes") == more {
			t.Errorf("a cursor of %d bytes: %d tools, more: %v, logged %s", size, len(list.Tools), list.NextCursor != nil, log.String())
		}
	}
}

// State that a server accepts also passes through the gateways in front of it, each of
// which seals it again under the same limit.
func TestLargeStateThroughGateways(t *testing.T) {
	opts := mcp.LimitState(quiet(), 10_000)
	server := mcp.NewMux("server", "v1", opts)
	server.Tool("keep", mcp.ToolFunc(func(ctx context.Context, _ none) (int, error) {
		kept, err := mcp.Once(ctx, "kept", func(context.Context) (string, error) { return strings.Repeat("x", 9_900), nil })
		if err != nil {
			return 0, err
		}
		_, err = mcp.Elicit[yes](ctx, "k", "Sure?")
		return len(kept), err
	}, nil))
	gateway := func(h mcp.Handler) *mcp.Mux {
		gw := mcp.NewMux("gateway", "v1", opts)
		gw.Mount("a_", connect(t, h, &mcp.ClientOptions{Forward: true, Logger: quiet().Logger}))
		return gw
	}
	user(map[string]any{"Sure?": yes{true}}).Run(t, gateway(gateway(server)), func(t *testing.T, c *mcp.Conn) {
		if got := mustCall(t, c, "a_a_keep", "{}"); got != "9900" {
			t.Errorf("got %q", got)
		}
	})
}

// Used state is rejected in any encoding.
func TestUsedStateInAnotherForm(t *testing.T) {
	opts := quiet()
	opts.StateStore = store.NewMemory(nil)
	mux := asking(opts)
	client := new(mcptest.Client)
	asked := tool("ask", `{"n":1}`)
	state := *stateOf(t, mux, client, asked)
	for i, written := range []string{state, state, state + "\n", "\r" + state, state[:8] + "\r\n" + state[8:]} {
		_, _, err := mcptest.Do(t, mux, client.NewRequest(mcp.MethodCallTool, answered(asked, &written)))
		if (err == nil) != (i == 0) {
			t.Errorf("use %d, as %q: got %v", i+1, written, err)
		}
	}
}
