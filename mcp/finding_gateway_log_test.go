// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// chatty is a server whose tool logs at several levels.
func chatty() *mcp.Mux {
	mux := mcp.NewMux("chatty", "v1", quiet())
	mux.Tool("talk", mcp.ToolFunc(func(ctx context.Context, in struct {
		As string `json:"as,omitempty"`
	}) (string, error) {
		for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
			mcp.ClientLogger(ctx).Log(ctx, level, in.As+" says "+level.String())
		}
		return "done", nil
	}, nil))
	return mux
}

// listener collects log messages.
type listener struct{ heard chan string }

func newListener() *listener { return &listener{make(chan string, 100)} }

func (l *listener) take(_ context.Context, _ *mcp.Conn, p *mcp.LoggingMessageParams) {
	l.heard <- fmt.Sprint(p.Level, " ", p.Data.(map[string]any)["msg"])
}

// first waits for n messages, and returns them and all others that are there.
func (l *listener) first(n int) (heard []string) {
	for range n {
		heard = append(heard, <-l.heard)
	}
	for len(l.heard) > 0 {
		heard = append(heard, <-l.heard)
	}
	return heard
}

// Log messages go through a gateway, at the level of the caller, in every combination
// of eras and on every path to the server behind it.
func TestFindingI5LogMessagesGoThroughAGateway(t *testing.T) {
	for _, path := range mcptest.Paths() {
		for _, back := range path.Versions() {
			t.Run("to "+back+" over "+path.Name, func(t *testing.T) {
				gw := mcp.NewMux("gateway", "v1", quiet())
				own := newListener()
				gw.Mount("b_", connectTo(t, path.Serve(t, chatty()), &mcp.ClientOptions{Version: back, Forward: true, Logger: quiet().Logger, Log: own.take}))
				for _, test := range []struct {
					level mcp.LoggingLevel
					want  []string
				}{
					{mcp.LoggingLevelError, []string{"error ada says ERROR"}},
					{mcp.LoggingLevelInfo, []string{"info ada says INFO", "warning ada says WARN", "error ada says ERROR"}},
					{mcp.LoggingLevelWarning, []string{"warning ada says WARN", "error ada says ERROR"}},
					{"", nil},
				} {
					for _, front := range bothEras {
						if test.level == "" && front != mcp.LatestVersion {
							continue // without a word of its client, a server of that era decides
						}
						heard := newListener()
						c := connect(t, gw, &mcp.ClientOptions{Version: front, LogLevel: test.level, Log: heard.take})
						if _, err := mcp.Call[string](t.Context(), c, "b_talk", map[string]string{"as": "ada"}); err != nil {
							t.Fatal(err)
						}
						if got := heard.first(len(test.want)); !slices.Equal(got, test.want) {
							t.Errorf("in front %s, at %q: heard %q, want %q", front, test.level, got, test.want)
						}
						c.Close()
					}
				}
			})
		}
	}
}

// Of several callers at once, each hears what is about its own call and nothing else,
// also where the path to the server does not tell calls apart.
func TestFindingI5LogMessagesAreTheCallers(t *testing.T) {
	for _, back := range bothEras {
		synctest.Test(t, func(t *testing.T) {
			server := mcp.NewMux("server", "v1", quiet())
			both := make(chan struct{}, 1)
			var ready sync.WaitGroup
			ready.Add(2)
			server.Tool("talk", mcp.ToolFunc(func(ctx context.Context, in struct {
				As string `json:"as"`
			}) (string, error) {
				ready.Done()
				ready.Wait()
				both <- struct{}{}
				mcp.ClientLogger(ctx).Info("of " + in.As)
				<-both
				return "done", nil
			}, nil))
			gw := gateway(t, server, back)
			var calls sync.WaitGroup
			for _, who := range []string{"ada", "bob"} {
				heard := newListener()
				c := connect(t, gw, &mcp.ClientOptions{Version: mcp.LatestVersion, LogLevel: mcp.LoggingLevelDebug, Log: heard.take})
				calls.Go(func() {
					ctx := mcp.WithProgress(t.Context(), func(*mcp.ProgressParams) {})
					if _, err := mcp.Call[string](ctx, c, "b_talk", map[string]string{"as": who}); err != nil {
						t.Error(err)
					}
					if got := heard.first(1); !slices.Equal(got, []string{"info of " + who}) {
						t.Errorf("%s: %s heard %q", back, who, got)
					}
				})
			}
			calls.Wait()
		})
	}
}

// A message on a stream that does not name its call goes to nobody while it may be
// about another caller's; the gateway itself hears it if it wants to.
func TestFindingI5S5UnclearMessagesGoToNoCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := newListener()
		conn := connectTo(t, newOldServer(func(s *oldServer, m oldMessage) {
			if m.Method == "logging/setLevel" {
				s.sayf(`"id":%s,"result":{}`, m.ID)
			}
			if m.Method == mcp.MethodCallTool && m.Params.Name == "talks" {
				s.sayf(`"method":"notifications/message","params":{"level":"error","data":{"msg":"alice's password is hunter2"}}`)
				s.sayf(`"method":"notifications/message","params":{"level":"debug","data":{"msg":"detail"}}`)
				s.answer(m.ID, "done")
			}
		}), &mcp.ClientOptions{Version: "2025-11-25", Forward: true, LogLevel: mcp.LoggingLevelWarning, Log: own.take, Logger: quiet().Logger})
		gw := mcp.NewMux("gateway", "v1", quiet())
		gw.Mount("b_", conn)
		heard := newListener()
		c := connect(t, gw, &mcp.ClientOptions{Version: mcp.LatestVersion, LogLevel: mcp.LoggingLevelDebug, Log: heard.take})
		ctx, leave := context.WithCancel(t.Context())
		go func() { _, _ = core.Serve(ctx, gw, receivedFrom(t, "alice", "b_waits"), nil, nil) }()
		synctest.Wait()
		leave()
		synctest.Wait()
		if _, err := mcp.Call[string](t.Context(), c, "b_talks", nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := heard.first(0); len(got) != 0 {
			t.Errorf("the caller heard %q", got)
		}
		if got := strings.Join(own.first(0), ","); got != "error alice's password is hunter2" {
			t.Errorf("the gateway heard %q", got)
		}
	})
}
