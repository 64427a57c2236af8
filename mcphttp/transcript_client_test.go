// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/test/golden"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// oddResponses are responses that a server may send to a POST: status, content type and
// body.
var oddResponses = []struct{ status, kind, body string }{
	{"200", "application/json", `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`},
	{"200", "application/json; charset=utf-8", `{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"no","data":[1]}}`},
	{"200", "application/json", `{"jsonrpc":"2.0","id":2,"result":{}}`},
	{"200", "application/json", `{"jsonrpc":"2.0","id":1,"result":`},
	{"200", "application/json", `[{"jsonrpc":"2.0","id":1,"result":{}}]`},
	{"200", "application/json", `{"jsonrpc":"2.0","method":"notifications/x"}`},
	{"200", "application/json", ``},
	{"200", "text/html", `<html>`},
	{"200", "", `{"jsonrpc":"2.0","id":1,"result":{}}`},
	{"202", "", ``},
	{"204", "", ``},
	{"200", "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":1}}\n\n"},
	{"200", "text/event-stream", "\ufeff: comment\r\nevent: message\r\nid: 7\r\nretry: 5\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"method\":\"notifications/x\"}\r\n\r\ndata:{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\r"},
	{"200", "text/event-stream", "event: other\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"wrong\":1}}\n\nevent:\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"right\":1}}\n\n"},
	{"200", "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n\n"},
	{"200", "text/event-stream", "data: {\"jsonrpc\":\"2.0\"\n\n"},
	{"200", "text/event-stream", "data: [1]\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"},
	{"200", "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"},
	{"200", "text/event-stream", ""},
	{"200", "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"},
	{"301", "", ``}, {"307", "", ``},
	{"400", "", ``}, {"400", "text/plain", "Bad Request"}, {"400", "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"bad"}}`},
	{"400", "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"no","data":{"supported":["2025-06-18"]}}}`},
	{"401", "", ``}, {"403", "", ``}, {"403", "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"scope"}}`},
	{"404", "", ``}, {"404", "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no method"}}`},
	{"404", "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no session"}}`},
	{"405", "", ``}, {"406", "", ``}, {"408", "", ``}, {"409", "", ``}, {"413", "", ``}, {"415", "", ``},
	{"429", "", ``}, {"429", "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32029,"message":"slow"}}`},
	{"500", "text/plain", "oops\nagain " + strings.Repeat("x", 2000)}, {"500", "application/problem+json", `{"title":"broken"}`},
	{"500", "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal"}}`},
	{"501", "", ``}, {"502", "text/html", "<html><title>Bad Gateway</title></html>"}, {"503", "", ``}, {"599", "", "\xff\x00"},
}

// sentinels are the errors that programs check for.
var sentinels = map[string]error{
	"ErrUnauthorized": mcp.ErrUnauthorized, "ErrUnreadable": mcp.ErrUnreadable, "ErrNotUnderstood": transport.ErrNotUnderstood,
	"ErrMessageTooLong": mcphttp.ErrMessageTooLong, "DeadlineExceeded": context.DeadlineExceeded,
}

// describe formats the results of a call.
func describe(m *transport.Message, err error) string {
	var text strings.Builder
	if m != nil {
		fmt.Fprintf(&text, "id %s result %s", m.ID, []byte(m.Result))
		if m.Error != nil {
			fmt.Fprintf(&text, " error %d %s %s", m.Error.Code, m.Error.Message, []byte(m.Error.Data))
		}
	}
	if err == nil {
		return text.String()
	}
	fmt.Fprintf(&text, "failed: %q", err.Error())
	if status, ok := errors.AsType[*mcphttp.StatusError](err); ok {
		status.Header.Del("Date")
		fmt.Fprintf(&text, " status %d %v, %d bytes", status.Status, status.Header, len(status.Body))
	}
	for _, name := range []string{"ErrUnauthorized", "ErrUnreadable", "ErrNotUnderstood", "ErrMessageTooLong", "DeadlineExceeded"} {
		if errors.Is(err, sentinels[name]) {
			text.WriteString(" " + name)
		}
	}
	return text.String()
}

// How a client handles all kinds of responses, to a call and to a notification.
func TestClientTranscripts(t *testing.T) {
	for _, version := range both {
		t.Run(version, func(t *testing.T) {
			var text strings.Builder
			for _, r := range oddResponses {
				fmt.Fprintf(&text, "< %s %s %.200q\n", r.status, r.kind, r.body)
				for _, isCall := range []bool{true, false} {
					synctest.Test(t, func(t *testing.T) {
						gets := 0
						answer := func(w http.ResponseWriter, _ *http.Request) {
							w.Header().Set("Content-Type", r.kind)
							w.Header().Set("Retry-After", "3")
							status, _ := strconv.Atoi(r.status)
							w.WriteHeader(status)
							_, _ = w.Write([]byte(r.body))
						}
						get := func(w http.ResponseWriter, _ *http.Request) { gets++; w.WriteHeader(http.StatusMethodNotAllowed) }
						s := serve(t, script{post: answer, get: get})
						l := s.link(nil)
						if version != mcp.LatestVersion {
							l.handshake(version)
						}
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						synctest.Wait()
						before := gets
						if isCall {
							m, err := l.Call(ctx, toolCall(1, version, "x"))
							fmt.Fprintf(&text, "  call: %s\n", describe(m, err))
						} else {
							err := l.Send(ctx, &transport.Outgoing{Method: "vendor/x", Version: version, Body: []byte(`{"jsonrpc":"2.0","method":"vendor/x"}`)})
							fmt.Fprintf(&text, "  notification: %s\n", describe(nil, err))
						}
						synctest.Wait()
						for len(l.got) > 0 {
							m := <-l.got
							fmt.Fprintf(&text, "    received %s %s about %s\n", m.Method, m.ID, m.About)
						}
						if gets > before {
							fmt.Fprintf(&text, "    %d GETs\n", gets-before)
						}
						_ = l.Close()
						s.close()
					})
				}
			}
			golden.Check(t, "transcript-client-"+version, text.String())
		})
	}
}
