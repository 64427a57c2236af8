// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/internal/legacyserver"
	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/middleware"
)

// A token of the same caller without the scopes of the tool gets nothing of its task, and
// the error names the missing scopes. A token with more scopes gets everything.
func TestTokenWithFewerScopes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		payroll := mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "secret", nil }, nil)
		r.mux.With(middleware.RequireScopes("payroll"), r.manager.Background(nil)).Tool("payroll", payroll)
		ada := func(scopes ...string) *mcp.Principal {
			return &mcp.Principal{Issuer: "a", Subject: "ada", Scopes: scopes}
		}
		h := start(t, r.connectAs(t, ada("notes", "payroll")), "payroll")
		until(t, h, tasks.Completed)
		for _, scopes := range [][]string{nil, {"notes"}, {"payroll"}} {
			for _, method := range []string{tasks.MethodGet, tasks.MethodUpdate, tasks.MethodCancel} {
				params := map[string]any{"taskId": h.ID, "inputResponses": map[string]any{}}
				_, _, err := mcptest.Do(t, r.mux, sender(ada(scopes...), true).NewRequest(method, params))
				lacking, _ := errors.AsType[*mcp.ScopeError](err)
				if lacking == nil || !slices.Equal(lacking.Required, []string{"notes", "payroll"}) {
					t.Errorf("%s with the scopes %q: %v", method, scopes, err)
				}
			}
			if got := watchedIDs(t, r, ada(scopes...), h.ID); len(got) != 0 {
				t.Errorf("the scopes %q: the subscription accepts %q", scopes, got)
			}
			if got := listedTasks(t, r, ada(scopes...)); len(got) != 0 {
				t.Errorf("the scopes %q: the list has %d tasks", scopes, len(got))
			}
		}
		more := ada("payroll", "more", "notes")
		if again, err := tasks.Attach(r.connectAs(t, more), h.ID).Get(t.Context()); err != nil || text(t, again) != "secret" {
			t.Errorf("with more scopes: %v, %v", again, err)
		}
		if got := watchedIDs(t, r, more, h.ID); !slices.Equal(got, []string{h.ID}) {
			t.Errorf("with more scopes, the subscription accepts %q", got)
		}
		if got := listedTasks(t, r, more); len(got) != 1 {
			t.Errorf("with more scopes, the list has %d tasks", len(got))
		}
	})
}

// watchedIDs returns the task IDs that a subscription of the caller accepts.
func watchedIDs(t *testing.T, r *replica, caller *mcp.Principal, ids ...string) (accepted []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rec := new(mcptest.Recorder)
	req := sender(caller, true).NewRequest(mcp.MethodListen, map[string]any{"notifications": map[string]any{"taskIds": ids}})
	go func() { _, _ = serve(ctx, r.mux, req, rec) }()
	synctest.Wait()
	for _, n := range rec.Notifications() {
		var p mcp.AcknowledgedParams
		if n.Method == mcp.NotificationAcknowledged && json.Unmarshal(n.Params, &p) == nil {
			_ = json.Unmarshal(p.Notifications.Extra[tasking.TaskIDs], &accepted)
		}
	}
	return accepted
}

// listedTasks returns the task list that a translator requests.
func listedTasks(t *testing.T, r *replica, caller *mcp.Principal) []tasking.Listed {
	t.Helper()
	req := sender(caller, true).NewRequest(tasking.MethodList, nil)
	core.SetTaskTerms(req, &tasking.Terms{})
	res, err := serve(t.Context(), r.mux, req, nil)
	if err != nil {
		t.Fatal("tasks/list:", err)
	}
	raw, _ := core.MarshalResult(res)
	var list tasking.List
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatalf("the list is %s: %v", raw, err)
	}
	return list.Tasks
}

// The same holds for the result of a remote server that a session of 2025-11-25 keeps as a
// task.
func TestTokenWithFewerScopesAtGateway(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		mux := through["a connection"].mount(t, newOlder(t).mux)
		s := legacyserver.NewServer(mux, nil).NewSession(legacyserver.Details{}, nil)
		defer s.Close()
		call := func(method, params string, scopes ...string) (m message) {
			raw := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
			parsed, err := transport.ParseMessage([]byte(raw))
			if err != nil {
				t.Fatal(err)
			}
			c := s.Accept(t.Context(), parsed, serving.Origin{Principal: &mcp.Principal{Subject: "ada", Scopes: scopes}})
			c.Serve(nil)
			if err := json.Unmarshal(c.Append(nil), &m); err != nil {
				t.Fatal(err)
			}
			return m
		}
		call("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"old","version":"1"}}`)
		created := call("tools/call", `{"name":"a_plain","arguments":{},"task":{}}`, "payroll")
		var result struct {
			Task json.RawMessage `json:"task"`
		}
		if err := json.Unmarshal(created.Result, &result); err != nil || result.Task == nil {
			t.Fatalf("tools/call: %s, %v", created.Result, created.Error)
		}
		if m := call("tasks/result", string(result.Task), "notes"); m.Error == nil || m.Error.Code != mcp.CodeInsufficientScope {
			t.Errorf("with fewer scopes: %s, %v", m.Result, m.Error)
		}
		if m := call("tasks/result", string(result.Task), "payroll", "notes"); !strings.Contains(string(m.Result), "plain") {
			t.Errorf("with more scopes: %s, %v", m.Result, m.Error)
		}
	})
}

// A remote server does not know the tokens of a gateway's callers, so the gateway checks
// them.
func TestTokenWithFewerScopesAtDistantServer(t *testing.T) {
	for way, gateway := range through {
		t.Run(way, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newReplica(t, store.NewMemory(nil), nil, nil)
				r.tool("payroll", func(context.Context) (string, error) { return "secret", nil })
				mux := gateway.mount(t, r.mux)
				ada := func(scopes ...string) *mcptest.Client {
					return &mcptest.Client{Principal: &mcp.Principal{Subject: "ada", Scopes: scopes}, Options: *options()}
				}
				h := start(t, ada("payroll").Connect(t, mux), gateway.prefix+"payroll")
				until(t, h, tasks.Completed)
				for _, method := range []string{tasks.MethodGet, tasks.MethodUpdate, tasks.MethodCancel} {
					params := map[string]any{"taskId": h.ID, "inputResponses": map[string]any{}}
					_, _, err := mcptest.Do(t, mux, sender(ada("notes").Principal, true).NewRequest(method, params))
					if mcp.CodeOf(err) != mcp.CodeInsufficientScope {
						t.Errorf("%s: %v", method, err)
					}
				}
				if got := watchedIDs(t, &replica{mux: mux}, ada("notes").Principal, h.ID); len(got) != 0 {
					t.Errorf("the subscription accepts %q", got)
				}
				more := ada("notes", "payroll")
				if again, err := tasks.Attach(more.Connect(t, mux), h.ID).Get(t.Context()); err != nil || text(t, again) != "secret" {
					t.Errorf("with more scopes: %v, %v", again, err)
				}
			})
		})
	}
}
