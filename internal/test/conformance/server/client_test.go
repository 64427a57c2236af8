// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tmaxmax/go-sse"

	"github.com/go-psi/psi/mcp"
)

const (
	modern = mcp.LatestVersion
	legacy = "2025-11-25"
)

// client is a minimal client of one era. It writes its messages by hand, so that none of
// psi's client code is involved.
type client struct {
	version, url, session string
	capabilities          string
	sent                  int      // requests
	notified              []string // methods of the received notifications
	stop                  func()   // stops the server and waits until it has stopped
}

// message is any message from the server.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// inBothEras runs a test with a client of each era. Each client has its own server, which
// must shut down cleanly.
func inBothEras(t *testing.T, test func(*testing.T, *client)) {
	for _, version := range []string{legacy, modern} {
		t.Run(version, func(t *testing.T) { test(t, connect(t, version)) })
	}
}

// response is an HTTP response whose body is closed when the test ends.
type response struct {
	status int
	header http.Header
	closes bool // the connection, after this response
	body   io.Reader
}

func connect(t *testing.T, version string) *client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- serve(ctx, listener) }()
	c := &client{version: version, capabilities: `{"sampling":{},"elicitation":{},"roots":{}}`, url: "http://" + listener.Addr().String() + path}
	c.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(c.stop)
	if version == legacy {
		c.handshake(t)
	}
	return c
}

func (c *client) handshake(t *testing.T) {
	t.Helper()
	resp := c.post(t, nil, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+legacy+
		`","capabilities":`+c.capabilities+`,"clientInfo":{"name":"test","version":"0"}}}`)
	c.session = resp.header.Get("Mcp-Session-Id")
	if c.session == "" {
		t.Fatal("initialize opened no session")
	}
	c.answer(t, resp, nil)
	c.post(t, nil, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// call returns the result or error of a request that asks no questions.
func (c *client) call(t *testing.T, method, params string) string {
	t.Helper()
	return c.callAnswering(t, method, params, nil)
}

// callAnswering answers the questions that precede the result. answers maps words in a
// question to its answer.
func (c *client) callAnswering(t *testing.T, method, params string, answers map[string]string) string {
	t.Helper()
	retry := map[string]any{}
	for range 5 {
		m := c.answer(t, c.request(t, method, params, retry), answers)
		var asked struct {
			ResultType    string
			InputRequests map[string]json.RawMessage
			RequestState  string
		}
		if m.Result == nil {
			return string(m.Error)
		}
		if err := json.Unmarshal(m.Result, &asked); err != nil {
			t.Fatal(err)
		}
		if asked.ResultType != "input_required" {
			return string(m.Result)
		}
		responses := map[string]any{}
		for key, question := range asked.InputRequests {
			responses[key] = answerTo(t, string(question), answers)
		}
		retry["inputResponses"], retry["requestState"] = responses, asked.RequestState
	}
	t.Fatal("the server never stopped asking")
	return ""
}

func answerTo(t *testing.T, question string, answers map[string]string) json.RawMessage {
	t.Helper()
	for words, answer := range answers {
		if strings.Contains(question, words) {
			return json.RawMessage(answer)
		}
	}
	t.Fatalf("there is no answer to %s", question)
	return nil
}

// request sends a request with additional params.
func (c *client) request(t *testing.T, method, params string, more map[string]any) *response {
	t.Helper()
	all := map[string]any{}
	if err := json.Unmarshal([]byte(params), &all); err != nil {
		t.Fatal(err)
	}
	maps.Copy(all, more)
	header := http.Header{}
	meta := map[string]any{"progressToken": "p"}
	if c.version == modern {
		meta["io.modelcontextprotocol/protocolVersion"] = modern
		meta["io.modelcontextprotocol/clientCapabilities"] = json.RawMessage(c.capabilities)
		meta["io.modelcontextprotocol/logLevel"] = "info"
		header.Set("Mcp-Method", method)
		for _, key := range []string{"name", "uri"} {
			if name, ok := all[key].(string); ok {
				header.Set("Mcp-Name", name)
			}
		}
	}
	all["_meta"] = meta
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	c.sent++
	return c.post(t, header, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.sent, method, raw))
}

// post sends a message.
func (c *client) post(t *testing.T, header http.Header, body string) *response {
	t.Helper()
	return c.do(t, http.MethodPost, header, strings.NewReader(body))
}

func (c *client) do(t *testing.T, method string, header http.Header, body io.Reader) *response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, c.url, body)
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		req.Header = header
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Protocol-Version", c.version)
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return &response{resp.StatusCode, resp.Header, resp.Close, resp.Body}
}

// answer returns the answer in a response, whether JSON or an event stream. It answers
// legacy requests from the server and records notifications on the way.
func (c *client) answer(t *testing.T, resp *response, answers map[string]string) *message {
	t.Helper()
	if resp.header.Get("Content-Type") != "text/event-stream" {
		body, err := io.ReadAll(resp.body)
		if err != nil {
			t.Fatal(err)
		}
		return parse(t, body)
	}
	for event, err := range sse.Read(resp.body, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Data == "" {
			continue
		}
		m := parse(t, []byte(event.Data))
		switch {
		case m.Method == "":
			return m
		case m.ID == nil:
			c.notified = append(c.notified, m.Method)
		default:
			result := answerTo(t, event.Data, answers)
			c.post(t, nil, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
		}
	}
	t.Fatal("the stream ended without an answer")
	return nil
}

func parse(t *testing.T, data []byte) *message {
	t.Helper()
	m := new(message)
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(m); err != nil {
		t.Fatalf("%v in %q", err, data)
	}
	return m
}
