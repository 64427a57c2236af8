// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/test/golden"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// oddServer is a server with configurable responses. Its fields change between calls.
type oddServer struct {
	results map[string]string // by method
	next    string            // the next result, if not ""
	before  string            // a message sent before the next result, if not ""; "$id" is replaced by the ID of the request
	heard   []string          // messages from the client since the last change
}

func (s *oddServer) connect(context.Context) (transport.Stream, error) {
	client, server := transport.Pipe()
	go func() {
		defer server.Close()
		var waiting *transport.Message // for the answer to a question
		for {
			data, err := server.Read(context.Background())
			if err != nil {
				return
			}
			m, err := transport.ParseMessage(data)
			if err != nil {
				continue
			}
			if isHandshake := m.Method == mcp.MethodDiscover || m.Method == "initialize"; !isHandshake {
				s.heard = append(s.heard, string(data))
				if s.before != "" && m.IsRequest() {
					before := strings.ReplaceAll(s.before, `"$id"`, m.ID.String())
					s.before = ""
					_ = server.Write(context.Background(), []byte(before))
					if methodIn(before) != "" && strings.Contains(before, `"id":"q"`) {
						waiting = &m
						continue
					}
				}
			}
			if !m.IsRequest() && waiting != nil {
				m, waiting = *waiting, nil
			}
			if m.IsRequest() {
				result := cmp.Or(s.next, s.results[m.Method], "{}")
				s.next = ""
				_ = server.Write(context.Background(), []byte(resultFor(m.ID.String(), result)))
			}
		}
	}()
	return client, nil
}

// resultsOf contains a result for each method with every member, as in the newest legacy
// revision. The modern era adds more.
var resultsOf = map[string]string{
	mcp.MethodListTools:             `{"tools":[{"name":"a","title":"A","description":"d","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"title":"t","readOnlyHint":true},"icons":[{"src":"https://i","mimeType":"image/png","sizes":["1x1"]}],"_meta":{"k":1}}],"nextCursor":"c"}`,
	mcp.MethodCallTool:              `{"content":[{"type":"text","text":"t","annotations":{"audience":["user"],"priority":0.5,"lastModified":"2026-01-02T03:04:05Z"}},{"type":"image","data":"AQ==","mimeType":"image/png"},{"type":"audio","data":"AQ==","mimeType":"audio/wav"},{"type":"resource_link","uri":"test://a","name":"a"},{"type":"resource","resource":{"uri":"test://a","text":"t"}}],"structuredContent":{"a":1},"isError":true}`,
	mcp.MethodListPrompts:           `{"prompts":[{"name":"p","arguments":[{"name":"a","required":true}]}]}`,
	mcp.MethodGetPrompt:             `{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"t"}}]}`,
	mcp.MethodListResources:         `{"resources":[{"uri":"test://a","name":"a","mimeType":"text/plain","size":3}]}`,
	mcp.MethodListResourceTemplates: `{"resourceTemplates":[{"uriTemplate":"test://{a}","name":"a"}]}`,
	mcp.MethodReadResource:          `{"contents":[{"uri":"test://a","mimeType":"text/plain","text":"t"},{"uri":"test://b","blob":"AQ=="}]}`,
	mcp.MethodComplete:              `{"completion":{"values":["a"],"total":1,"hasMore":true}}`,
}

var paramsFor = map[string]string{
	mcp.MethodCallTool: `{"name":"a"}`, mcp.MethodGetPrompt: `{"name":"p"}`, mcp.MethodReadResource: `{"uri":"test://a"}`,
	mcp.MethodComplete: `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}`,
}

const (
	modernDiscovery = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true},"completions":{},"logging":{},"experimental":{"x":{}},"extensions":{"a/b":{}}},"instructions":"i","ttlMs":5,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}`
	legacyOpening   = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true},"completions":{},"logging":{},"experimental":{"x":{}}},"serverInfo":{"name":"s","title":"S","version":"1"},"instructions":"i"}`
)

// modernResult converts a result to the modern era.
func modernResult(method, result string) string {
	more := `"resultType":"complete",`
	if method != mcp.MethodCallTool && method != mcp.MethodGetPrompt && method != mcp.MethodComplete {
		more += `"ttlMs":7,"cacheScope":"private",`
	}
	return `{` + more + strings.TrimPrefix(result, "{")
}

// questions contains the questions of a server, by name.
var questions = map[string]string{
	"form":   `{"method":"elicitation/create","params":{"mode":"form","message":"Sure?","requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean","title":"OK","default":true},"e":{"type":"string","enum":["a"]}},"required":["ok"]}}}`,
	"url":    `{"method":"elicitation/create","params":{"mode":"url","message":"Go","url":"https://a.example","elicitationId":"1"}}`,
	"sample": `{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":9,"systemPrompt":"s","temperature":0.5,"stopSequences":["x"],"includeContext":"none","modelPreferences":{"hints":[{"name":"m"}],"costPriority":0.5}}}`,
	"roots":  `{"method":"roots/list"}`,
}

// notes contains notifications of a server.
var notes = []string{
	`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"l","data":{"a":1}}}`,
	`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"$id","progress":0.5,"total":1,"message":"half"}}`,
	`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
	`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://a"}}`,
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"$id","reason":"r"}}`,
	`{"jsonrpc":"2.0","method":"notifications/vendor","params":{"a":1}}`,
}

// heardBy returns the options of a client that records what it receives.
func heardBy(version string, heard *[]string) *mcp.ClientOptions {
	tell := func(what string, v any) {
		*heard = append(*heard, what+" "+resultOf(v, nil))
	}
	return &mcp.ClientOptions{
		Version: version, Logger: slog.New(slog.DiscardHandler), LogLevel: mcp.LoggingLevelDebug, Roots: []mcp.Root{{URI: "file:///home"}}, Capabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapability{Tools: &struct{}{}}},
		Elicit: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			tell("elicit", p)
			return &mcp.ElicitResult{Action: "accept", Content: json.RawMessage(`{"ok":false}`)}, nil
		},
		ElicitURL: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			tell("elicit", p)
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
		Sample: func(_ context.Context, _ *mcp.Conn, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			tell("sample", p)
			return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Content: mcp.SamplingContent{mcp.Text("hi")}, Model: "m"}, nil
		},
		Log:          func(_ context.Context, _ *mcp.Conn, p *mcp.LoggingMessageParams) { tell("log", p) },
		Notification: func(_ context.Context, _ *mcp.Conn, note *mcp.Request) { tell(note.Method, note.Params()) },
	}
}

// resultOf formats the outcome of a call in one line.
func resultOf(res any, err error) string {
	if e, ok := errors.AsType[*mcp.Error](err); ok { // its cause is not sent
		return fmt.Sprintf("error %d: %s", e.Code, strings.ReplaceAll(e.Message, "\n", " "))
	} else if err != nil {
		return "error: " + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	text, err := json.Marshal(res)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// The golden files record how a client handles the responses, questions and notifications
// of a server, with one value at a time missing or changed.
func TestClientTranscripts(t *testing.T) {
	for _, version := range []string{mcp.LegacyVersions()[0], mcp.LatestVersion} {
		t.Run(version, func(t *testing.T) {
			var text bytes.Buffer
			playHandshake(t, &text, version)
			playResults(t, &text, version)
			playQuestions(t, &text, version)
			playNotes(t, &text, version)
			golden.Check(t, "transcript-client-"+version, text.String())
		})
	}
}

// handshakeOf returns the method and result of the handshake of a version.
func handshakeOf(version string) (method, result string) {
	if isModern(version) {
		return mcp.MethodDiscover, modernDiscovery
	}
	return "initialize", legacyOpening
}

func playHandshake(t *testing.T, text *bytes.Buffer, version string) {
	method, result := handshakeOf(version)
	open := func(result string) (got string) {
		synctest.Test(t, func(t *testing.T) {
			s := &oddServer{results: map[string]string{method: result}}
			c, err := mcp.NewClient("c", "v1", heardBy(version, new([]string))).Connect(t.Context(), transport.FromStream(s.connect))
			if err != nil {
				got = resultOf(nil, err)
				return
			}
			got = resultOf(c.Server(), nil)
			c.Close()
		})
		return got
	}
	golden.PlayVariants(t, text, method, result, open)
}

// withOddServer calls fn with a connection to an oddServer and the messages recorded by its
// client.
func withOddServer(t *testing.T, version string, fn func(t *testing.T, c *mcp.Conn, s *oddServer, heard *[]string)) {
	synctest.Test(t, func(t *testing.T) {
		method, result := handshakeOf(version)
		s := &oddServer{results: maps.Clone(resultsOf)}
		s.results[method] = result
		if isModern(version) {
			for method := range resultsOf {
				s.results[method] = modernResult(method, s.results[method])
			}
		}
		var heard []string
		c := connectTo(t, transport.FromStream(s.connect), heardBy(version, &heard))
		fn(t, c, s, &heard)
		c.Close()
	})
}

func usualRequest(method string) *mcp.Request {
	if params := paramsFor[method]; params != "" {
		return mcptest.NewRequest(method, json.RawMessage(params))
	}
	return mcptest.NewRequest(method, nil)
}

func playResults(t *testing.T, text *bytes.Buffer, version string) {
	for _, method := range methodsOf(coreSamples) {
		if resultsOf[method] == "" {
			continue
		}
		withOddServer(t, version, func(t *testing.T, c *mcp.Conn, s *oddServer, _ *[]string) {
			golden.PlayVariants(t, text, method, s.results[method], func(result string) string {
				s.results[method] = result
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				return resultOf(c.ServeMCP(ctx, usualRequest(method)))
			})
		})
	}
}

// playQuestions asks questions during a tool call: in the result in the modern era, in
// separate requests in the legacy era.
func playQuestions(t *testing.T, text *bytes.Buffer, version string) {
	for _, name := range []string{"form", "url", "sample", "roots"} {
		withOddServer(t, version, func(t *testing.T, c *mcp.Conn, s *oddServer, heard *[]string) {
			golden.PlayVariants(t, text, name, questions[name], func(question string) string {
				*heard, s.heard = nil, nil
				if isModern(version) {
					s.next = `{"resultType":"input_required","requestState":"s","inputRequests":{"q":` + question + `}}`
				} else {
					s.before = `{"jsonrpc":"2.0","id":"q",` + strings.TrimPrefix(question, "{")
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := c.ServeMCP(ctx, usualRequest(mcp.MethodCallTool))
				synctest.Wait()
				answer := ""
				if len(s.heard) > 1 {
					answer = answerIn(s.heard[1])
				}
				return strings.Join(append(*heard, answer, resultOf("done", err)), "\n  ")
			})
		})
	}
}

// answerIn returns the answer to a question in a message from a client.
func answerIn(message string) string {
	var m struct {
		Params struct {
			InputResponses json.RawMessage `json:"inputResponses"`
			RequestState   json.RawMessage `json:"requestState"`
		} `json:"params"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal([]byte(message), &m); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("answer %s %s %s %s", []byte(m.Params.InputResponses), []byte(m.Params.RequestState), []byte(m.Result), []byte(m.Error))
}

// playNotes sends notifications during a tool call.
func playNotes(t *testing.T, text *bytes.Buffer, version string) {
	for _, note := range notes {
		withOddServer(t, version, func(t *testing.T, c *mcp.Conn, s *oddServer, heard *[]string) {
			golden.PlayVariants(t, text, "note", note, func(note string) string {
				*heard, s.before = nil, note
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				ctx = mcp.WithProgress(ctx, func(p *mcp.ProgressParams) {
					*heard = append(*heard, "progress "+resultOf(p, nil))
				})
				_, err := c.ServeMCP(ctx, usualRequest(mcp.MethodCallTool))
				synctest.Wait()
				return strings.Join(append(*heard, resultOf("done", err)), "\n  ")
			})
		})
	}
}
