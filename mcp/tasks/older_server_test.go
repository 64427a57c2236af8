// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/golden"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcp/transport"
)

// An olderServer is a server of 2025-11-25 that sends scripted answers and records the
// conversation.
type olderServer struct {
	answers    map[string][]string // members of responses, by method, in order; the last one is repeated
	question   string              // question that the next tasks/result asks first, or ""
	transcript strings.Builder
}

const (
	olderCreated = `{"task":{"taskId":"t1","status":"working","statusMessage":"begun","createdAt":"2026-01-02T03:04:05Z","lastUpdatedAt":"2026-01-02T03:04:05Z","ttl":60000,"pollInterval":500}}`
	olderWorking = `{"taskId":"t1","status":"working","createdAt":"2026-01-02T03:04:05Z","lastUpdatedAt":"2026-01-02T03:04:06Z","ttl":60000,"pollInterval":500}`
	olderTools   = `{"tools":[{"name":"encode","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}},{"name":"long","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},{"name":"plain","inputSchema":{"type":"object"}}]}`
	olderResult  = `{"content":[{"type":"text","text":"av1"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"},"k":1}}`
	olderAsks    = `{"mode":"form","message":"Which codec?","requestedSchema":{"type":"object","properties":{"codec":{"type":"string"}}},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}`
)

// olderState returns a state of the task.
func olderState(status string) string { return strings.Replace(olderWorking, "working", status, 1) }

func newOlderServer() *olderServer {
	s := &olderServer{answers: map[string][]string{}}
	s.set("initialize", `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"farm","version":"1"}}`)
	s.set(mcp.MethodListTools, olderTools)
	s.set(mcp.MethodCallTool, olderCreated)
	s.set("tasks/get", olderWorking, olderState("completed"))
	s.set("tasks/result", olderResult)
	s.set("tasks/cancel", olderState("cancelled"))
	return s
}

// set sets the results of a method.
func (s *olderServer) set(method string, results ...string) {
	s.answers[method] = nil
	for _, r := range results {
		s.answers[method] = append(s.answers[method], `"result":`+r)
	}
}

func (s *olderServer) fail(method, err string) { s.answers[method] = []string{`"error":` + err} }

// next returns the answer to the next request of a method.
func (s *olderServer) next(method string) string {
	list := s.answers[method]
	if len(list) > 1 {
		s.answers[method] = list[1:]
	}
	return list[0]
}

func (s *olderServer) connect(context.Context) (transport.Stream, error) {
	client, server := transport.Pipe()
	go func() {
		defer server.Close()
		var asking transport.ID // the request whose question is pending
		write := func(message string) {
			fmt.Fprintln(&s.transcript, "←", message)
			_ = server.Write(context.Background(), []byte(message))
		}
		for {
			data, err := server.Read(context.Background())
			if err != nil {
				return
			}
			fmt.Fprintln(&s.transcript, "→", string(data))
			m, err := transport.ParseMessage(data)
			switch {
			case err != nil || m.IsNotification():
				continue
			case m.Method == "tasks/result" && s.question != "":
				asking = m.ID
				write(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":` + s.question + `}`)
				s.question = ""
				continue
			case m.IsResponse():
				m.ID, m.Method = asking, "tasks/result"
			}
			if len(s.answers[m.Method]) > 0 {
				write(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,` + s.next(m.Method) + `}`)
			}
		}
	}()
	return client, nil
}

// got records what the caller got.
func (s *olderServer) got(v any, err error) {
	synctest.Wait()
	fmt.Fprintln(&s.transcript, "=", outcomeOf(v, err))
}

// outcomeOf returns the outcome of a call in one line.
func outcomeOf(v any, err error) string {
	if err != nil {
		return "error: " + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// A server of 2025-11-25 runs tools as tasks, both for a client that supports the extension
// and for one that does not.
func TestOlderServerConversation(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newOlderServer()
		opts := options()
		opts.Version = r202511
		c := mcptest.Dial(t, transport.FromStream(s.connect), opts)

		s.question = olderAsks
		s.set("tasks/get", olderWorking, olderState("input_required"), olderState("completed"))
		h := start(t, c, "encode")
		s.got(h.Get(t.Context()))
		s.got(h.Wait(t.Context()))

		s.set("tasks/get", strings.Replace(olderState("failed"), `,"createdAt"`, `,"statusMessage":"on fire","createdAt"`, 1))
		s.fail("tasks/result", `{"code":-32050,"message":"the farm is on fire"}`)
		s.got(start(t, c, "encode").Wait(t.Context()))
		s.set("tasks/result", strings.Replace(olderResult, `"av1"}]`, `"no film"}],"isError":true`, 1))
		s.got(start(t, c, "encode").Wait(t.Context()))

		s.set("tasks/get", olderState("cancelled"))
		h = start(t, c, "encode")
		s.got("cancelled", h.Cancel(t.Context()))
		s.got(h.Wait(t.Context()))
		s.fail("tasks/cancel", `{"code":-32602,"message":"the task has ended"}`)
		s.got("cancelled", h.Cancel(t.Context()))

		s.set(mcp.MethodCallTool, `{"content":[{"type":"text","text":"plain"}]}`)
		s.got(c.CallTool(t.Context(), &mcp.CallToolParams{Name: "plain"}))

		opts.Extensions = nil
		c = mcptest.Dial(t, transport.FromStream(s.connect), opts)
		s.question = olderAsks
		s.answers[mcp.MethodCallTool] = []string{`"error":{"code":-32601,"message":"call it as a task"}`, `"result":` + olderCreated}
		s.set("tasks/result", olderResult)
		s.got(c.CallTool(t.Context(), &mcp.CallToolParams{Name: "long"}))
		if id := repeatedID(s.transcript.String()); id != "" {
			t.Errorf("the ID %s was used twice in a session", id)
		}
		golden.Check(t, "older-server", s.transcript.String())
	})
}

// repeatedID returns an ID that a client has used for two requests of a session, or "".
func repeatedID(transcript string) string {
	used := map[string]bool{}
	for line := range strings.Lines(transcript) {
		m, err := transport.ParseMessage([]byte(strings.TrimPrefix(line, "→ ")))
		if err != nil || !m.IsRequest() || strings.HasPrefix(line, "←") {
			continue
		}
		if m.Method == "initialize" {
			clear(used)
		}
		if used[m.ID.String()] {
			return m.ID.String()
		}
		used[m.ID.String()] = true
	}
	return ""
}

// A transcript records how a client handles answers of such a server in which one value is
// missing or changed.
func TestOlderServerTranscript(t *testing.T) {
	var text strings.Builder
	answers := map[string]string{
		mcp.MethodCallTool: olderCreated, "tasks/get": olderState("completed"), "tasks/result": olderResult,
	}
	for _, method := range slices.Sorted(maps.Keys(answers)) {
		golden.PlayVariants(t, &text, method, answers[method], func(result string) (got string) {
			inBubble(t, func(t *testing.T) {
				s := newOlderServer()
				s.set(method, result)
				got = callOlder(t, s)
			})
			return got
		})
	}
	golden.PlayVariants(t, &text, mcp.MethodElicit, olderAsks, func(question string) (got string) {
		inBubble(t, func(t *testing.T) {
			s := newOlderServer()
			s.question = question
			s.set("tasks/get", olderState("input_required"), olderState("completed"))
			got = callOlder(t, s)
		})
		return got
	})
	golden.Check(t, "older-server-variants", text.String())
}

// callOlder calls a tool of a server, as a task if the server supports tasks.
func callOlder(t *testing.T, s *olderServer) string {
	opts := options()
	opts.Version = r202511
	c, err := mcp.NewClient("c", "v1", opts).Connect(t.Context(), transport.FromStream(s.connect))
	if err != nil {
		return outcomeOf(nil, err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h, res, err := tasks.Start(ctx, c, &mcp.CallToolParams{Name: "encode"})
	if h == nil {
		return "no task: " + outcomeOf(res, err)
	}
	return outcomeOf(h.Wait(ctx))
}
