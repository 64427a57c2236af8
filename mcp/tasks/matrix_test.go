// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/tasks"
)

// Every feature of tasks works over every transport that supports the revision with the
// extension. Older revisions are covered by the tests of the translators and by
// TestDrivenToItsEnd.
func TestMatrix(t *testing.T) {
	cases := map[string]func(t *testing.T, f *farm, c *mcp.Conn){
		"answered at once": testAtOnce, "polled": testPolled, "pushed": testPushed, "asked twice": testAskedTwice,
		"cancelled while it works": testCancelledWorking, "cancelled while it waits": testCancelledWaiting,
		"failed": testFailed, "failed by its tool": testFailedTool, "expired": testExpired,
	}
	for _, path := range mcptest.Paths() {
		if !slices.Contains(path.Versions(), mcp.LatestVersion) {
			continue
		}
		for name, test := range cases {
			t.Run(path.Name+"/"+name, func(t *testing.T) {
				o, b := quick, &tasks.BackgroundOptions{}
				switch name {
				case "expired":
					b.TTL = 300 * time.Millisecond
				case "pushed":
					o.PollInterval = time.Hour
				}
				f := newFarmWith(t, o, b)
				test(t, f, mcptest.Dial(t, path.Serve(t, f.mux), options()))
			})
		}
	}
}

func startAny(t *testing.T, c *mcp.Conn, tool, args string) (*tasks.Handle, *tasks.DetailedTask) {
	t.Helper()
	h, res, err := tasks.Start(t.Context(), c, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil || h == nil {
		t.Fatalf("Start %s: %v, %v, %v", tool, h, res, err)
	}
	return h, state(t, h)
}

func testAtOnce(t *testing.T, f *farm, c *mcp.Conn) {
	if got, err := mcp.Call[string](t.Context(), c, "render", scene{}); got != "0 steps" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	h, _ := startAny(t, c, "render", `{"steps":3}`)
	if d := until(t, h, tasks.Completed); text(t, d) != "3 steps" || f.steps.Load() != 3 || d.Error != nil {
		t.Errorf("%+v after %d steps", d, f.steps.Load())
	}
}

func testPolled(t *testing.T, f *farm, c *mcp.Conn) {
	h, _ := startAny(t, c, "wait", `{}`)
	<-f.begun
	if d := state(t, h); d.Status != tasks.Working || d.Result != nil || d.TTLMs == nil || d.PollIntervalMs == nil {
		t.Errorf("%+v", d)
	}
	close(f.gate)
	if d := until(t, h, tasks.Completed); text(t, d) != "waited" {
		t.Errorf("%+v", d)
	}
}

// testPushed uses a poll interval that is longer than the test. The gate opens after the
// first poll, which finds the task working.
func testPushed(t *testing.T, f *farm, c *mcp.Conn) {
	results := make(chan error, 1)
	go func() {
		got, err := mcp.Call[string](t.Context(), c, "wait", nil)
		if err == nil && got != "waited" {
			err = errors.New(got)
		}
		results <- err
	}()
	<-f.begun
	<-time.After(200 * time.Millisecond)
	close(f.gate)
	if err := <-results; err != nil {
		t.Error(err)
	}
}

func testAskedTwice(t *testing.T, f *farm, c *mcp.Conn) {
	if got, err := mcp.Call[string](t.Context(), c, "ask", nil); got != "av1 av1 true" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	h, _ := startAny(t, c, "ask", `{}`)
	d := until(t, h, tasks.InputRequired)
	if len(d.InputRequests) != 2 {
		t.Errorf("first: %+v", d)
	}
	answer(t, h, d, av1)
	for d = until(t, h, tasks.InputRequired); d.InputRequests["sure"].Method == ""; d = until(t, h, tasks.InputRequired) {
	}
	answer(t, h, d, `{"action":"accept","content":{"sure":true}}`)
	if d := until(t, h, tasks.Completed); text(t, d) != "av1 av1 true" || f.steps.Load() != 2 {
		t.Errorf("%+v after %d steps", d, f.steps.Load())
	}
}

func testCancelledWorking(t *testing.T, f *farm, c *mcp.Conn) {
	h, _ := startAny(t, c, "wait", `{}`)
	<-f.begun
	if err := h.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, h, tasks.Cancelled)

	ctx, cancel := context.WithCancel(t.Context()) // a task is also cancelled by the context of a call
	go func() {
		<-f.begun
		cancel()
	}()
	if _, err := mcp.Call[string](ctx, c, "wait", nil); !errors.Is(err, context.Canceled) {
		t.Error("the call ends with", err)
	}
}

func testCancelledWaiting(t *testing.T, _ *farm, c *mcp.Conn) {
	h, _ := startAny(t, c, "ask", `{}`)
	until(t, h, tasks.InputRequired)
	if err := h.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, h, tasks.Cancelled)
	if err := h.Update(t.Context(), map[string]json.RawMessage{"video": json.RawMessage(av1)}); err != nil {
		t.Error("an answer that comes too late:", err)
	}
	until(t, h, tasks.Cancelled)
}

func testFailed(t *testing.T, _ *farm, c *mcp.Conn) {
	if _, err := mcp.Call[string](t.Context(), c, "break", nil); mcp.CodeOf(err) != -32050 {
		t.Error("the call ends with", err)
	}
	h, _ := startAny(t, c, "break", `{}`)
	if d := until(t, h, tasks.Failed); d.Error == nil || d.Error.Code != -32050 || d.StatusMessage == "" || d.Result != nil {
		t.Errorf("%+v", d)
	}
}

func testFailedTool(t *testing.T, _ *farm, c *mcp.Conn) {
	h, _ := startAny(t, c, "fail", `{}`)
	if d := until(t, h, tasks.Completed); text(t, d) != "error: no film" || d.Error != nil {
		t.Errorf("%+v", d)
	}
}

func testExpired(t *testing.T, f *farm, c *mcp.Conn) {
	h, _ := startAny(t, c, "wait", `{}`)
	<-f.begun
	var err error
	for range 1000 {
		var d *tasks.DetailedTask
		if d, err = h.Get(t.Context()); err != nil {
			break
		}
		if d.Status != tasks.Working && d.Status != tasks.Failed {
			t.Fatalf("%+v", d)
		}
		<-time.After(10 * time.Millisecond)
	}
	if mcp.CodeOf(err) != mcp.CodeInvalidParams {
		t.Error("an expired task:", err)
	}
}
