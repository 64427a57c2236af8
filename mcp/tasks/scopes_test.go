// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
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
		}
		more := ada("payroll", "more", "notes")
		if again, err := tasks.Attach(r.connectAs(t, more), h.ID).Get(t.Context()); err != nil || text(t, again) != "secret" {
			t.Errorf("with more scopes: %v, %v", again, err)
		}
		if got := watchedIDs(t, r, more, h.ID); !slices.Equal(got, []string{h.ID}) {
			t.Errorf("with more scopes, the subscription accepts %q", got)
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
