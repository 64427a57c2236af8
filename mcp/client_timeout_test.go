// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
)

// A user who takes time to answer does not cost the call its answer. After that, the
// server has as much time as before.
func TestCallTimeoutWaitsForAnswers(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		synctest.Test(t, func(t *testing.T) {
			mux := welcoming()
			mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, in struct {
				Wait int `json:"wait"`
			}) (string, error) {
				answer, err := mcp.Elicit[struct {
					Name string `json:"name"`
				}](ctx, "name", "Who?")
				if err != nil {
					return "", err
				}
				<-time.After(time.Duration(in.Wait) * time.Second)
				return answer.Name, ctx.Err()
			}, nil))
			c := connect(t, mux, &mcp.ClientOptions{
				Version: version, CallTimeout: 5 * time.Second,
				Elicit: func(ctx context.Context, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
					<-time.After(30 * time.Second)
					return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: []byte(`{"name":"Ada"}`)}, nil
				},
			})
			ask := func(wait int) (string, error) {
				return mcp.Call[string](t.Context(), c, "ask", map[string]int{"wait": wait})
			}
			if got, err := ask(1); got != "Ada" || err != nil {
				t.Errorf("%s: %q, %v", version, got, err)
			}
			begin := time.Now()
			var timeout *mcp.TimeoutError
			if _, err := ask(60); !errors.As(err, &timeout) || time.Since(begin) != 35*time.Second {
				t.Errorf("%s: after an answer, a server that does not: %v after %v, want a timeout after 35s", version, err, time.Since(begin))
			}
			_ = c.Close()
			<-time.After(2 * time.Minute)
		})
	}
}
