// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
)

// The codes that a peer sees, as the specification and HTTP have them.
func TestCodesOnTheWire(t *testing.T) {
	era := eras[0]
	wrongVersion := strings.Replace(era.request("1", mcp.MethodListTools, ""), "2026-07-28", "2033-01-01", 1)
	returned := map[int]error{
		403: mcp.NewInsufficientScopeError("a"), 429: mcp.NewRateLimitedError(time.Second, "slow down"), -32603: fmt.Errorf("broken"),
		-32020: mcp.Errorf(mcp.CodeHeaderMismatch, "no"), 408: mcp.Errorf(mcp.CodeTimeout, "late"), 413: mcp.Errorf(mcp.CodeTooLarge, "long"),
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Handle("vendor/fail", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		var p struct {
			Code int `json:"code"`
		}
		if err := req.Decode(&p); err != nil {
			return nil, err
		}
		return nil, returned[p.Code]
	}))
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Roots(ctx, "k")
		return "", err
	}, nil))
	sent := map[string]int{
		`{`: -32700, `{"jsonrpc":"1.0","id":1,"method":"x"}`: -32600,
		era.request("1", "vendor/none", ""):                  -32601,
		era.request("1", mcp.MethodCallTool, `"name":5`):     -32602,
		era.request("1", mcp.MethodCallTool, `"name":"ask"`): -32021,
		wrongVersion: -32022,
	}
	for code := range returned {
		sent[era.request("1", "vendor/fail", fmt.Sprintf(`"code":%d`, code))] = code
	}
	for message, code := range sent {
		p := newPeer(t, mux, era)
		p.send(message)
		if got := p.read(); got.Error == nil || got.Error.Code != code {
			t.Errorf("%s: got %s, %v, want the code %d", message, got.Result, got.Error, code)
		}
	}
}

// A delay is rounded up to milliseconds, is never negative, and is at most a day for the
// caller who reads it.
func TestRetryAfterBounds(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{
		-time.Hour: 0, -1: 0, 0: 0, 1: time.Millisecond, time.Millisecond: time.Millisecond, time.Millisecond + 1: 2 * time.Millisecond,
		24 * time.Hour: 24 * time.Hour, 24*time.Hour + 1: 24 * time.Hour, 48 * time.Hour: 24 * time.Hour,
	} {
		if got, ok := mcp.RetryAfter(mcp.NewRateLimitedError(after, "no")); !ok || got != want {
			t.Errorf("%v: got %v, %t", after, got, ok)
		}
	}
	for data, want := range map[string]time.Duration{`{"retryAfterMs":-5}`: 0, `{"retryAfterMs":9223372036854775807}`: 24 * time.Hour} {
		if got, ok := mcp.RetryAfter(&mcp.Error{Code: mcp.CodeRateLimited, Data: json.RawMessage(data)}); !ok || got != want {
			t.Errorf("%s: got %v, %t", data, got, ok)
		}
	}
	for _, err := range []error{
		nil, fmt.Errorf("x"), &mcp.Error{Code: mcp.CodeRateLimited}, &mcp.Error{Code: mcp.CodeRateLimited, Data: json.RawMessage(`{"retryAfterMs":"1"}`)},
		&mcp.Error{Code: mcp.CodeRateLimited, Data: json.RawMessage(`{}`)}, &mcp.Error{Code: mcp.CodeTimeout, Data: json.RawMessage(`{"retryAfterMs":1}`)},
	} {
		if got, ok := mcp.RetryAfter(err); ok || got != 0 {
			t.Errorf("%v: got %v", err, got)
		}
	}
}

// An error ends the iteration over a list, and is yielded last.
func TestListIterationErrors(t *testing.T) {
	calls := 0
	mux := described()
	h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if strings.HasSuffix(req.Method, "/list") {
			if calls++; calls > 1 {
				return nil, mcp.Errorf(mcp.CodeInternalError, "broken")
			}
			next := "more"
			res, err := mux.ServeMCP(ctx, req)
			switch r := res.(type) {
			case *mcp.ListToolsResult:
				r.NextCursor = &next
			case *mcp.ListPromptsResult:
				r.NextCursor = &next
			case *mcp.ListResourcesResult:
				r.NextCursor = &next
			}
			return res, err
		}
		return mux.ServeMCP(ctx, req)
	})
	c := connect(t, h, nil)
	check := func(name string, items int, errs []error) {
		if items != 1 || len(errs) != 1 || mcp.CodeOf(errs[0]) != mcp.CodeInternalError {
			t.Errorf("%s: %d items, then %v", name, items, errs)
		}
		calls = 0
	}
	count := func(err error, items *int, errs *[]error) {
		if err != nil {
			*errs = append(*errs, err)
		} else {
			*items++
		}
	}
	var items int
	var errs []error
	calls = 0
	for _, err := range c.Tools(t.Context(), nil) {
		count(err, &items, &errs)
	}
	check("tools", items, errs)
	items, errs = 0, nil
	for _, err := range c.Prompts(t.Context(), nil) {
		count(err, &items, &errs)
	}
	check("prompts", items, errs)
	items, errs = 0, nil
	for _, err := range c.Resources(t.Context(), nil) {
		count(err, &items, &errs)
	}
	check("resources", items, errs)
}
