// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

func dial(ctx context.Context, s *site, opts *mcphttp.TransportOptions) (*mcp.Conn, error) {
	return mcp.NewClient("test", "v1", &mcp.ClientOptions{Logger: quiet}).Connect(ctx, mcphttp.NewTransport("http://localhost/mcp", s.options(opts)))
}

// A server that is slow to send its first response is not taken for an old one.
func TestFindingI1SlowServer(t *testing.T) {
	for _, late := range []time.Duration{3 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			cold := true
			handler := newHandler(t, tools(), nil)
			v := &visits{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if cold {
					cold = false
					<-time.After(late)
				}
				handler.ServeHTTP(w, r)
			})}
			conn, err := dial(t.Context(), serve(t, v), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if conn.Version() != mcp.LatestVersion || len(v.all) != 1 {
				t.Errorf("after %v it speaks %s, after %d requests", late, conn.Version(), len(v.all))
			}
		})
	}
}

// A server that sends nothing, or is unavailable, gives no indication of its era: Connect
// returns the reason and sends no other request.
func TestFindingI1U14NoSignOfAge(t *testing.T) {
	for name, test := range map[string]struct {
		serve http.HandlerFunc
		text  string
	}{
		"silent":      {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer to server/discover or initialize within 2m0s from the server at http://"},
		"cut off":     {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"429":         {answers(429, ""), "429 Too Many Requests"},
		"502":         {answers(502, ""), "502 Bad Gateway"},
		"503":         {answers(503, ""), "503 Service Unavailable"},
		"503 -32603":  {answers(503, `{"jsonrpc":"2.0","error":{"code":-32603,"message":"the server is shutting down"}}`), "shutting down"},
		"429 429":     {answers(429, `{"jsonrpc":"2.0","error":{"code":429,"message":"too often"}}`), "too often"},
		"504":         {answers(504, ""), "504 Gateway Timeout"},
		"407":         {answers(407, ""), "407 Proxy Authentication Required"},
		"403 a scope": {answers(403, `{"jsonrpc":"2.0","error":{"code":403,"message":"the scope files is missing"}}`), "the scope files is missing"},
		"a redirect": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://example.com/")
			w.WriteHeader(http.StatusFound)
		}, "https://example.com/"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &visits{Handler: test.serve}
				_, err := dial(context.Background(), serve(t, v), nil)
				if err == nil || !strings.Contains(err.Error(), test.text) || strings.Count(err.Error(), test.text) != 1 || strings.Contains(err.Error(), "era") {
					t.Errorf("%v, want %q", err, test.text)
				}
				v.mu.Lock()
				defer v.mu.Unlock()
				if len(v.all) != 1 {
					t.Errorf("%d requests", len(v.all))
				}
			})
		})
	}
}

// For a server that answers with a web page, the error names the status and the content
// type. For an unknown certificate, the error contains that reason and no other.
func TestFindingU14WhatWasWrong(t *testing.T) {
	page := serve(t, answers(200, "<html>Welcome</html>"))
	_, err := dial(t.Context(), page, nil)
	if err == nil || !strings.HasPrefix(err.Error(), `mcphttp: the server answered 200 OK with the content type "text/html; charset=utf-8"`) || strings.Count(err.Error(), "Welcome") != 1 {
		t.Errorf("a web page: %v", err)
	}
	missing := serve(t, answers(404, "404 page not found"))
	if _, err := dial(t.Context(), missing, nil); err == nil || strings.Count(err.Error(), "404 Not Found") != 1 {
		t.Errorf("no page: %v", err)
	}
	secret := httptest.NewUnstartedServer(answers(200, ""))
	secret.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secret.StartTLS()
	defer secret.Close()
	_, err = mcp.NewClient("test", "v1", &mcp.ClientOptions{Logger: quiet}).Connect(t.Context(), mcphttp.NewTransport(secret.URL, nil))
	if err == nil || strings.Count(err.Error(), "certificate") == 0 || strings.Count(err.Error(), "Post") != 1 {
		t.Errorf("a certificate: %v", err)
	}
	said := `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"say \"please\""}}`
	unknown := serve(t, answers(401, said))
	_, err = dial(t.Context(), unknown, nil)
	if !errors.Is(err, mcp.ErrUnauthorized) || !strings.Contains(err.Error(), `say "please"`) || mcp.CodeOf(err) == -32001 {
		t.Errorf("401: %v", err)
	}
}

// A call that was answered, in whatever way, is not reported as one without effect.
func TestFindingW7AnsweredIsNotUnderstood(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"empty":            answers(200, ""),
		"cut":              answers(200, `{"jsonrpc":"2.0","id":7,"result":{`),
		"a surrogate":      answers(200, `{"jsonrpc":"2.0","id":7,"result":{"a":"\ud83d"}}`),
		"a web page":       answers(200, "<html>"),
		"accepted":         answers(202, ""),
		"another's answer": answers(200, `{"jsonrpc":"2.0","id":8,"result":{}}`),
	} {
		for _, version := range both {
			l := serve(t, answer).link(nil)
			r, err := l.Call(t.Context(), toolCall(7, version, "a"))
			if err == nil && r.Error != nil {
				err = r.Error
			}
			if !errors.Is(err, mcp.ErrUnreadable) || errors.Is(err, transport.ErrNotUnderstood) {
				t.Errorf("%s, %s: %v", name, version, err)
			}
		}
	}
}

// An unreadable response fails its call, on a stream, as JSON, and in the HTTP+SSE
// transport, where it may also be too long. The receiver gets it, too.
func TestFindingCH2W2UnreadableAnswer(t *testing.T) {
	const broken = `{"result":{"content":[{"type":"text","text":"cut \ud83d"}]},"jsonrpc":"2.0","id":7}`
	long := `{"result":{"content":[{"type":"text","text":"` + strings.Repeat(`x\"id\":1}`, 1<<10) + `"}]},"jsonrpc":"2.0","id":7}`
	asJSON := func(w http.ResponseWriter, _ *http.Request, answer string) { say(w, answer) }
	asStream := func(w http.ResponseWriter, _ *http.Request, answer string) { stream(w, "data: "+answer+"\n\n") }
	old := func(w http.ResponseWriter, r *http.Request, answer string) {
		if r.Method == http.MethodPost {
			return
		}
		stream(w, "event: endpoint\ndata: /messages\n\n")
		<-time.After(time.Second)
		stream(w, "data: "+answer+"\n\n")
		<-r.Context().Done()
	}
	for name, test := range map[string]struct {
		answer  string
		serve   func(w http.ResponseWriter, r *http.Request, answer string)
		connect func(string, *mcphttp.TransportOptions) transport.Transport
	}{
		"JSON":               {broken, asJSON, mcphttp.NewTransport},
		"stream":             {broken, asStream, mcphttp.NewTransport},
		"HTTP+SSE":           {broken, old, mcphttp.NewSSETransport},
		"HTTP+SSE, too long": {long, old, mcphttp.NewSSETransport},
		"HTTP+SSE, in parts": {strings.Replace(long, `,"jsonrpc"`, "\ndata: "+`,"jsonrpc"`, 1), old, mcphttp.NewSSETransport},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { test.serve(w, r, test.answer) }))
				l, err := s.connect(test.connect("http://localhost/sse", s.options(&mcphttp.TransportOptions{MaxMessage: 4 << 10})))
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				r, err := l.Call(ctx, toolCall(7, "2024-11-05", "a"))
				if !errors.Is(err, mcp.ErrUnreadable) {
					t.Errorf("the call returned %+v, %v", r, err)
				}
				if n := l.next(); n.Err == nil {
					t.Errorf("received %+v", n)
				}
			})
		})
	}
}

// Unreadable notifications are logged by the client that receives them.
func TestFindingCH2Logged(t *testing.T) {
	var log bytes.Buffer
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, _ := transport.ParseMessage(body)
		result := `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}`
		if m.Method != mcp.MethodDiscover {
			result = `{"resultType":"complete","content":[]}`
		}
		stream(w, fmt.Sprintf("data: {\"method\":\"notifications/x\",\"params\":\"\\ud83d\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, result))
	}))
	conn, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}).
		Connect(t.Context(), mcphttp.NewTransport("http://localhost/mcp", s.options(nil)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "x"}); err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "could not be read"); n != 2 {
		t.Errorf("logged: %s", log.String())
	}
}

// An unreadable request is rejected with its ID.
func TestFindingW5UnreadableRequest(t *testing.T) {
	s := serve(t, newHandler(t, tools(), nil))
	body := `{"method":"tools/call","params":{"name":"hello","arguments":{"a":"\ud83d"}},"jsonrpc":"2.0","id":"x"}`
	for _, version := range both {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {version}}
		res, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if m, err := transport.ParseMessage(got); err != nil || res.StatusCode != http.StatusBadRequest || m.ID != mcp.StringID("x") || m.Error.Code != mcp.CodeParseError {
			t.Errorf("%s: %d %s", version, res.StatusCode, got)
		}
	}
}

// A server cannot make its client reconnect without a pause while it sends no messages,
// neither with a short retry nor with new IDs. If it asks for a longer pause, the client
// waits that long.
func TestFindingS27W13ReconnectingHasAFloor(t *testing.T) {
	for name, test := range map[string]struct {
		event string
		most  int // GETs in ten minutes
	}{
		"nothing but ids": {"retry: 1\nid: %d\ndata:\n\n", 130},
		"a slow poll":     {"retry: 20000\nid: %d\ndata:\n\n", 32},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var gets atomic.Int64
				l := serve(t, script{session: "s", get: func(w http.ResponseWriter, _ *http.Request) {
					stream(w, fmt.Sprintf(test.event, gets.Add(1)))
				}}).link(nil)
				l.handshake("2025-11-25")
				<-time.After(10 * time.Minute)
				if n := int(gets.Load()); n > test.most || n < test.most-10 {
					t.Errorf("it came back %d times", n)
				}
			})
		})
	}
}

// A subscription that is acknowledged and then immediately cut off is resumed with
// increasing pauses, whatever is sent on it.
func TestFindingW13ListenBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var listens atomic.Int64
		s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			m, _ := transport.ParseMessage(body)
			if m.Method == mcp.MethodDiscover {
				say(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}`, m.ID))
				return
			}
			listens.Add(1)
			meta := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/subscriptionId":%s}`, m.ID)
			stream(w, `data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},`+meta+"}}\n\n"+
				`data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{`+meta+"}}\n\n")
		}))
		conn, err := dial(t.Context(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {}); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Minute)
		if n := listens.Load(); n < 100 || n > 130 {
			t.Errorf("it subscribed %d times", n)
		}
		_ = conn.Close()
	})
}

// The password of a URL that cannot be used is not in the error.
func TestFindingX16NoPasswordsInErrors(t *testing.T) {
	for _, url := range []string{"u:S7secret@mcp.example", "https://u:S7%secret@mcp.example"} {
		_, err := mcphttp.NewTransport(url, nil).Connect(t.Context(), func(*transport.Message) {})
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "mcp.example") {
			t.Errorf("%s: got %v", url, err)
		}
	}
}
