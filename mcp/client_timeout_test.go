// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/server"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// The time a user takes to answer does not count towards the timeout of the call. After
// that, the full timeout applies again.
func TestCallTimeoutWaitsForAnswers(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		synctest.Test(t, func(t *testing.T) {
			mux := welcoming()
			mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, in struct {
				Wait int `json:"wait"`
			}) (string, error) {
				answer, err := mcp.Elicit[struct {
					Name string `json:"name"`
				}](ctx, "name", "Who?")
				if err != nil {
					return "", err
				}
				<-time.After(time.Duration(in.Wait) * time.Second)
				return answer.Name, ctx.Err()
			}, nil))
			c := connect(t, mux, &mcp.ClientOptions{
				Version: version, CallTimeout: 5 * time.Second,
				Elicit: func(ctx context.Context, _ *mcp.Conn, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
					<-time.After(30 * time.Second)
					return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: []byte(`{"name":"Ada"}`)}, nil
				},
			})
			ask := func(wait int) (string, error) {
				return mcp.Call[string](t.Context(), c, "ask", map[string]int{"wait": wait})
			}
			if got, err := ask(1); got != "Ada" || err != nil {
				t.Errorf("%s: %q, %v", version, got, err)
			}
			begin := time.Now()
			var timeout *mcp.TimeoutError
			if _, err := ask(60); !errors.As(err, &timeout) || time.Since(begin) != 35*time.Second {
				t.Errorf("%s: after an answer, a server that does not: %v after %v, want a timeout after 35s", version, err, time.Since(begin))
			}
			_ = c.Close()
			<-time.After(2 * time.Minute)
		})
	}
}

// T53, for clients: any response counts as a sign of life, a single missed ping is ignored,
// and the connection to an unresponsive server is closed.
func TestClientKeepAlive(t *testing.T) {
	const discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}`
	refuses := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"no"}}`
	}
	silent := func(string) string { return "" }
	for name, test := range map[string]struct {
		ping  func(n int64) func(id string) string
		alive bool
	}{
		"refuses": {func(int64) func(string) string { return refuses }, true},
		"misses two": {func(n int64) func(string) string {
			return map[bool]func(string) string{true: refuses, false: silent}[n%3 == 0]
		}, true},
		"silent": {func(int64) func(string) string { return silent }, false},
		"dies later on": {func(n int64) func(string) string {
			return map[bool]func(string) string{true: refuses, false: silent}[n < 10]
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var pings atomic.Int64
				server := fakeServer(func(method, id string) (string, bool) {
					if method != mcp.MethodDiscover {
						return "", true // an unanswered ping is cancelled
					}
					if n := pings.Add(1) - 1; n > 0 {
						return test.ping(n)(id), true
					}
					return `{"jsonrpc":"2.0","id":` + id + `,"result":` + discovered + `}`, true
				})
				opts := &mcp.ClientOptions{Version: mcp.LatestVersion, KeepAlive: time.Minute, Logger: quiet().Logger}
				c, err := mcp.NewClient("c", "v1", opts).Connect(t.Context(), server)
				if err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Hour)
				if test.alive {
					if n := pings.Load(); n < 30 {
						t.Errorf("%d pings in an hour", n)
					}
					if err := c.Close(); err != nil {
						t.Error(err)
					}
					return
				}
				<-c.Done()
				if err := c.Err(); !errors.Is(err, mcp.ErrNoAnswer) {
					t.Errorf("it ended with %v", err)
				}
			})
		})
	}
}

// Conn.Ping has the call timeout. The pings of KeepAlive do not, because a slow server may
// still be alive.
func TestPingTimeout(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		synctest.Test(t, func(t *testing.T) {
			var slow atomic.Bool
			opts := &mcp.ClientOptions{CallTimeout: 2 * time.Second, KeepAlive: time.Minute, Version: version, Logger: quiet().Logger}
			c, err := mcp.NewClient("c", "v1", opts).Connect(t.Context(), fakeServer(func(method, id string) (string, bool) {
				if id == "" {
					return "", true
				}
				if slow.Load() {
					<-time.After(10 * time.Second)
				}
				result := `{}`
				switch method {
				case mcp.MethodDiscover:
					result = fmt.Sprintf(`{"resultType":"complete","supportedVersions":[%q],"capabilities":{},"ttlMs":0,"cacheScope":"private"}`, version)
				case "initialize":
					result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"serverInfo":{"name":"old","version":"1"}}`, version)
				}
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result), true
			}))
			if err != nil {
				t.Fatal(err)
			}
			slow.Store(true)
			start := time.Now()
			var timeout *mcp.TimeoutError
			if err := c.Ping(t.Context()); !errors.As(err, &timeout) || time.Since(start) != 2*time.Second {
				t.Errorf("%s: %v after %v", version, err, time.Since(start))
			}
			<-time.After(10*time.Minute + 30*time.Second)
			slow.Store(false)
			if err := c.Ping(t.Context()); err != nil {
				t.Errorf("%s: the connection is gone: %v", version, err)
			}
			_ = c.Close()
			synctest.Wait()
		})
	}
}

// pinged is a legacy client with configurable answers to pings.
type pinged struct {
	session *server.Session
	answer  func(n int) string // returns the member of the response to the nth ping, or "" for none
	pings   int
}

func (p *pinged) Send(ctx context.Context, message []byte) error {
	m, err := transport.ParseMessage(bytes.Clone(message))
	if err != nil || m.Method != "ping" {
		return err
	}
	p.pings++
	member := p.answer(p.pings)
	if member == "" {
		return nil
	}
	response, err := transport.ParseMessage([]byte(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,` + member + `}`))
	if err != nil {
		return err
	}
	go play(ctx, p.session, response, p)
	return nil
}

const (
	pong    = `"result":{}`
	unknown = `"error":{"code":-32601,"message":"no ping here"}`
)

// T53: any response counts as a sign of life, a single missed ping is ignored, and a client
// that cannot be pinged is not considered dead.
func TestKeepAlive(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer func(n int) string
		listen bool
		alive  bool
	}{
		{"answers", func(int) string { return pong }, true, true},
		{"does not know ping", func(int) string { return unknown }, true, true},
		{"misses every other", func(n int) string { return map[int]string{0: pong}[n%2] }, true, true},
		{"misses two of three", func(n int) string { return map[int]string{0: pong}[n%3] }, true, true},
		{"cannot be asked", func(int) string { return "" }, false, true},
		{"is silent", func(int) string { return "" }, true, false},
		{"falls silent", func(n int) string { return map[bool]string{true: pong}[n < 5] }, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log lockedBuffer
				mux := mcp.NewMux("m", "v1", quiet())
				srv := server.New(mux, &server.Options{KeepAlive: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				l := srv.NewSession(server.Details{}, nil)
				client := &pinged{session: l, answer: test.answer}
				open, err := transport.ParseMessage([]byte(eras[1].open[0]))
				if err != nil {
					t.Fatal(err)
				}
				play(t.Context(), l, open, client)
				if test.listen {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					go l.Listen(ctx, server.Origin{}, client, nil)
				}
				<-time.After(time.Hour)
				synctest.Wait()
				alive := true
				select {
				case <-l.Done():
					alive = false
				default:
				}
				if alive != test.alive {
					t.Errorf("alive is %t after %d pings", alive, client.pings)
				}
				lines := strings.Count(log.String(), "\n")
				if want := map[bool]int{true: 0, false: 1}[alive]; lines != want {
					t.Errorf("logged %d lines:\n%s", lines, log.String())
				}
				if test.listen && client.pings < 3 {
					t.Errorf("pinged %d times", client.pings)
				}
			})
		})
	}
}

// A call can be cancelled for a reason that is not valid UTF-8.
func TestCancelledForAnyReason(t *testing.T) {
	begun, cancelled := make(chan struct{}), make(chan error, 1)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("wait", mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
		close(begun)
		<-ctx.Done()
		cancelled <- context.Cause(ctx)
		return nil, ctx.Err()
	}))
	near, far := transport.Pipe()
	go mcpstdio.ServeStream(t.Context(), mux, far, nil)
	c, err := mcp.NewClient("c", "v1", nil).Connect(t.Context(), transport.FromStream(func(context.Context) (transport.Stream, error) { return near, nil }))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-begun
		cancel(errors.New("the file \xff is gone"))
	}()
	if _, err := c.CallTool(ctx, tool("wait", "")); err == nil || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("got %v", err)
	}
	if got := <-cancelled; !strings.Contains(got.Error(), "the file \ufffd is gone") {
		t.Errorf("the server heard of %v", got)
	}
}
