// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// While a tool works without a word, the client receives progress that increases, and all
// progress that the tool reports itself arrives unchanged.
func TestFindingRM11Heartbeat(t *testing.T) {
	beaten := make(chan struct{})
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(middleware.Heartbeat(time.Millisecond))
	mux.Tool("slow", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		for done := range 3 {
			if done > 0 {
				mcp.Progress(ctx, float64(done), 10, "")
			}
			select {
			case <-beaten: // the client has heard a beat since
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		mcp.Progress(ctx, 3, 10, "")
		return "done", nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		var last, lastBeat float64
		var own []float64
		ctx := mcp.WithProgress(t.Context(), func(p *mcp.ProgressParams) {
			if p.Progress <= last {
				t.Errorf("progress went from %v to %v", last, p.Progress)
			}
			last = p.Progress
			if whole := float64(int(p.Progress)); whole == p.Progress {
				own = append(own, p.Progress)
				return
			}
			if (p.Total != nil) != (p.Progress > 1) {
				t.Errorf("a beat at %v has the total %v", p.Progress, p.Total)
			}
			if p.Progress < 3 && (lastBeat == 0 || int(p.Progress) != int(lastBeat)) { // later, the tool no longer waits
				lastBeat = p.Progress
				beaten <- struct{}{}
			}
		})
		if got, err := mcp.Call[string](ctx, c, "slow", nil); got != "done" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		if !slices.Equal(own, []float64{1, 2, 3}) {
			t.Errorf("the tool's own progress arrived as %v", own)
		}
	})
}

// Each interval has one beat, and none follows the response. Requests whose sender does not
// want progress have none.
func TestHeartbeatInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Use(middleware.Heartbeat(10 * time.Second))
		mux.Tool("slow", mcp.ToolFunc(func(context.Context, none) (string, error) {
			<-time.After(35 * time.Second)
			return "done", nil
		}, nil))
		conn, err := mcp.NewClient("c", "v1", nil).Connect(t.Context(), mcp.InProcess(mux))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, wanted := range []bool{true, false} {
			beats := 0
			ctx := t.Context()
			if wanted {
				ctx = mcp.WithProgress(ctx, func(*mcp.ProgressParams) { beats++ })
			}
			if _, err := mcp.Call[string](ctx, conn, "slow", nil); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
			if want := map[bool]int{true: 3}[wanted]; beats != want {
				t.Errorf("progress wanted: %v: %d beats, want %d", wanted, beats, want)
			}
		}
	})
}

func ExampleHeartbeat() {
	heard := make(chan struct{})
	mux := mcp.NewMux("server", "v1.0.0", nil)
	mux.With(middleware.Heartbeat(time.Millisecond)).Tool("train", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		<-heard // takes long, and says nothing
		return "trained", nil
	}, nil))

	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	hear := sync.OnceFunc(func() {
		fmt.Println("the server is still working")
		close(heard)
	})
	fmt.Println(mcp.Call[string](mcp.WithProgress(ctx, func(*mcp.ProgressParams) { hear() }), conn, "train", nil))
	// Output:
	// the server is still working
	// trained <nil>
}
