// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// TestFindingV12TextsForModels checks that errors which tools return, and the text of which
// models and users read therefore, do not begin with the name of a package.
func TestFindingV12TextsForModels(t *testing.T) {
	type form struct {
		Name string `json:"name"`
	}
	elicit := func(res *mcp.ElicitResult) func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) { return res, nil }
	}
	for _, test := range []struct {
		name   string
		answer *mcp.ElicitResult
		tool   func(ctx context.Context) error
		want   string
	}{
		{"declined", mcp.DeclineElicit(), func(ctx context.Context) error {
			_, err := mcp.Elicit[form](ctx, "name", "Your name?")
			return err
		}, "the user declined to answer"},
		{"cancelled", &mcp.ElicitResult{Action: mcp.ActionCancel}, func(ctx context.Context) error {
			_, err := mcp.Elicit[form](ctx, "name", "Your name?")
			return err
		}, "the user cancelled the question"},
		{"a wrong page", nil, func(ctx context.Context) error {
			return mcp.ElicitURL(ctx, "page", "Log in", "ftp://example.com")
		}, `question "page": "ftp://example.com" is not the URL of a page, https or http`},
		{"asked outside of a handler", nil, func(context.Context) error {
			_, err := mcp.Elicit[form](context.Background(), "name", "Your name?")
			return err
		}, "questions can be asked only in"},
		{"another tool", nil, func(context.Context) error {
			return &mcp.ToolError{Tool: "other", Result: mcp.ErrorResult(errors.New("closed"))}
		}, `the tool "other" failed: closed`},
		{"another server's output", nil, func(context.Context) error {
			return &mcp.OutputError{Tool: "other", Err: errors.New("no schema")}
		}, `the output of "other" could not be validated: no schema`},
		{"a slow server", nil, func(context.Context) error {
			return &mcp.TimeoutError{Method: mcp.MethodCallTool, After: time.Second}
		}, "no answer to tools/call within 1s"},
		{"a caller that cancels", nil, func(context.Context) error {
			return &mcp.CancelError{Reason: "enough"}
		}, "cancelled by the peer: enough"},
	} {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("t", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) { return "", test.tool(ctx) }, nil))
		(&mcptest.Client{Options: mcp.ClientOptions{Elicit: elicit(test.answer), ElicitURL: elicit(test.answer)}}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "t"})
			if err != nil || !res.IsError || !strings.HasPrefix(textOf(res), test.want) {
				t.Errorf("%s: got %q, %v, want %q", test.name, textOf(res), err, test.want)
			}
		})
	}
}
