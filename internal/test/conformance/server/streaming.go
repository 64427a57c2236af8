// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// addStreaming adds the tools that send notifications before they answer, or answer on a
// different connection.
func addStreaming(mux *mcp.Mux) {
	mux.Tool("test_tool_with_logging", mcp.ToolFunc(logging, about("Logs three messages while it works.")))
	mux.Tool("test_logging_tool", mcp.ToolFunc(logging, about("Logs to those who want to hear it.")))
	mux.Tool("test_tool_with_progress", mcp.ToolFunc(progressing, about("Reports its progress three times.")))
	mux.Tool("test_reconnection", mcp.ToolFunc(reconnecting, about("Lets go of its caller's connection before it answers.")))
}

// step is the duration of one simulated step of work.
const step = 50 * time.Millisecond

func logging(ctx context.Context, _ none) (string, error) {
	log := mcp.ClientLogger(ctx)
	for i, message := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		if i > 0 {
			if err := async.Sleep(ctx, step); err != nil {
				return "", err
			}
		}
		log.InfoContext(ctx, message)
	}
	return "The tool has said what it had to say.", nil
}

func progressing(ctx context.Context, _ none) (string, error) {
	const total = 100
	for done := 0; done <= total; done += total / 2 {
		mcp.Progress(ctx, float64(done), total, "working")
		if err := async.Sleep(ctx, step); err != nil {
			return "", err
		}
	}
	return "The work is done.", nil
}

// reconnecting closes the connection if the client can resume the stream to get the answer.
func reconnecting(ctx context.Context, _ none) (string, error) {
	if err := mcphttp.CloseStream(ctx); err != nil && !errors.Is(err, mcphttp.ErrNoStream) {
		return "", err
	}
	if err := async.Sleep(ctx, 2*step); err != nil {
		return "", err
	}
	return "The answer came, whatever became of the connection.", nil
}
