// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/tasks"
)

// addTasks adds a tool that runs in the background for clients that support tasks. All
// replicas share one store of tasks.
func (s *server) addTasks(mux *mcp.Mux) *tasks.Manager {
	manager := tasks.New("soak", &tasks.Options{
		Store: s.tasks, TTL: 2 * patience, PollInterval: 200 * time.Millisecond, Lease: 3 * time.Second,
		MaxPerCaller: 1 << 20, Logger: slog.New(&s.logged),
	})
	manager.Register(mux)
	mux.With(manager.Background(nil)).Tool("task", s.counted(task))
	return manager
}

// task runs steps and elicits an answer in between. A replica that shuts down hands the
// task over.
func task(ctx context.Context, in arguments) (string, error) {
	step := func(key string) error {
		_, err := mcp.Once(ctx, key, func(context.Context) (bool, error) {
			pause(ctx, time.Duration(in.Pause)*time.Millisecond)
			return true, context.Cause(ctx)
		})
		return err
	}
	if err := step("before"); err != nil {
		return "", err
	}
	a, err := mcp.Elicit[answer](ctx, "a", in.Text+"a")
	if err != nil {
		return "", err
	}
	for i := range steps {
		if err := step(fmt.Sprint("after ", i)); err != nil {
			return "", err
		}
	}
	return a.Text, nil
}

// shutdownTasks shuts down a task manager, which hands its tasks over to other replicas.
func shutdownTasks(m *tasks.Manager) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return m.Shutdown(ctx)
}
