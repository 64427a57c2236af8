// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// notified is a notifier that writes down what it gets.
type notified []string

func (n *notified) Notify(_ context.Context, method string, params json.RawMessage) error {
	*n = append(*n, method+string(params))
	return nil
}

// Middleware can drop notifications about a request: all filters have to agree, they apply
// to copies of the request, and a request that is served again begins without any.
func TestFindingCM18FilterNotifications(t *testing.T) {
	without := func(text string) mcp.Middleware {
		return func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				req.FilterNotifications(func(_ string, params json.RawMessage) bool { return !strings.Contains(string(params), text) })
				return next.ServeMCP(ctx, req.Clone())
			})
		}
	}
	say := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		for _, text := range []string{"a", "b", "c"} {
			if err := req.Notify(ctx, "notifications/x", map[string]string{"": text}); err != nil {
				t.Error(err)
			}
		}
		return &mcp.EmptyResult{}, nil
	})
	req, err := mcp.NewRequest("test/say", nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, h := range map[string]mcp.Handler{
		"c":   mcp.Chain(say, without("a"), without("b")),
		"bc":  mcp.Chain(say, without("a")),
		"abc": say,
	} {
		var got notified
		if _, err := core.Serve(t.Context(), h, req, &got, nil); err != nil {
			t.Fatal(err)
		}
		all := strings.Join(got, "")
		for _, text := range []string{"a", "b", "c"} {
			if strings.Contains(all, `"`+text+`"`) != strings.Contains(want, text) {
				t.Errorf("got %s, want %q", all, want)
			}
		}
	}
}
