// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/middleware"
)

type indexIn struct {
	Files []string `json:"files"`
}

func indexFile(ctx context.Context, _ string) error { return ctx.Err() }

func index(ctx context.Context, in indexIn) (string, error) {
	for i, file := range in.Files {
		if err := indexFile(ctx, file); err != nil {
			return "", err
		}
		mcp.Progress(ctx, float64(i+1), float64(len(in.Files)), file)
	}
	return fmt.Sprintf("indexed %d files", len(in.Files)), nil
}

func newIndex() *mcp.Mux {
	mux := mcp.NewMux("index", "v1.0.0", nil)
	mux.Use(middleware.Timeout(30 * time.Second))
	mux.With(middleware.Concurrency(4, 16)).Tool("index", mcp.ToolFunc(index, nil))
	mux.With(middleware.Heartbeat(10*time.Second)).Tool("index_quietly", mcp.ToolFunc(index, nil))
	return mux
}

func Example_progress() {
	ctx, files := context.Background(), []string{"a.txt", "b.txt"}
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(newIndex()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	ctx = mcp.WithProgress(ctx, func(p *mcp.ProgressParams) {
		fmt.Printf("%.0f: %s\n", p.Progress, p.Message) // p.Total is nil if it is not known
	})
	answer, err := mcp.Call[string](ctx, conn, "index", indexIn{Files: files})
	fmt.Println(answer, err)
	// Output:
	// 1: a.txt
	// 2: b.txt
	// indexed 2 files <nil>
}

func Example_log() {
	mux := mcp.NewMux("index", "v1.0.0", nil)
	mux.Tool("verify", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.ClientLogger(ctx).Warn("skipped")
		return "verified", nil
	}, nil))
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	ctx = mcp.WithLog(ctx, mcp.LoggingLevelInfo, func(p *mcp.LoggingMessageParams) {
		fmt.Println(p.Level, p.Data)
	})
	fmt.Println(mcp.Call[string](ctx, conn, "verify", nil))
	// Output:
	// warning map[msg:skipped]
	// verified <nil>
}

// A tool that may become a task, called by a client that knows tasks and by one that does not.
func Example_tasks() {
	mux := mcp.NewMux("index", "v1.0.0", nil)
	manager := tasks.New("index", nil) // in production, with Options.Store
	defer manager.Shutdown(context.Background())
	manager.Register(mux)
	mux.With(manager.Background(&tasks.BackgroundOptions{After: 5 * time.Second})).Tool("index_all", mcp.ToolFunc(index, nil))

	client := mcp.NewClient("host", "v1.0.0", &mcp.ClientOptions{Extensions: []*mcp.ClientExtension{tasks.Client()}})
	for _, c := range []*mcp.Client{client, mcp.NewClient("plain", "v1.0.0", nil)} {
		ctx := context.Background()
		conn, err := c.Connect(ctx, mcp.InProcess(mux))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(mcp.Call[string](ctx, conn, "index_all", indexIn{Files: []string{"a.txt"}}))
		_ = conn.Close()
	}
	// Output:
	// indexed 1 files <nil>
	// indexed 1 files <nil>
}
