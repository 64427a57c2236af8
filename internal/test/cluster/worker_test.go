// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package cluster_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"github.com/go-psi/psi/internal/test/cluster"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcpstdio"
)

// Environment variables of a worker: the addresses of the store and of the worker's own
// socket.
const (
	storeEnv  = "PSI_CLUSTER_STORE"
	socketEnv = "PSI_CLUSTER_SOCKET"
)

// TestMain runs a worker instead of the tests if the environment says so.
func TestMain(m *testing.M) {
	if os.Getenv(storeEnv) == "" {
		os.Exit(m.Run())
	}
	if err := work(context.Background(), os.Getenv(storeEnv), os.Getenv(socketEnv)); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// steps is the number of steps of a task.
const steps = 5

// work serves clients until the process is killed.
func work(ctx context.Context, storeAddress, socket string) error {
	shared, err := cluster.Dial("unix", storeAddress)
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	mux, manager := newServer(shared, 64)
	mux.With(manager.Background(nil)).Tool("steps", mcp.ToolFunc(func(ctx context.Context, in stepsIn) (string, error) { return in.run(ctx, shared) }, nil))
	return mcpstdio.ServeListener(ctx, mux, l, nil)
}

// newServer returns a server that keeps its tasks in s.
func newServer(s store.Store, maxRunning int) (*mcp.Mux, *tasks.Manager) {
	mux := mcp.NewMux("cluster", "1", nil)
	manager := tasks.New("cluster", &tasks.Options{
		Store: s, Lease: time.Second, PollInterval: 100 * time.Millisecond, MaxRunning: maxRunning, MaxAttempts: 1000,
		MaxPerCaller: 1 << 20, Logger: slog.New(slog.DiscardHandler),
	})
	manager.Register(mux)
	return mux, manager
}

type stepsIn struct {
	Task string `json:"task"`
}

// run runs the steps of a task. It records in the store when a step starts and when
// Once has returned the step's value; after that, the step must not start again.
func (in stepsIn) run(ctx context.Context, s store.Store) (string, error) {
	note := func(what string, step int) error {
		return store.Update(context.WithoutCancel(ctx), s, ledger, 0, func(lines []byte) ([]byte, error) {
			return fmt.Appendf(lines, "%s %s %d\n", what, in.Task, step), nil
		})
	}
	if err := note("run", 0); err != nil {
		return "", err
	}
	for step := range steps {
		_, err := mcp.Once(ctx, fmt.Sprint("step ", step), func(context.Context) (int, error) {
			err := note("begin", step)
			<-time.After(time.Duration(rand.IntN(300)) * time.Millisecond)
			return step, err
		})
		if err != nil {
			return "", err
		}
		if err := note("done", step); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s by the process %d: %x", in.Task, os.Getpid(), rand.Uint64()), nil
}

// ledger is the key under which workers record their steps, one per line.
const ledger = "ledger"
