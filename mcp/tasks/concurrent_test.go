// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// Steps with different keys can run concurrently.
func TestConcurrentOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		steps := new(ledger)
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		r.tool("work", func(ctx context.Context) (string, error) {
			var wg sync.WaitGroup
			for i := range 10 {
				wg.Go(func() {
					if err := steps.once(ctx, fmt.Sprint("step ", i)); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			return "done", nil
		})
		until(t, start(t, r.connect(t), "work"), tasks.Completed)
		if again := steps.repeated(); again != nil || steps.count("step 9") != 1 {
			t.Errorf("run again: %v", again)
		}
	})
}
