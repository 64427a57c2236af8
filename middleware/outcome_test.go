// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// The operator can see from the log and the metrics why a tool failed, in every era and on
// every transport. The client sees only the public text. For invalid arguments, the log
// contains the place but not the value.
func TestFindingU7OperatorsSeeWhyAToolFailed(t *testing.T) {
	errDatabase := errors.New("password authentication failed")
	m := new(meter)
	l, log := lines()
	opts := quiet()
	opts.PublicError = func(context.Context, error) error { return errors.New("try again later") }
	inner := mcp.NewMux("inner", "v1", quiet())
	inner.Tool("load", mcp.ToolFunc(func(context.Context, struct {
		Name string `json:"name,omitempty" jsonschema:"maxLength=8"`
	}) (string, error) {
		return "", fmt.Errorf("load notes: %w", errDatabase)
	}, nil))
	mux := mcp.NewMux("outer", "v1", opts)
	mux.Use(middleware.Logger(l), middleware.Metrics(m, &middleware.MetricsOptions{Cause: func(err error) string {
		if errors.Is(err, errDatabase) {
			return "database"
		}
		return "other"
	}}))
	mux.Mount("in_", inner)
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for _, test := range []struct{ args, model, log, metric string }{
			{`{}`, "try again later", `level=WARN .*outcome=isError error="load notes: password authentication failed"`, "outcome=isError code= cause=database"},
			{`{"name":"a secret value"}`, "invalid arguments", `level=INFO .*outcome=invalid_arguments error="/name (maxLength)"`, "outcome=invalid_arguments code= cause=other"},
		} {
			log.Reset()
			m.take()
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "in_load", Arguments: []byte(test.args)})
			if err != nil || !res.IsError || !strings.Contains(textOf(t, res), test.model) || strings.Contains(textOf(t, res), "password") {
				t.Errorf("the client got %v, %v", res, err)
			}
			level, rest, _ := strings.Cut(test.log, ".*")
			if got := log.String(); !strings.Contains(got, level) || !strings.Contains(got, rest) || strings.Contains(got, "a secret value") {
				t.Errorf("the log has %s, want %s", got, test.log)
			}
			if seen := m.take(); !slices.Contains(seen, "requests_total method=tools/call name=in_load "+test.metric+" +1") {
				t.Errorf("measured %q", seen)
			}
		}
	})
}

// A tool that returns the error of its context is cancelled, not failed: a user who presses
// stop must not trigger an alert.
func TestFindingU15CancelledToolsAreCancelled(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context) error{
		"error": context.Context.Err,
		"cause": context.Cause,
		"other": func(context.Context) error { return errors.New("pq: canceling statement due to user request") },
	} {
		m := new(meter)
		l, log := lines()
		ctx, cancel := context.WithCancelCause(t.Context())
		mux := serving(mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			cancel(&mcp.CancelError{Reason: "the user pressed stop"})
			<-ctx.Done()
			return "", end(ctx)
		}, nil), middleware.Logger(l), middleware.Metrics(m, nil))
		_, _ = mux.ServeMCP(ctx, call("t"))
		if got := log.String(); !strings.Contains(got, "level=INFO") || !strings.Contains(got, "outcome=cancelled") {
			t.Errorf("%s: the log has %s", name, got)
		}
		if seen := strings.Join(m.take(), "\n"); !strings.Contains(seen, "outcome=cancelled") {
			t.Errorf("%s: measured %s", name, seen)
		}
	}
}

// A tool that gives up on its own operation while the client is still waiting has failed.
func TestFindingU15TimeoutsOfAToolAreFailures(t *testing.T) {
	l, log := lines()
	mux := serving(mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return "", ctx.Err()
	}, nil), middleware.Logger(l))
	_, _ = mux.ServeMCP(t.Context(), call("t"))
	if got := log.String(); !strings.Contains(got, `level=WARN`) || !strings.Contains(got, `outcome=isError error="context canceled"`) {
		t.Errorf("the log has %s", got)
	}
}

// A tool that rejects a caller has its name as a label from the first call on. Names
// invented by clients do not.
func TestFindingU19DeniedToolsHaveALabel(t *testing.T) {
	m := new(meter)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(middleware.Metrics(m, nil))
	inner := mcp.NewMux("inner", "v1", quiet())
	for _, view := range []*mcp.Mux{mux, inner} {
		view.With(middleware.RequireScopes("admin")).Tool("secret", says(""))
	}
	mux.Mount("in_", inner)
	for name, want := range map[string]string{"secret": "secret", "in_secret": "in_secret", "made_up": "other", "in_made_up": "other"} {
		_, err := mux.ServeMCP(t.Context(), call(name))
		if err == nil {
			t.Errorf("%s was served", name)
		}
		if seen := strings.Join(m.take(), "\n"); !strings.Contains(seen, "requests_total method=tools/call name="+want+" outcome=error") {
			t.Errorf("%s: measured %s", name, seen)
		}
	}
}

// Every middleware that may be around one tool can be chained to a handler before it is registered.
func TestFindingU17MiddlewareKeepsDescriptions(t *testing.T) {
	for i, mw := range aroundOne() {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("t", mcp.Chain(says(""), mw))
		res, err := mux.ServeMCP(t.Context(), mcptest.NewRequest(mcp.MethodListTools, nil))
		if list, ok := res.(*mcp.ListToolsResult); err != nil || !ok || len(list.Tools) != 1 {
			t.Errorf("middleware %d hides the tool: %v, %v", i, res, err)
		}
	}
}

// Without authentication, the ID of a task is all that a client needs to read its result
// and to cancel it. Logs contain a digest instead, which identifies the requests about one
// task.
func TestIDsOfTasksAreNotLogged(t *testing.T) {
	const id = "abcdefghijklmnopqrstuvwxyz"
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		var log bytes.Buffer
		l := slog.New(slog.NewTextHandler(&log, nil))
		h := mcp.Chain(&server{res: &mcp.EmptyResult{}}, middleware.Logger(l), middleware.Audit(middleware.AuditLog(l), nil))
		do(t, h, mcptest.NewRequest(method, map[string]string{"taskId": id}))
		if text := log.String(); strings.Contains(text, id) || strings.Count(text, "name=71c480df93d6ae2f") != 2 {
			t.Errorf("%s: logged %s", method, text)
		}
	}
}
