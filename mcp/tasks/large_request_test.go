// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// Another process continues a task whose request is larger than a value of the store, with
// the complete arguments.
func TestLargeRequestRunsAgain(t *testing.T) {
	for _, size := range []int{9 << 10, 256 << 10, 600_000} { // next to the record, in one to three parts
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				type in struct {
					Text string `json:"text"`
				}
				shared, large := store.NewMemory(nil), strings.Repeat("é", size/2-1)+"!"
				first, second := newReplica(t, shared, nil, nil), newReplica(t, shared, nil, nil)
				for r, name := range map[*replica]string{first: "first", second: "second"} {
					r.background.Tool("measure", mcp.ToolFunc(func(_ context.Context, in in) (string, error) {
						if name == "first" {
							<-time.After(time.Second) // the task is stored
							first.link.cut()
							<-time.After(20 * time.Second) // the lease expires
							first.link.set(nil)
						}
						return fmt.Sprint(in.Text == large, " by ", name), nil
					}, nil))
				}
				params := &mcp.CallToolParams{Name: "measure", Arguments: json.RawMessage(fmt.Sprintf(`{"text":%q}`, large))}
				started, _, err := tasks.Start(t.Context(), first.connect(t), params)
				if err != nil || started == nil {
					t.Fatalf("Start: %v, %v", started, err)
				}
				d := until(t, tasks.Attach(second.connect(t), started.ID), tasks.Completed)
				if got := text(t, d); got != "true by second" {
					t.Errorf("whether the arguments are the same: %s", got)
				}
			})
		})
	}
}
