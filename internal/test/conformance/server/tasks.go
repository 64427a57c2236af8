// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/tasks"
)

// addTasks adds the tools that run in the background. The caller must shut down the
// returned manager with the server.
func addTasks(mux *mcp.Mux) *tasks.Manager {
	manager := tasks.New("conformance", &tasks.Options{PollInterval: 200 * time.Millisecond})
	manager.Register(mux)
	mux.Tool("greet", mcp.ToolFunc(greet, about("Greets.")))

	background := mux.With(manager.Background(nil))
	background.Tool("slow_compute", mcp.ToolFunc(compute, about("Computes for some seconds.")))
	background.Tool("confirm_delete", mcp.ToolFunc(deleteFile, about("Deletes a file, if the user agrees.")))
	background.Tool("multi_input", mcp.ToolFunc(askTwice, about("Asks two questions at once.")))
	background.Tool("protocol_error_job", mcp.WithDescription(mcp.HandlerFunc(breakDown), &mcp.Tool{Description: "Fails in the protocol.", InputSchema: []byte(`{"type":"object"}`)}))

	required := mux.With(manager.Background(&tasks.BackgroundOptions{Required: true}))
	required.Tool("failing_job", mcp.ToolFunc(fail, about("Fails after a second.")))

	// Its first question is asked before the call becomes a task.
	later := mux.With(manager.Background(&tasks.BackgroundOptions{After: 50 * time.Millisecond}))
	later.Tool("test_tool_with_task", mcp.ToolFunc(askAndWork, about("Asks, and then works in the background.")))
	return manager
}

type name struct {
	Name string `json:"name"`
}

func greet(_ context.Context, in name) (string, error) {
	return fmt.Sprintf("Hello, %s!", in.Name), nil
}

type computation struct {
	Seconds float64 `json:"seconds,omitempty"`
	Label   string  `json:"label,omitempty"`
}

func compute(ctx context.Context, in computation) (string, error) {
	if err := async.Sleep(ctx, time.Duration(in.Seconds*float64(time.Second))); err != nil {
		return "", err
	}
	return "computed " + in.Label, nil
}

func fail(ctx context.Context, _ none) (string, error) {
	if err := async.Sleep(ctx, time.Second); err != nil {
		return "", err
	}
	return "", errors.New("the job failed")
}

func breakDown(context.Context, *mcp.Request) (mcp.Result, error) {
	return nil, mcp.Errorf(mcp.CodeInternalError, "the job broke down")
}

type file struct {
	Filename string `json:"filename"`
}

type agreement struct {
	Confirm bool `json:"confirm"`
}

func deleteFile(ctx context.Context, in file) (string, error) {
	if _, err := mcp.Elicit[agreement](ctx, "confirm", fmt.Sprintf("Delete %s?", in.Filename)); err != nil {
		return "", err
	}
	return "deleted " + in.Filename, nil
}

func askTwice(ctx context.Context, _ none) (string, error) {
	var first, last name
	err := mcp.Ask(ctx, mcp.ElicitQuestion("first", "Your first name?", &first), mcp.ElicitQuestion("last", "Your last name?", &last))
	if err != nil {
		return "", err
	}
	return first.Name + " " + last.Name, nil
}

func askAndWork(ctx context.Context, _ none) (string, error) {
	who, err := mcp.Elicit[name](ctx, "user_name", "What is your name?")
	if err != nil {
		return "", err
	}
	if err := async.Sleep(ctx, 500*time.Millisecond); err != nil {
		return "", err
	}
	return "worked for " + who.Name, nil
}
