// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// asks returns a server with a tool that asks two questions.
func asks() *mcp.Mux {
	mux := mcp.NewMux("asks", "v1", nil)
	type answer struct {
		Text string `json:"text"`
	}
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 2, "")
		a, err := mcp.Elicit[answer](ctx, "a", "First?")
		if err != nil {
			return "", err
		}
		b, err := mcp.Elicit[answer](ctx, "b", "Second?")
		return a.Text + b.Text, err
	}, nil))
	return mux
}

func answers(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	return mcptest.Accept(map[string]string{"text": "x"}), nil
}

// A call that asks questions and reports progress, and a subscription, have the same
// outcome in every era and on every path.
func TestRunQuestions(t *testing.T) {
	mux := asks()
	(&mcptest.Client{Options: mcp.ClientOptions{Elicit: answers}}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		progress := 0
		ctx := mcp.WithProgress(t.Context(), func(*mcp.ProgressParams) { progress++ })
		if got, err := mcp.Call[string](ctx, c, "ask", nil); err != nil || got != "xx" || progress != 1 {
			t.Errorf("got %q, %v and %d times progress", got, err, progress)
		}
		changes := make(chan mcp.Change, 1)
		s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(ch mcp.Change) {
			select {
			case changes <- ch:
			default:
			}
		})
		if err = errors.Join(err, c.Ping(t.Context())); err != nil { // by then, a legacy server has read all earlier messages
			t.Fatal(err)
		}
		mux.Tool("new", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, nil }))
		defer mux.RemoveTool("new")
		if got := <-changes; got.Method != mcp.NotificationToolsListChanged {
			t.Errorf("got %+v", got)
		}
		s.Close()
		<-s.Done()
	})
}

func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fault mcptest.Fault
		only := func(_ int, m *transport.Outgoing) mcptest.Fault {
			if m.Method != mcp.MethodCallTool {
				return mcptest.Fault{}
			}
			f := fault
			fault = mcptest.Fault{}
			return f
		}
		for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
			c := mcptest.Dial(t, mcptest.Faulty(mcptest.Paths()[0].Serve(t, asks()), only), &mcp.ClientOptions{
				Version: version, Elicit: answers, CallTimeout: time.Minute,
			})
			call := func(f mcptest.Fault) (time.Duration, error) {
				fault = f
				start := time.Now()
				_, err := mcp.Call[string](t.Context(), c, "ask", nil)
				return time.Since(start), err
			}
			if took, err := call(mcptest.Fault{Delay: time.Second}); err != nil || took < time.Second {
				t.Errorf("%s: delayed: %v after %v", version, err, took)
			}
			if took, err := call(mcptest.Fault{Drop: true}); !errors.Is(err, context.DeadlineExceeded) || took != time.Minute {
				t.Errorf("%s: dropped: %v after %v", version, err, took)
			}
			_, err := call(mcptest.Fault{Err: mcp.ErrSessionLost})
			if version == mcp.LatestVersion && !errors.Is(err, mcp.ErrSessionLost) {
				t.Errorf("%s: session lost: %v", version, err)
			}
			if _, err := call(mcptest.Fault{Cut: true}); err == nil {
				t.Errorf("%s: cut: the call succeeded", version)
			}
		}
	})
}
