// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// An audit records the caller, the tool, the arguments and the outcome in every era,
// including rejected requests. Lists are requests, too.
func TestAudit(t *testing.T) {
	var mu sync.Mutex
	var records []middleware.AuditRecord
	newMux := func(*testing.T) mcp.Handler {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Use(middleware.Audit(func(_ context.Context, r middleware.AuditRecord) {
			mu.Lock()
			defer mu.Unlock()
			if strings.HasPrefix(r.Method, "tools/") {
				records = append(records, r)
			}
		}, nil))
		mux.Tool("ok", mcp.ToolFunc(func(context.Context, map[string]any) (string, error) { return "", nil }, nil))
		mux.With(middleware.RequireScopes("x")).Tool("refused", answering(mcp.TextResult(""), nil))
		mux.Tool("fails", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", errors.New("no") }, nil))
		return mux
	}
	client := &mcptest.Client{Principal: &mcp.Principal{Issuer: "i", Subject: "ann"}}
	client.RunNew(t, newMux, func(t *testing.T, c *mcp.Conn) {
		records = nil
		for _, p := range []*mcp.CallToolParams{
			{Name: "ok", Arguments: []byte(`{"a": 1, "b": [ "x" ]}`)}, {Name: "ok", Arguments: []byte(`{"b":["\u0078"],"a":1}`)}, {Name: "ok"},
			{Name: "refused"}, {Name: "fails"}, {Name: "none"},
		} {
			_, _ = c.CallTool(t.Context(), p)
		}
		_, _ = c.ListTools(t.Context(), nil)
		var got []string
		for _, r := range records {
			got = append(got, fmt.Sprint(strings.TrimPrefix(r.Method, "tools/"), " ", r.Name, " ", r.Outcome, " ", r.Code, " ", r.Err != nil))
			if r.Caller == nil || r.Caller.Subject != "ann" || r.Start.IsZero() || r.Duration < 0 {
				t.Errorf("recorded %+v", r)
			}
		}
		want := "call ok ok 0 false, call ok ok 0 false, call ok ok 0 false, call refused error 403 true, call fails isError 0 true, call none error -32602 true, list  ok 0 false"
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("recorded %s,\nwant %s", got, want)
		}
		if a, b, c := records[0].Digest, records[1].Digest, records[2].Digest; len(a) != 64 || a != b || a == c || records[6].Digest != "" {
			t.Errorf("the digests are %s, %s and %s; of a list %s", a, b, c, records[6].Digest)
		}
	})
}

// With a key, digests are useless to anyone who does not have it. Large integers have
// different digests.
func TestAuditDigest(t *testing.T) {
	digest := func(arguments string, opts *middleware.AuditOptions) (digest string) {
		h := middleware.Audit(func(_ context.Context, r middleware.AuditRecord) { digest = r.Digest }, opts)(answering(mcp.TextResult(""), nil))
		do(t, h, mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "t", Arguments: []byte(arguments)}))
		return digest
	}
	key := &middleware.AuditOptions{Key: []byte("0123456789abcdef0123456789abcdef")}
	if a, b := digest(`{"pin":1}`, nil), digest(`{"pin":1}`, key); a == b || b != digest(`{ "pin" : 1 }`, key) {
		t.Errorf("the digests are %s and %s", a, b)
	}
	if a, b := digest(`{"id":9007199254740993}`, nil), digest(`{"id":9007199254740992}`, nil); a == b {
		t.Errorf("both digests are %s", a)
	}
}

// The log reveals nothing from arguments, errors or URIs.
func TestAuditLog(t *testing.T) {
	log := new(bytes.Buffer)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(middleware.RequestID(&middleware.RequestIDOptions{New: func() string { return "req-1" }}))
	mux.Use(middleware.Audit(middleware.AuditLog(slog.New(slog.NewTextHandler(log, nil))), nil))
	mux.Tool("t", answering(nil, &mcp.Error{Code: mcp.CodeInternalError, Message: "secret", Cause: errors.New("secret")}))
	do(t, mux, mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "t", Arguments: []byte(`{"p":"secret"}`)}))
	do(t, mux, mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "https://u:secret@h/x?k=secret"}))
	if text := log.String(); strings.Contains(text, "secret") || !strings.Contains(text, "request=req-1") || !strings.Contains(text, "name=https://h/x") {
		t.Errorf("logged %s", text)
	}
	mustPanic(t, "Audit", func() { middleware.Audit(nil, nil) })
}

// The audit log has one line per request.
func ExampleAudit() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "duration" {
			return slog.Attr{} // they differ each time
		}
		return a
	}}))
	mux := mcp.NewMux("server", "v1.0.0", nil)
	mux.Use(middleware.Audit(middleware.AuditLog(logger), nil))
	mux.Tool("delete", mcp.ToolFunc(func(context.Context, struct{ ID int }) (string, error) { return "done", nil }, nil))

	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", &mcp.ClientOptions{Version: mcp.LatestVersion}).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	if _, err := mcp.Call[string](ctx, conn, "delete", map[string]int{"ID": 7}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// level=INFO msg="mcp: audit" method=server/discover outcome=ok
	// level=INFO msg="mcp: audit" method=tools/call name=delete digest=97b355499fa39b093c51d6dd423a25edae5b020525a6ce6f55299c5d9387a73c outcome=ok
}
