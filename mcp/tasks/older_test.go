// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcp/transport"
)

// The tasks of 2025-11-25 are neither served nor used: to an older client, a tool that runs in
// the background is an ordinary tool, and to psi's client a tool of an older server is one.

// In every older revision, a call of a background tool runs until it ends and asks as any call
// asks. Only a tool that requires tasks refuses it.
func TestOlderClientsCallBackgroundTools(t *testing.T) {
	for _, path := range mcptest.Paths() {
		for _, version := range mcp.LegacyVersions() {
			if !slices.Contains(path.Versions(), r202511) {
				continue
			}
			t.Run(path.Name+"/"+version, func(t *testing.T) {
				opts := options()
				opts.Version = version
				c := mcptest.Dial(t, path.Serve(t, newOutcomes(t).mux), opts)
				for tool, want := range map[string]string{"quick": "done", "slow": "slow", "plain": "plain", "after": "after", "ask": "av1av1"} {
					got, err := mcp.Call[string](t.Context(), c, tool, struct{}{})
					check(t, got, err, want)
				}
				if h, res, err := tasks.Start(t.Context(), c, &mcp.CallToolParams{Name: "fail"}); h != nil || err != nil || !res.IsError {
					t.Errorf("fail: %v, %+v, %v", h, res, err)
				}
				for tool, code := range map[string]int{"break": -32050, "long": mcp.CodeMissingCapability} {
					if _, err := mcp.Call[string](t.Context(), c, tool, struct{}{}); mcp.CodeOf(err) != code {
						t.Errorf("%s: %v", tool, err)
					}
				}
			})
		}
	}
}

// Older clients are offered no tasks, their requests about tasks are unknown, and a task that
// they ask for is ignored, whatever it is.
func TestRevisionsWithoutTasks(t *testing.T) {
	for _, version := range mcp.LegacyVersions() {
		inBubble(t, func(t *testing.T) {
			c := dialOlder(t, newOutcomes(t).mux, version, `{"tasks":{"list":{}}}`)
			for _, method := range []string{"tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"} {
				if m := c.call(method, `{"taskId":"x"}`); m.Error == nil || m.Error.Code != mcp.CodeMethodNotFound {
					t.Errorf("%s: %s: %s, %v", version, method, m.Result, m.Error)
				}
			}
			for _, task := range []string{`{}`, `{"ttl":-1}`, `null`, `7`} {
				if m := c.call("tools/call", `{"name":"quick","arguments":{},"task":`+task+`}`); !strings.Contains(string(m.Result), `"content"`) {
					t.Errorf("%s: a call with the task %s: %s, %v", version, task, m.Result, m.Error)
				}
			}
			if m := c.call("tools/list", `{}`); m.Error != nil || strings.Contains(string(m.Result), "execution") {
				t.Errorf("%s: %s, %v", version, m.Result, m.Error)
			}
			if s := c.transcript.String(); strings.Contains(s, tasks.Extension) || strings.Contains(s, `"tasks":`) || strings.Contains(s, "taskId") {
				t.Errorf("%s: tasks are mentioned in %s", version, s)
			}
		})
	}
}

// Declaring the extension has no effect in older revisions.
func TestExtensionInOlderRevisions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newOutcomes(t)
		for _, version := range mcp.LegacyVersions() {
			declared := fmt.Sprintf(`{"elicitation":{},"extensions":{%q:{}}}`, tasks.Extension)
			c := dialOlder(t, r.mux, version, declared)
			for _, meta := range []string{`{}`, fmt.Sprintf(`{"io.modelcontextprotocol/clientCapabilities":%s}`, declared)} {
				m := c.call("tools/call", fmt.Sprintf(`{"name":"quick","arguments":{},"_meta":%s}`, meta))
				if !strings.Contains(string(m.Result), `"content"`) {
					t.Errorf("%s: %s, %v", version, m.Result, m.Error)
				}
			}
		}
	})
}

// A tool of an older server is called without a task, whether or not it allows one, and
// notifications about tasks do no harm. The call of a listed tool that requires a task is an
// error that says so, and what to do.
func TestToolsOfOlderServersAreCalledWithoutTasks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newOlderServer(`{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`)
		opts := options()
		opts.Version = r202511
		c := mcptest.Dial(t, transport.FromStream(s.connect), opts)
		if _, err := c.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for _, tool := range []string{"odd", "plain", "encode"} {
			h, res, err := tasks.Start(t.Context(), c, &mcp.CallToolParams{Name: tool})
			if h != nil || err != nil || len(res.Content) != 1 {
				t.Errorf("%s: %v, %+v, %v", tool, h, res, err)
			}
		}
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "long"})
		const want = `the tool "long" cannot be called: it requires a task of 2025-11-25 (execution.taskSupport), which is not supported; let the tool be called without one, or have the server speak `
		if mcp.CodeOf(err) != mcp.CodeMethodNotFound || !strings.Contains(err.Error(), want) {
			t.Errorf("long: %v", err)
		}
		if heard := fmt.Sprint(s.heard); len(s.heard) != 3 || strings.Contains(heard, `"task"`) {
			t.Errorf("the server heard %s", heard)
		}
	})
}

// What a tool requires means nothing if its server does not declare tasks.
func TestRequiredTasksOfAServerWithoutTasks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		opts := options()
		opts.Version = r202511
		c := mcptest.Dial(t, transport.FromStream(newOlderServer(`{"tools":{}}`).connect), opts)
		if _, err := c.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		got, err := mcp.Call[string](t.Context(), c, "long", struct{}{})
		check(t, got, err, "av1")
	})
}

// A gateway passes on neither the tasks of an older server nor what its tools say about them,
// and leaves out those that require a task.
func TestGatewayHidesTasksOfOlderServers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		dial := func() *mcp.Conn {
			s := newOlderServer(`{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}`)
			return mcptest.Dial(t, transport.FromStream(s.connect), forwarding(r202511))
		}
		served := (&mcptest.Client{Options: *options()}).Connect(t, dial())
		if caps := served.Server().Capabilities; caps.Extra["tasks"] != nil || caps.Extensions[tasks.Extension] != nil {
			t.Errorf("a served connection declares %+v", caps)
		}
		mux := mcp.NewMux("gate", "1", &mcp.MuxOptions{Logger: slog.New(slog.DiscardHandler)})
		mux.Mount("a_", dial())
		c := (&mcptest.Client{Options: *options()}).Connect(t, mux)
		var names []string
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil || tool.Extra["execution"] != nil {
				t.Errorf("%+v, %v", tool, err)
			}
			names = append(names, tool.Name)
		}
		if want := []string{"a_encode", "a_odd", "a_plain"}; !slices.Equal(slices.Sorted(slices.Values(names)), want) {
			t.Errorf("the gateway lists %q, want %q", names, want)
		}
		got, err := mcp.Call[string](t.Context(), c, "a_encode", struct{}{})
		check(t, got, err, "av1")
		if _, err := mcp.Call[string](t.Context(), c, "a_long", struct{}{}); mcp.CodeOf(err) != mcp.CodeMethodNotFound {
			t.Errorf("a tool that requires a task: %v", err)
		}
	})
}
