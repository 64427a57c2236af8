// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// upgrading is a RoundTripper to a server that answers the chosen requests with 101. The body
// of that response is a connection, on which nothing comes, and which no context ends.
type upgrading struct {
	http.RoundTripper

	chosen func(method, body string) bool
	count  int
}

func (u *upgrading) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if !u.chosen(r.Method, string(body)) {
		return u.RoundTripper.RoundTrip(r)
	}
	u.count++
	connection, _ := io.Pipe()
	return &http.Response{
		Status: "101 Switching Protocols", StatusCode: http.StatusSwitchingProtocols, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}, Body: connection, ContentLength: -1, Request: r,
	}, nil
}

// A server, or something in front of it, that switches to another protocol fails the call. The
// client never reads what follows, and nothing waits longer than its context.
func TestFindingY1SwitchingProtocolsEndsTheCall(t *testing.T) {
	methods := []string{"server/discover", "initialize", "notifications/initialized", "GET", "DELETE", "tools/call", "subscriptions/listen", "resources/subscribe", "notifications/x"}
	for _, version := range []string{mcp.LatestVersion, "2025-11-25", "2024-11-05", ""} {
		for _, upgraded := range methods {
			t.Run(version+" "+upgraded, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := serve(t, newHandler(t, tools(), nil))
					to := mcphttp.NewTransport
					if version == "2024-11-05" {
						s, to = serve(t, newSSEHandler(t, tools())), mcphttp.NewSSETransport
					}
					u := &upgrading{RoundTripper: s.client.Transport, chosen: func(method, body string) bool {
						return method == upgraded || strings.Contains(body, `"`+upgraded+`"`)
					}}
					s.client.Transport = u
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					expect := func(what string, err error) {
						t.Helper()
						var status *mcphttp.StatusError
						if err != nil && errors.As(err, &status) && status.Status != http.StatusSwitchingProtocols {
							t.Errorf("%s: %v", what, err)
						}
						if ctx.Err() != nil {
							t.Errorf("%s: it lasted until its context ended: %v", what, err)
						}
					}
					c, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Version: version, Logger: quiet}).Connect(ctx, to("http://localhost/mcp", s.options(nil)))
					expect("connecting", err)
					if err != nil {
						return
					}
					defer c.Close()
					_, err = c.CallTool(ctx, &mcp.CallToolParams{Name: "hello"})
					expect("a call", err)
					if upgraded == "tools/call" && err == nil {
						t.Error("a call that was answered with 101 succeeded")
					}
					expect("a notification", c.Notify(ctx, "notifications/x", nil))
					listening, stop := context.WithTimeout(ctx, time.Second)
					defer stop()
					sub, err := c.Listen(listening, mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"test://a"}}, func(mcp.Change) {})
					expect("listening", err)
					if err == nil {
						sub.Close()
					}
				})
			})
		}
	}
}
