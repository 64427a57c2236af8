// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// An olderClient is a client of 2025-11-25 that sends raw messages and records the
// conversation.
type olderClient struct {
	t          testing.TB
	stream     transport.Stream
	ids        int
	transcript strings.Builder
	tasks      map[string]string // names of tasks in the transcript, by ID
}

// dialOlder opens a session with a server on behalf of a caller, which is nil if
// unauthenticated.
func dialOlder(t testing.TB, h mcp.Handler, caller *mcp.Principal, version string) *olderClient {
	t.Helper()
	return dialDeclaring(t, h, caller, version, `{"elicitation":{}}`)
}

// dialDeclaring is like dialOlder, but with the given client capabilities.
func dialDeclaring(t testing.TB, h mcp.Handler, caller *mcp.Principal, version, capabilities string) *olderClient {
	t.Helper()
	near, far := transport.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	opts := &mcpstdio.StreamOptions{Principal: caller, DrainTimeout: -1, Logger: slog.New(slog.DiscardHandler)}
	go func() { served <- mcpstdio.ServeStream(ctx, h, far, opts) }()
	t.Cleanup(func() {
		near.Close()
		cancel()
		<-served
	})
	c := &olderClient{t: t, stream: near, tasks: map[string]string{}}
	c.call("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"old","version":"1"}}`, version, capabilities))
	c.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// A message is a message from the server.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *mcp.Error      `json:"error"`
}

func (c *olderClient) write(raw string) {
	c.t.Helper()
	fmt.Fprintln(&c.transcript, "→", raw)
	if err := c.stream.Write(c.t.Context(), []byte(raw)); err != nil {
		c.t.Fatal(err)
	}
}

// read reads the next message from the server.
func (c *olderClient) read() message {
	c.t.Helper()
	raw, err := c.stream.Read(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		c.t.Fatalf("%s: %v", raw, err)
	}
	if m.Method != "notifications/tasks/status" { // some states may be skipped
		fmt.Fprintln(&c.transcript, "←", string(raw))
	}
	return m
}

// golden returns the conversation without random values and status notifications.
func (c *olderClient) golden() string {
	text := regexp.MustCompile(`psi-[0-9a-z]+`).ReplaceAllString(c.transcript.String(), "QUESTION")
	for id, name := range c.tasks {
		text = strings.ReplaceAll(text, id, name)
	}
	return regexp.MustCompile(`"(createdAt|lastUpdatedAt)":"[^"]*"`).ReplaceAllString(text, `"$1":"TIME"`)
}

// send sends a request without reading the response, and returns its ID.
func (c *olderClient) send(method, params string) string {
	c.t.Helper()
	c.ids++
	c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.ids, method, params))
	return fmt.Sprint(c.ids)
}

// call sends a request and returns its response and the messages received before it.
func (c *olderClient) call(method, params string) (response message, before []message) {
	c.t.Helper()
	id := c.send(method, params)
	for {
		m := c.read()
		if m.Method == "" && string(m.ID) == id {
			return m, before
		}
		before = append(before, m)
	}
}

// An olderTask is a task as defined by 2025-11-25.
type olderTask struct {
	TaskID        string `json:"taskId"`
	Status        string `json:"status"`
	StatusMessage string `json:"statusMessage"`
	TTL           *int64 `json:"ttl"`
	PollInterval  *int64 `json:"pollInterval"`
}

// start calls a tool as a task, and returns its ID.
func (c *olderClient) start(tool, terms string) string {
	c.t.Helper()
	m, _ := c.call("tools/call", fmt.Sprintf(`{"name":%q,"arguments":{},"task":%s}`, tool, terms))
	var r struct{ Task olderTask }
	if m.Error != nil || json.Unmarshal(m.Result, &r) != nil || r.Task.Status != "working" {
		c.t.Fatalf("%s was answered with %s, %v", tool, m.Result, m.Error)
	}
	c.tasks[r.Task.TaskID] = fmt.Sprintf("TASK-%d", len(c.tasks)+1)
	return r.Task.TaskID
}

// about sends a request about a task and returns the response.
func (c *olderClient) about(method, id string) message {
	c.t.Helper()
	m, _ := c.call(method, fmt.Sprintf(`{"taskId":%q}`, id))
	return m
}

// state returns the state of a task.
func (c *olderClient) state(id string) (s olderTask) {
	c.t.Helper()
	m := c.about("tasks/get", id)
	if m.Error != nil || json.Unmarshal(m.Result, &s) != nil || s.TaskID != id {
		c.t.Fatalf("tasks/get: %s, %v", m.Result, m.Error)
	}
	return s
}

// answer answers a question of the server.
func (c *olderClient) answer(q message, content string) {
	c.t.Helper()
	c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":%s}}`, q.ID, content))
}
