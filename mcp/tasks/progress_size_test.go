// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// A progress message that is too large for the store is truncated. It does not prevent the
// lease from being renewed, which would cause the task to be run again.
func TestLongProgressMessage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, runs := newReplica(t, store.NewMemory(nil), nil, nil), new(ledger)
		r.tool("report", func(ctx context.Context) (string, error) {
			runs.run("report")
			mcp.Progress(ctx, 1, 2, "read "+strings.Repeat("é", 1<<20))
			select {
			case <-ctx.Done():
				return "", context.Cause(ctx)
			case <-time.After(time.Minute):
				return "done", nil
			}
		})
		h := start(t, r.connect(t), "report")
		<-time.After(10 * time.Second)
		if d := state(t, h); d.Status != tasks.Working || !strings.HasPrefix(d.StatusMessage, "read éé") {
			t.Errorf("the task is %s: %.20q", d.Status, d.StatusMessage)
		}
		until(t, h, tasks.Completed)
		if n := runs.count("report"); n != 1 {
			t.Errorf("%d runs", n)
		}
	})
}

// Numbers in a status message are for people: they have no exponent.
func TestFindingK14StatusMessageOfBytes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		total := map[string]float64{"copy": 3_000_000, "weigh": 2.5, "count": 0}
		done := map[string]float64{"copy": 1_500_000, "weigh": 0.25, "count": 12_345_678_901}
		for tool, want := range map[string]string{"copy": "copied (1500000 of 3000000)", "weigh": "copied (0.25 of 2.5)", "count": "copied (12345678901)"} {
			r.tool(tool, func(ctx context.Context) (string, error) {
				mcp.Progress(ctx, done[tool], total[tool], "copied")
				<-ctx.Done()
				return "", context.Cause(ctx)
			})
			h := start(t, r.connect(t), tool)
			<-time.After(time.Second)
			if d := state(t, h); d.StatusMessage != want {
				t.Errorf("the message is %q, want %q", d.StatusMessage, want)
			}
		}
	})
}
