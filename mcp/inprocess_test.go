// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// BenchmarkInProcess measures a typed call from a client to a server in the same process.
func BenchmarkInProcess(b *testing.B) {
	type in struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	type out struct {
		Sum int `json:"sum"`
	}
	mux := mcp.NewMux("calculator", "v1", nil)
	mux.Tool("add", mcp.ToolFunc(func(_ context.Context, i in) (out, error) { return out{i.A + i.B}, nil }, nil))
	c, err := mcp.NewClient("c", "v1", nil).Connect(b.Context(), mcp.InProcess(mux))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	b.ReportAllocs()
	for b.Loop() {
		if got, err := mcp.Call[out](b.Context(), c, "add", in{1, 2}); err != nil || got.Sum != 3 {
			b.Fatal(got, err)
		}
	}
}

// An in-process server checks the revision of each request, as every server does.
func TestInProcessRevision(t *testing.T) {
	wire, err := mcp.InProcess(hello()).Connect(t.Context(), func(*transport.Message) {})
	if err != nil {
		t.Fatal(err)
	}
	defer wire.Close()
	for meta, code := range map[string]int{
		eras[0].meta: 0,
		strings.Replace(eras[0].meta, mcp.LatestVersion, "1999-01-01", 1): mcp.CodeUnsupportedVersion,
		`"_meta":{}`: mcp.CodeInvalidParams,
	} {
		body := wireEra{meta: meta}.request("1", mcp.MethodCallTool, `"name":"hello"`)
		got, err := wire.Call(t.Context(), &transport.Outgoing{ID: mcp.IntID(1), Method: mcp.MethodCallTool, Body: []byte(body)})
		if err != nil || code == 0 != (got.Error == nil) || got.Error != nil && got.Error.Code != code {
			t.Errorf("%s: got %+v, %v, want %d", meta, got, err, code)
		}
	}
}

// An in-process server receives notifications and rejects invalid messages.
func TestInProcessNotifications(t *testing.T) {
	var heard []string
	h := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		heard = append(heard, req.Method)
		return nil, nil
	})
	wire, err := mcp.InProcess(h).Connect(t.Context(), func(*transport.Message) {})
	if err != nil {
		t.Fatal(err)
	}
	for body, fails := range map[string]bool{
		`{"jsonrpc":"2.0","method":"notifications/x"}`:             false,
		`{"jsonrpc":"2.0","method":"notifications/x","params":[]}`: true,
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                     false,
		`{`:                                                        true,
	} {
		if err := wire.Send(t.Context(), &transport.Outgoing{Body: []byte(body)}); (err != nil) != fails {
			t.Errorf("%s: %v", body, err)
		}
	}
	_ = wire.Close()
	if err := wire.Send(t.Context(), &transport.Outgoing{Body: []byte(`{"jsonrpc":"2.0","method":"notifications/late"}`)}); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if got := fmt.Sprint(heard); got != "[notifications/x]" {
		t.Errorf("heard %s", got)
	}
}

// A gateway to an in-process server hides the details of its failures: the URL of an
// unavailable server, a panic and a closed connection.
func TestFindingU1InProcess(t *testing.T) {
	web := httptest.NewServer(mcphttp.NewHandler(hello(), nil))
	remote := connectTo(t, mcphttp.NewTransport(web.URL+"?key=SECRET", nil), &mcp.ClientOptions{Version: mcp.LatestVersion, Logger: quiet().Logger})
	web.CloseClientConnections()
	web.Close()

	inner := mcp.NewMux("inner", "v1", quiet())
	inner.Mount("remote_", remote)
	inner.Tool("wrapped", mcp.ToolFunc(func(ctx context.Context, _ none) (struct{}, error) {
		_, err := remote.CallTool(ctx, tool("hello", ""))
		return struct{}{}, fmt.Errorf("saying hello: %w", err)
	}, nil))
	inner.Tool("panics", mcp.ToolFunc(func(context.Context, none) (string, error) { panic("SECRET") }, nil))
	closed := connectTo(t, mcp.InProcess(hello()), &mcp.ClientOptions{Version: mcp.LatestVersion})
	closed.Close()

	gateway := mcp.NewMux("gateway", "v1", quiet())
	gateway.Mount("in_", connectTo(t, mcp.InProcess(inner), &mcp.ClientOptions{Version: mcp.LatestVersion, Logger: quiet().Logger}))
	gateway.Mount("closed_", closed)
	mcptest.Run(t, gateway, func(t *testing.T, c *mcp.Conn) {
		for name, want := range map[string]string{
			"in_remote_hello": "the server behind this one is not available",
			"in_panics":       "internal error",
			"closed_hello":    "the server behind this one is not available",
		} {
			_, err := c.CallTool(t.Context(), tool(name, ""))
			if coded, ok := errors.AsType[*mcp.Error](err); !ok || coded.Message != want || coded.Data != nil {
				t.Errorf("%s: the caller is told %v", name, err)
			}
		}
		res, err := c.CallTool(t.Context(), tool("in_wrapped", ""))
		if err != nil || !res.IsError || textOf(res) != "the server behind this one is not available" || strings.Contains(textOf(res), "SECRET") {
			t.Errorf("the model reads %v, %v", res, err)
		}
	})
}
