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
