// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// A task that takes steps of ten seconds and does not look at its context takes no further
// step once it has been cancelled, its TTL has passed, or the server shuts down.
func TestFindingV1V3NoStepBeginsAfterTheEndOfATask(t *testing.T) {
	ends := map[string]func(t *testing.T, r *replica, h *tasks.Handle){
		"cancelled": func(t *testing.T, _ *replica, h *tasks.Handle) {
			if err := h.Cancel(t.Context()); err != nil {
				t.Error("tasks/cancel:", err)
			}
		},
		"expired":   func(*testing.T, *replica, *tasks.Handle) { <-time.After(time.Minute) },
		"shut down": func(t *testing.T, r *replica, _ *tasks.Handle) { r.shutdown(t) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				steps := new(ledger)
				r := newReplica(t, store.NewMemory(nil), nil, &tasks.BackgroundOptions{TTL: 15 * time.Second})
				r.tool("pay", func(ctx context.Context) (string, error) {
					for i := range 100 {
						if err := steps.once(ctx, fmt.Sprint("step ", i)); err != nil {
							return "", err
						}
						<-time.After(10 * time.Second) // regardless of ctx
					}
					return "paid", nil
				})
				h := start(t, r.connect(t), "pay")
				<-time.After(11 * time.Second)
				end(t, r, h)
				<-time.After(time.Hour)
				synctest.Wait()
				if n := len(steps.runs); n != 2 {
					t.Errorf("%d steps began, want the two that began before the end", n)
				}
			})
		})
	}
}
