// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

const many = 600 // questions

// An inquirer is a server of an older revision that asks questions.
type inquirer struct {
	stream   transport.Stream
	version  string
	method   string // of its questions
	holds    bool   // it answers a call only after many questions
	call     string // the ID of the call that it holds
	asked    atomic.Int64
	answered atomic.Int64
	refused  atomic.Int64
	during   func(s *inquirer)               // called for each tools/call
	after    func(s *inquirer, answered int) // called for each answer
	started  func(s *inquirer)               // called after the handshake
}

func (s *inquirer) connect(context.Context) (transport.Stream, error) {
	near, far := transport.Pipe()
	s.stream = far
	go s.serve()
	return near, nil
}

func (s *inquirer) serve() {
	for {
		data, err := s.stream.Read(context.Background())
		if err != nil {
			return
		}
		m, _ := transport.ParseMessage(data)
		switch {
		case m.Method == "initialize":
			s.write(resultFor(m.ID.String(), `{"protocolVersion":"`+s.version+`","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`))
		case m.Method == "notifications/initialized" && s.started != nil:
			s.started(s)
		case m.Method == mcp.MethodCallTool:
			if s.during != nil {
				s.during(s)
			}
			if s.call = m.ID.String(); !s.holds {
				s.write(resultFor(s.call, `{"content":[]}`))
			}
		case m.IsRequest():
			s.write(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"error":{"code":-32601,"message":"no"}}`)
		case m.Result != nil:
			s.answered.Add(1)
		case m.Error != nil:
			s.refused.Add(1)
		}
		answers := int(s.answered.Load() + s.refused.Load())
		if m.IsResponse() && s.after != nil {
			s.after(s, answers)
		}
		if m.IsResponse() && s.holds && answers == many {
			s.write(resultFor(s.call, `{"content":[]}`))
		}
	}
}

func (s *inquirer) write(message string) { _ = s.stream.Write(context.Background(), []byte(message)) }

func (s *inquirer) ask(n int) {
	questions := make([]string, n)
	for i := range questions {
		questions[i] = fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","method":%q,"params":{"messages":[],"maxTokens":1}}`, s.asked.Add(1), s.method)
	}
	s.write(`[` + strings.Join(questions, ",") + `]`)
}

// A server of an older revision may ask at any time, but the user and the model of a client are
// not at its disposal: it gets errors for all questions but a few for each call.
func TestFindingX3LegacyQuestionsAreBounded(t *testing.T) {
	inRounds := func(s *inquirer, answered int) {
		if answered < many {
			s.ask(1)
		}
	}
	for name, test := range map[string]struct {
		server            func() *inquirer
		calls             int
		rounds, questions int
		anytime           bool
		want              int64 // the number of questions that are answered
	}{
		"at once":        {func() *inquirer { return &inquirer{during: func(s *inquirer) { s.ask(many) }} }, 1, 32, 16, false, 16},
		"at once, fewer": {func() *inquirer { return &inquirer{during: func(s *inquirer) { s.ask(many) }} }, 1, 32, 2, false, 2},
		"in rounds": {func() *inquirer {
			return &inquirer{during: func(s *inquirer) { s.ask(1) }, after: inRounds, holds: true}
		}, 1, 32, 16, false, 512},
		"in rounds, after a call": {func() *inquirer { return &inquirer{during: func(s *inquirer) { s.ask(1) }, after: inRounds} }, 1, 32, 16, false, 60},
		"in rounds, fewer":        {func() *inquirer { return &inquirer{during: func(s *inquirer) { s.ask(1) }, after: inRounds} }, 1, 2, 3, false, 6},
		"in rounds, again":        {func() *inquirer { return &inquirer{during: func(s *inquirer) { s.ask(8) }} }, 4, 1, 8, false, 32},
		"before the first call":   {func() *inquirer { return &inquirer{started: func(s *inquirer) { s.ask(many) }} }, 0, 32, 16, false, 0},
		"before it, if allowed":   {func() *inquirer { return &inquirer{started: func(s *inquirer) { s.ask(1) }, after: inRounds} }, 0, 32, 16, true, 512},
	} {
		for _, version := range mcp.LegacyVersions() {
			for _, method := range []string{mcp.MethodCreateMessage, mcp.MethodListRoots} {
				t.Run(name+" "+version+" "+method, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := test.server()
						s.version, s.method = version, method
						o, _, most := counting(&mcp.ClientOptions{Version: version, Roots: []mcp.Root{}, AnswerAnytime: test.anytime})
						mcp.LimitQuestions(o, test.rounds, test.questions)
						c := connectTo(t, transport.FromStream(s.connect), o)
						for range test.calls {
							if _, err := c.CallTool(t.Context(), tool("t", "")); err != nil {
								t.Fatal(err)
							}
							<-time.After(10 * time.Second) // the model answers in a second
						}
						<-time.After(10 * time.Minute)
						// Roots cost nothing: they are answered after the handshake as well, and at once.
						n, isRoots := s.answered.Load(), method == mcp.MethodListRoots
						if bound := int64(test.rounds * test.questions * max(test.calls, 1)); isRoots && (n == 0 || n > bound) || !isRoots && n != test.want {
							t.Errorf("%d questions were answered, want %d", n, test.want)
						}
						if n := most.Load(); n > 4 {
							t.Errorf("%d questions were answered at once", n)
						}
						_ = c.Close()
						synctest.Wait()
					})
				})
			}
		}
	}
}

// A server may ask until a minute after a call: a tool may return before its work is done.
func TestFindingX3LegacyQuestionsAfterACall(t *testing.T) {
	for _, version := range mcp.LegacyVersions() {
		for pause, want := range map[time.Duration]int64{59 * time.Second: 1, 61 * time.Second: 0} {
			synctest.Test(t, func(t *testing.T) {
				s := &inquirer{version: version, method: mcp.MethodCreateMessage}
				o, _, _ := counting(&mcp.ClientOptions{Version: version})
				c := connectTo(t, transport.FromStream(s.connect), o)
				if _, err := c.CallTool(t.Context(), tool("t", "")); err != nil {
					t.Fatal(err)
				}
				<-time.After(pause)
				if _, err := c.ListTools(t.Context(), nil); err == nil { // lists do not count
					t.Error("the server has no list")
				}
				s.ask(1)
				<-time.After(10 * time.Second)
				if n := s.answered.Load(); n != want || n+s.refused.Load() != 1 {
					t.Errorf("%s, after %v: %d answers, %d refusals", version, pause, n, s.refused.Load())
				}
				_ = c.Close()
				synctest.Wait()
			})
		}
	}
}

// A server of an older revision that requires pages before it serves a call gets no new
// questions by that: the call is repeated for one call of the program.
func TestLookPagesDoNotRenewQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := transport.Pipe()
		write := func(message string) { _ = far.Write(context.Background(), []byte(message)) }
		asked := 0
		ask := func() {
			asked++
			write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`, asked))
		}
		go func() {
			call := ""
			for answers := 0; ; {
				data, err := far.Read(context.Background())
				if err != nil {
					return
				}
				switch m, _ := transport.ParseMessage(data); {
				case m.Method == "initialize":
					write(resultFor(m.ID.String(), `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`))
				case m.Method == mcp.MethodCallTool:
					call, answers = m.ID.String(), 0
					ask()
				case m.IsResponse():
					if answers++; answers < 16 {
						ask()
					} else {
						write(`{"jsonrpc":"2.0","id":` + call + `,"error":{"code":-32042,"message":"visit","data":{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://example.com/","message":"Go."}]}}}`)
					}
				}
			}
		}()
		var sampled, visited atomic.Int64
		c := connectTo(t, transport.FromStream(func(context.Context) (transport.Stream, error) { return near, nil }), mcp.LimitQuestions(&mcp.ClientOptions{
			Version: "2025-11-25", Logger: quiet().Logger,
			Sample: func(context.Context, *mcp.Conn, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
				sampled.Add(1)
				return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: "m", Content: mcp.SamplingContent{mcp.Text("yes")}}, nil
			},
			ElicitURL: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				visited.Add(1)
				return &mcp.ElicitResult{Action: mcp.ActionAccept}, nil
			},
		}, 4, 4))
		_, err := c.CallTool(t.Context(), tool("t", ""))
		if err == nil || sampled.Load() != 16 || visited.Load() != 4 {
			t.Errorf("with 4 rounds of 4 questions, a call asked %d, and showed %d pages: %v", sampled.Load(), visited.Load(), err)
		}
		_ = c.Close()
		synctest.Wait()
	})
}

// The questions about a call that a gateway keeps for its caller are bounded in bytes, as those
// are that a client answers.
func TestLookForwardedQuestionsAreBoundedInBytes(t *testing.T) {
	near, far := transport.Pipe()
	write := func(message string) { _ = far.Write(context.Background(), []byte(message)) }
	ask := func(id int) {
		write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"systemPrompt":%q}}`, id, strings.Repeat("x", 3<<20)))
	}
	read, pinged := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		for {
			data, err := far.Read(context.Background())
			if err != nil {
				return
			}
			switch m, _ := transport.ParseMessage(data); {
			case m.Method == "initialize":
				write(resultFor(m.ID.String(), `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`))
			case m.Method == mcp.MethodCallTool:
				ask(0)
			case m.IsResponse() && m.ID.String() == `"ping"`:
				close(pinged)
			}
		}
	}()
	c := connectTo(t, transport.FromStream(func(context.Context) (transport.Stream, error) { return near, nil }), &mcp.ClientOptions{Version: "2025-11-25", Forward: true, Logger: quiet().Logger})
	gate := mcp.NewMux("gate", "v1", quiet())
	gate.Mount("a_", c)
	caller := &mcptest.Client{Options: mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapability{}}}}
	params := map[string]any{"name": "a_t"}
	for round, want := range []int{1, 5} {
		res, err := gate.ServeMCP(t.Context(), caller.NewRequest(mcp.MethodCallTool, params))
		asked, ok := res.(*mcp.InputRequired)
		if err != nil || !ok || len(asked.InputRequests) != want {
			t.Fatalf("round %d: %d questions, want %d; %v", round, len(asked.InputRequests), want, err)
		}
		params["requestState"] = *asked.RequestState
		if round > 0 {
			break
		}
		for id := range 15 { // while the caller answers
			ask(id + 1)
		}
		write(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
		<-pinged
	}
	_ = c.Close()
	<-read
}
