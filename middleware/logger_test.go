// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// lines returns a logger that writes text without times.
func lines() (*slog.Logger, *bytes.Buffer) {
	var out bytes.Buffer
	return slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "duration" && a.Value.Duration() >= 0 {
				return slog.Attr{}
			}
			return a
		},
	})), &out
}

func answering(res mcp.Result, err error) mcp.Handler {
	return mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return res, err })
}

func TestLoggerOutcomes(t *testing.T) {
	call := map[string]any{"name": "add", "arguments": map[string]any{"password": "SECRET"}}
	tests := []struct {
		name    string
		method  string
		params  any
		handler mcp.Handler
		want    string
	}{
		{"ok", "tools/call", call, answering(mcp.TextResult("SECRET"), nil), "level=INFO msg=\"mcp: request\" method=tools/call name=add version=2026-07-28 outcome=ok\n"},
		{"isError", "tools/call", call, answering(&mcp.CallToolResult{Content: mcp.Contents{mcp.Text("SECRET")}, IsError: true}, nil), "level=INFO msg=\"mcp: request\" method=tools/call name=add version=2026-07-28 outcome=isError\n"},
		{"failed tool", "tools/call", call, answering(mcp.ErrorResult(errors.New("disk full")), nil), "level=WARN msg=\"mcp: request\" method=tools/call name=add version=2026-07-28 outcome=isError error=\"disk full\"\n"},
		{"input", "tools/call", call, answering(&mcp.InputRequired{RequestState: new("SECRET")}, nil), "level=INFO msg=\"mcp: request\" method=tools/call name=add version=2026-07-28 outcome=input_required\n"},
		{"error", "tools/call", call, answering(nil, mcp.Errorf(mcp.CodeInvalidParams, "not SECRET")), "level=INFO msg=\"mcp: request\" method=tools/call name=add version=2026-07-28 outcome=error code=-32602\n"},
		{"internal", "tools/call", call, answering(nil, errors.New("disk full")), "level=ERROR msg=\"mcp: request\" method=tools/call name=add version=2026-07-28 outcome=error code=-32603 error=\"disk full\"\n"},
		{"no name", "tools/list", nil, answering(&mcp.ListToolsResult{}, nil), "level=INFO msg=\"mcp: request\" method=tools/list version=2026-07-28 outcome=ok\n"},
		{"URI", "resources/read", map[string]any{"uri": "https://me:SECRET@host.example/a@b?token=SECRET#SECRET"}, answering(&mcp.ReadResourceResult{}, nil), "level=INFO msg=\"mcp: request\" method=resources/read name=https://host.example/a@b version=2026-07-28 outcome=ok\n"},
		{"long", "tools/call", map[string]any{"name": strings.Repeat("ü", 1000)}, answering(mcp.TextResult(""), nil), "level=INFO msg=\"mcp: request\" method=tools/call name=" + strings.Repeat("ü", 128) + "… version=2026-07-28 outcome=ok\n"},
		{"panic", "tools/call", call, mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { panic("SECRET") }), "level=ERROR msg=\"mcp: request\" method=tools/call name=add version=2026-07-28 outcome=panic\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l, out := lines()
			_, _, _ = mcptest.Do(t, middleware.Logger(l)(test.handler), mcptest.NewRequest(test.method, test.params))
			if got := out.String(); got != test.want {
				t.Errorf("got  %swant %s", got, test.want)
			}
		})
	}
}

func TestLoggerPassesOutcomesOn(t *testing.T) {
	l, _ := lines()
	want := mcp.TextResult("x")
	res, _, err := mcptest.Do(t, middleware.Logger(l)(answering(want, nil)), mcptest.NewRequest("tools/call", nil))
	if res != mcp.Result(want) || err != nil {
		t.Errorf("got %v, %v", res, err)
	}
	fault := errors.New("x")
	if _, _, err = mcptest.Do(t, middleware.Logger(l)(answering(nil, fault)), mcptest.NewRequest("tools/call", nil)); err != fault { //nolint:errorlint // the same error
		t.Errorf("got %v", err)
	}
}

func TestLoggerTellsCancelled(t *testing.T) {
	l, out := lines()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h := middleware.Logger(l)(answering(nil, context.Canceled))
	_, _ = h.ServeMCP(ctx, mcptest.NewRequest("tools/list", nil))
	if want := "level=INFO msg=\"mcp: request\" method=tools/list version=2026-07-28 outcome=cancelled\n"; out.String() != want {
		t.Errorf("got %s", out)
	}
}

// AddSource works: records contain the place where they were logged.
func TestLoggerSource(t *testing.T) {
	var out bytes.Buffer
	l := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{AddSource: true}))
	_, _ = middleware.Logger(l)(answering(nil, nil)).ServeMCP(t.Context(), mcptest.NewRequest("tools/list", nil))
	if !strings.Contains(out.String(), "middleware/logger.go:") {
		t.Errorf("got %s", out.String())
	}
}

func TestLoggerDefault(t *testing.T) {
	l, out := lines()
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(l)
	_, _ = middleware.Logger(nil)(answering(&mcp.EmptyResult{}, nil)).ServeMCP(t.Context(), mcptest.NewRequest("x/y", nil))
	if !strings.Contains(out.String(), "method=x/y") {
		t.Errorf("got %q", out)
	}
}

// If a request asks a question, both rounds are logged, in every era.
func TestLoggerInEveryEra(t *testing.T) {
	type form struct {
		Name string `json:"name"`
	}
	client := &mcptest.Client{Options: mcp.ClientOptions{Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return mcptest.Accept(form{"Ada"}), nil
	}}}
	for _, version := range append(mcp.ModernVersions(), mcp.LegacyVersions()...) {
		l, out := lines()
		mux := mcp.NewMux("test", "v1", nil)
		mux.With(middleware.Logger(l)).Tool("greet", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			f, err := mcp.Elicit[form](ctx, "name", "Who are you?")
			return "hello " + f.Name, err
		}, nil))
		client.Options.Version = version
		if _, err := client.Connect(t, mux).CallTool(t.Context(), &mcp.CallToolParams{Name: "greet"}); err != nil {
			t.Fatal(err)
		}
		line := "level=INFO msg=\"mcp: request\" method=tools/call name=greet version=" + version + " outcome="
		if want := line + "input_required\n" + line + "ok\n"; out.String() != want {
			t.Errorf("got  %swant %s", out, want)
		}
	}
}

// counting is a slog handler that is not enabled, but counts records anyway.
type counting struct {
	slog.Handler
	records int
}

func (c *counting) Enabled(context.Context, slog.Level) bool { return false }

func (c *counting) Handle(context.Context, slog.Record) error {
	c.records++
	return nil
}

// With a logger that is not enabled, nothing is logged, and a panic continues.
func TestLoggerDisabled(t *testing.T) {
	c := &counting{Handler: slog.DiscardHandler}
	h := middleware.Logger(slog.New(c))(panicking("boom"))
	_, _, err := mcptest.Do(t, h, mcptest.NewRequest("tools/list", nil))
	wantCode(t, err, mcp.CodeInternalError)
	if c.records > 0 {
		t.Errorf("%d records", c.records)
	}
}

// Rejections by inner middleware, and panics that it recovers, are logged with their code.
func TestLoggerOfMiddleware(t *testing.T) {
	for _, test := range []struct {
		inside mcp.Middleware
		h      mcp.Handler
		want   string
	}{
		{middleware.Recover(slog.New(slog.DiscardHandler)), panicking("boom"), "outcome=error code=-32603 error=\"internal error (code -32603): panic: boom\"\n"},
		{middleware.RequireScopes("a"), says(""), "outcome=error code=403\n"},
		{middleware.Timeout(1), cooperative(), "outcome=error code=408\n"},
		{middleware.RateLimit(middleware.ByTool, &limited{after: 1}), says(""), "outcome=error code=429\n"},
	} {
		l, out := lines()
		_, _, _ = mcptest.Do(t, serving(test.h, middleware.Logger(l), test.inside), call("t"))
		if !strings.HasSuffix(out.String(), test.want) || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("got %s, want %s", out, test.want)
		}
	}
}
