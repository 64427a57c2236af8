// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"

	"github.com/go-psi/psi/mcp"
)

// A tool reports its progress to callers that want it, and only to them.
func ExampleProgress() {
	mux := mcp.NewMux("importer", "v1.0.0", nil)
	mux.Tool("import", mcp.ToolFunc(func(ctx context.Context, in struct {
		Files []string `json:"files"`
	}) (string, error) {
		for i, file := range in.Files {
			mcp.Progress(ctx, float64(i+1), float64(len(in.Files)), "read "+file)
		}
		return "done", nil
	}, nil))
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	watched := mcp.WithProgress(ctx, func(p *mcp.ProgressParams) {
		fmt.Println(p.Progress, "of", *p.Total, p.Message)
	})
	fmt.Println(mcp.Call[string](watched, conn, "import", map[string][]string{"files": {"a.csv", "b.csv"}}))
	// Output:
	// 1 of 2 read a.csv
	// 2 of 2 read b.csv
	// done <nil>
}

// Messages for the client are logged with log/slog. The client sets the minimum level.
func ExampleClientLogger() {
	mux := mcp.NewMux("importer", "v1.0.0", nil)
	mux.Tool("import", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		log := mcp.ClientLogger(ctx)
		log.Debug("opened", "file", "a.csv")
		log.Warn("skipped", "line", 17)
		return "done", nil
	}, nil))
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	logged := mcp.WithLog(ctx, mcp.LoggingLevelInfo, func(p *mcp.LoggingMessageParams) {
		fmt.Println(p.Level, p.Data)
	})
	fmt.Println(mcp.Call[string](logged, conn, "import", nil))
	// Output:
	// warning map[line:17 msg:skipped]
	// done <nil>
}
