// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest_test

import (
	"context"
	"errors"
	"os"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// journey returns a server with a tool that asks twice, reports progress, and then waits
// until it is cancelled. The tool sends on began before it waits, and on ended afterwards.
func journey() (mux *mcp.Mux, began, ended chan string) {
	mux = asks()
	began, ended = make(chan string, 1), make(chan string, 1)
	mux.Tool("journey", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		type answer struct {
			Text string `json:"text"`
		}
		a, err := mcp.Elicit[answer](ctx, "a", "First?")
		if err != nil {
			return "", err
		}
		b, err := mcp.Elicit[answer](ctx, "b", "Second?")
		if err != nil {
			return "", err
		}
		mcp.Progress(ctx, 1, 2, "nearly")
		mcp.Progress(ctx, 2, 2, "there")
		began <- a.Text + b.Text
		<-ctx.Done()
		ended <- "cancelled"
		return "", context.Cause(ctx)
	}, nil))
	return mux, began, ended
}

// An outcome records the effects of one call of the tool.
type outcome struct {
	questions []string
	answers   string
	progress  []string
	cancelled bool // whether the caller got the error
	ended     string
}

// travel calls the tool over a transport and cancels the call once the tool waits.
func travel(t *testing.T, transport transport.Transport, version, tool string, began, ended <-chan string) outcome {
	t.Helper()
	var mu sync.Mutex
	var o outcome
	c := mcptest.Dial(t, transport, &mcp.ClientOptions{
		Version: version,
		Elicit: func(ctx context.Context, c *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			mu.Lock()
			defer mu.Unlock()
			o.questions = append(o.questions, p.Message)
			return answers(ctx, c, p)
		},
	})
	reported := make(chan string, 8)
	ctx := mcp.WithProgress(t.Context(), func(p *mcp.ProgressParams) { reported <- p.Message })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := mcp.Call[string](ctx, c, tool, nil)
		failed <- err
	}()
	late := time.After(20 * time.Second)
	for len(o.progress) < 2 {
		select {
		case message := <-reported:
			o.progress = append(o.progress, message)
		case err := <-failed:
			t.Fatalf("the call ended too early: %v", err)
		case <-late:
			t.Fatalf("the call hangs after %v", o.progress)
		}
	}
	o.answers = <-began
	cancel()
	o.cancelled = errors.Is(<-failed, context.Canceled)
	select {
	case o.ended = <-ended:
	case <-late:
		o.ended = "never"
	}
	return o
}

// A gateway between client and server is transparent: in every combination of eras and
// paths, questions and progress arrive in order, and so does the cancellation.
func TestChains(t *testing.T) {
	mux, began, ended := journey()
	want := outcome{[]string{"First?", "Second?"}, "xx", []string{"nearly", "there"}, true, "cancelled"}
	t.Run("without a gateway", func(t *testing.T) {
		if got := travel(t, mcp.InProcess(mux), mcp.LatestVersion, "journey", began, ended); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
	for _, back := range mcptest.Paths() {
		for _, backVersion := range back.Versions() {
			for _, front := range mcptest.Paths() {
				for _, frontVersion := range front.Versions() {
					t.Run(front.Name+" "+frontVersion+" to "+back.Name+" "+backVersion, func(t *testing.T) {
						mcptest.NoLeaks(t)
						gateway := mcp.NewMux("gateway", "v1", nil)
						gateway.Mount("b_", mcptest.Dial(t, back.Serve(t, mux), &mcp.ClientOptions{Version: backVersion, Forward: true}))
						got := travel(t, front.Serve(t, gateway), frontVersion, "b_journey", began, ended)
						if !reflect.DeepEqual(got, want) {
							t.Errorf("%+v, want %+v", got, want)
						}
					})
				}
			}
		}
	}
}

// A thousand connections on each path leak no goroutine and no file descriptor. (Package
// mcpstdio tests connections to commands.)
func TestManyConnections(t *testing.T) {
	cycles := 1000
	if testing.Short() || raceEnabled {
		cycles = 100
	}
	for _, path := range mcptest.Paths() {
		t.Run(path.Name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			transport := path.Serve(t, asks())
			versions := path.Versions()
			clients := make([]*mcp.Client, len(versions))
			for i, version := range versions {
				clients[i] = mcp.NewClient("c", "v1", &mcp.ClientOptions{Version: version})
			}
			cycle := func(i int) {
				t.Helper()
				c, err := clients[i%len(clients)].Connect(t.Context(), transport)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
			}
			cycle(0)
			before := descriptors()
			for i := range cycles {
				cycle(i)
			}
			if after := descriptors(); after > before+16 { // idle HTTP connections are few and bounded
				t.Errorf("%d descriptors were open, now there are %d", before, after)
			}
		})
	}
}

// descriptors returns the number of open file descriptors of this process, or 0 if the
// system does not expose it.
func descriptors() int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(open)
}
