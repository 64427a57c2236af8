// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
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

// A tenant is a claim with a type of the program.
type tenant struct {
	Name  string `json:"name"`
	Shard int    `json:"shard"`
}

// Every run of a handler sees the same caller, in whatever process it takes place, and so does
// the handler of an ordinary call. Its claims are what JSON makes of them. No integer changes.
func TestFindingK4CallerInEveryRun(t *testing.T) {
	claims := map[string]any{
		"text": "a", "yes": true, "none": nil, "fraction": 0.1, "int": 7, "large": int64(9007199254740993), "unsigned": uint64(math.MaxUint64),
		"round": int64(10_000_000), "power": 1e22, "least": int64(math.MinInt64), "list": []string{"a", "b"}, "numbers": []any{int64(9007199254740993), 1},
		"struct": &tenant{"acme", 3}, "time": time.Date(2026, 8, 1, 9, 0, 0, 0, time.UTC), "duration": json.Number("12345678901234567890"),
	}
	want := map[string]string{
		"text": `"a"`, "yes": "true", "none": "<nil>", "fraction": "0.1", "int": "7", "large": `"9007199254740993"`, "unsigned": `"18446744073709551615"`,
		"round": "1e+07", "power": "1e+22", "least": `"-9223372036854775808"`, "list": `[]interface {}{"a", "b"}`, "numbers": `[]interface {}{"9007199254740993", 1}`,
		"struct": `map[string]interface {}{"name":"acme", "shard":3}`, "time": `"2026-08-01T09:00:00Z"`, "duration": `"12345678901234567890"`,
	}
	caller := &mcp.Principal{Issuer: "i", Subject: "ada", Scopes: []string{"films"}, Claims: claims, Expiry: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	inBubble(t, func(t *testing.T) {
		var seen []*mcp.Principal
		shared := store.NewMemory(nil)
		open := func() *replica {
			r := newReplica(t, shared, nil, nil)
			r.tool("ask", func(ctx context.Context) (string, error) {
				seen = append(seen, mcp.PrincipalFromContext(ctx))
				for i := range 2 {
					if _, err := mcp.Elicit[codec](ctx, fmt.Sprint(i), "Which codec?"); err != nil {
						return "", err
					}
				}
				return "done", nil
			})
			return r
		}
		first := open()
		h := start(t, first.connectAs(t, caller), "ask")
		answer(t, h, until(t, h, tasks.InputRequired), av1)
		synctest.Wait()
		first.shutdown(t)
		h = tasks.Attach(open().connectAs(t, caller), h.ID)
		answer(t, h, until(t, h, tasks.InputRequired), av1)
		until(t, h, tasks.Completed)
		plain := &mcptest.Client{Principal: caller, Options: mcp.ClientOptions{Elicit: options().Elicit}}
		if _, err := mcp.Call[string](t.Context(), plain.Connect(t, first.mux), "ask", struct{}{}); err != nil {
			t.Error("an ordinary call:", err)
		}
		if len(seen) != 6 {
			t.Fatalf("the handler ran %d times", len(seen))
		}
		for i, p := range seen {
			if !p.Is(caller) || fmt.Sprint(p.Scopes) != "[films]" || !p.Expiry.Equal(caller.Expiry) || len(p.Claims) != len(want) {
				t.Errorf("in run %d, the caller is %+v", i+1, p)
			}
			for name, want := range want {
				if got := fmt.Sprintf("%#v", p.Claims[name]); got != want {
					t.Errorf("in run %d, the claim %q is %s, want %s", i+1, name, got, want)
				}
			}
		}
	})
}

// A claim that cannot be stored makes the call fail with an error that names it.
func TestFindingK4ClaimWithoutJSON(t *testing.T) {
	r := newReplica(t, store.NewMemory(nil), nil, nil)
	r.tool("quick", func(context.Context) (string, error) { return "done", nil })
	caller := &mcp.Principal{Subject: "ada", Claims: map[string]any{"name": "Ada", "lookup": func() string { return "" }}}
	_, _, err := tasks.Start(t.Context(), r.connectAs(t, caller), quickCall)
	if err == nil || !strings.Contains(err.Error(), `the claim "lookup" of the caller`) {
		t.Errorf("the error is %v", err)
	}
}
