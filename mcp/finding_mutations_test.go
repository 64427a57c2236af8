// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/middleware"
)

// The tests of this file are for mutations of the code that no test noticed.

// Structured content that is no object is left out for revisions that have objects only.
func TestFindingMutation24(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("list", mcp.ToolFunc(func(context.Context, none) ([]int, error) { return []int{1, 2}, nil }, nil))
	for version, want := range map[string]string{
		mcp.LatestVersion: "[1,2]", "2025-11-25": "", "2025-06-18": "", "2025-03-26": "",
	} {
		c := (&mcptest.Client{Options: mcp.ClientOptions{Version: version}}).Connect(t, mux)
		res, err := c.CallTool(t.Context(), tool("list", ""))
		if err != nil || string(res.StructuredContent) != want || textOf(res) != "[1,2]" {
			t.Errorf("%s: got %+v, %v", version, res, err)
		}
	}
}

// A question whose call is cancelled is withdrawn.
func TestFindingMutation17(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Elicit[yes](ctx, "k", "Sure?")
		return "", err
	}, nil))
	p := newPeer(t, mux, eras[1])
	p.send(eras[1].request("7", "tools/call", `"name":"ask"`))
	var question struct {
		ID     mcp.ID `json:"id"`
		Method string `json:"method"`
	}
	if err := json.Unmarshal([]byte(p.receive()), &question); err != nil || question.Method != mcp.MethodElicit {
		t.Fatalf("got %+v, %v", question, err)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	if got := p.receive(); !strings.Contains(got, mcp.NotificationCancelled) || !strings.Contains(got, `"requestId":`+question.ID.String()) {
		t.Errorf("got %s", got)
	}
}

// A listener that does not read is kept a limited number of updates; beyond it, the
// directory that it subscribed to stands for what is below.
func TestFindingMutation7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Resource("notes://{+path}", reads("note"))
		ctx, cancel := context.WithCancel(t.Context())
		blocked, told := make(chan struct{}), map[string]int{}
		listener := notifying(func(method string, params json.RawMessage) {
			if method == mcp.NotificationResourceUpdated {
				var p mcp.ResourceUpdatedParams
				_ = json.Unmarshal(params, &p)
				told[p.URI]++
			}
			<-blocked
		})
		req := mcptest.NewRequest(mcp.MethodListen, &mcp.ListenParams{Notifications: mcp.SubscriptionFilter{ResourceSubscriptions: []string{"notes://"}}})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = core.Serve(ctx, mux, req, listener, quiet().Logger)
		}()
		synctest.Wait()
		for i := range 5000 {
			mux.ResourceUpdated(fmt.Sprint("notes://", i))
		}
		close(blocked)
		synctest.Wait()
		cancel()
		<-done
		if len(told) > 1025 || told["notes://"] != 1 {
			t.Errorf("told of %d resources, and of the directory %d times", len(told), told["notes://"])
		}
	})
}

// A directory that stands for several resources that the listener may not see is sent once.
func TestHiddenResourcesAreToldOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Resource("notes://{+path}", reads("note"))
		for _, hidden := range []string{"notes://a/{+path}", "notes://z/{+path}"} {
			mux.With(middleware.RequireScopes("secret")).Resource(hidden, reads("secret"))
		}
		ctx, cancel := context.WithCancel(t.Context())
		blocked, told := make(chan struct{}), []string(nil)
		listener := notifying(func(_ string, params json.RawMessage) {
			var p mcp.ResourceUpdatedParams
			_ = json.Unmarshal(params, &p)
			told = append(told, p.URI)
			<-blocked
		})
		req := mcptest.NewRequest(mcp.MethodListen, &mcp.ListenParams{Notifications: mcp.SubscriptionFilter{ResourceSubscriptions: []string{"notes://"}}})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = core.Serve(ctx, mux, req, listener, quiet().Logger)
		}()
		synctest.Wait() // for the acknowledgement, which blocks
		for _, uri := range []string{"notes://z/1", "notes://open", "notes://a/1", "notes://a/2"} {
			mux.ResourceUpdated(uri)
		}
		close(blocked)
		synctest.Wait()
		cancel()
		<-done
		if got := strings.Join(told, " "); got != " notes:// notes://open" {
			t.Errorf("told of %s", got)
		}
	})
}

type notifying func(method string, params json.RawMessage)

func (f notifying) Notify(_ context.Context, method string, params json.RawMessage) error {
	f(method, params)
	return nil
}

// What changes at the same time as the server ends a subscription is still told.
func TestFindingMutation9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("a", says("a"))
		ctx, cancel := context.WithCancelCause(t.Context())
		var told []string
		blocked := make(chan struct{})
		listener := notifying(func(method string, _ json.RawMessage) {
			told = append(told, method)
			<-blocked
		})
		req := mcptest.NewRequest(mcp.MethodListen, &mcp.ListenParams{Notifications: mcp.SubscriptionFilter{ToolsListChanged: true}})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = core.Serve(ctx, mux, req, listener, quiet().Logger)
		}()
		synctest.Wait() // in the acknowledgement
		mux.Tool("b", says("b"))
		cancel(mcp.ErrClosed)
		close(blocked)
		<-done
		if len(told) != 2 || told[1] != mcp.NotificationToolsListChanged {
			t.Errorf("told of %v", told)
		}
	})
}

// A response that has a method as well is none.
func TestFindingMutation29(t *testing.T) {
	for _, raw := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","error":{"code":1,"message":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`,
	} {
		if _, err := transport.ParseMessage([]byte(raw)); mcp.CodeOf(err) != mcp.CodeInvalidRequest {
			t.Errorf("%s: got %v", raw, err)
		}
	}
}

// An object of very many members is read in a time that grows with it: a comparison of
// each with each would take this test minutes.
func TestFindingMutation86(t *testing.T) {
	members := make([]string, 300_000)
	for i := range members {
		members[i] = fmt.Sprintf(`"member%d":1`, i)
	}
	message := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{` + strings.Join(members, ",") + `}}}`
	if _, err := transport.ParseMessage([]byte(message)); err != nil {
		t.Error(err)
	}
}

// A batch has up to a hundred messages.
func TestFindingMutation20(t *testing.T) {
	march := wireEra{"march", []string{strings.Replace(eras[1].open[0], "2025-11-25", "2025-03-26", 1), eras[1].open[1]}, eras[1].meta}
	p := newPeer(t, hello(), march)
	batch := func(n int) string {
		pings := make([]string, n)
		for i := range pings {
			pings[i] = march.request(fmt.Sprint(i+1), "ping", "")
		}
		return "[" + strings.Join(pings, ",") + "]"
	}
	p.send(batch(100))
	if items, err := transport.SplitBatch([]byte(p.receive())); err != nil || len(items) != 100 {
		t.Errorf("got %d answers, %v", len(items), err)
	}
	p.send(batch(101))
	if got := p.read(); got.Error == nil || got.Error.Code != mcp.CodeInvalidRequest || !strings.Contains(got.Error.Message, "limit of 100") {
		t.Errorf("got %s, %v", got.Result, got.Error)
	}
}
