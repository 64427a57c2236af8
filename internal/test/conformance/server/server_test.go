// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tmaxmax/go-sse"
)

// The suite itself checks the fixtures; see run.sh. These tests check what can be checked
// without it.

func TestAnswers(t *testing.T) {
	tests := []struct{ name, method, params, want string }{
		{"text", "tools/call", `{"name":"test_simple_text"}`, `"text":"This is a simple text response for testing."`},
		{"image", "tools/call", `{"name":"test_image_content","arguments":{}}`, `"type":"image"`},
		{"audio", "tools/call", `{"name":"test_audio_content","arguments":{}}`, `"mimeType":"audio/wav"`},
		{"resource block", "tools/call", `{"name":"test_embedded_resource","arguments":{}}`, `"uri":"test://embedded-resource"`},
		{"failure", "tools/call", `{"name":"test_error_handling","arguments":{}}`, `"isError":true`},
		{"bad arguments", "tools/call", `{"name":"json_schema_2020_12_tool","arguments":{}}`, `"isError":true`},
		{"good arguments", "tools/call", `{"name":"json_schema_2020_12_tool","arguments":{"name":"Ann","contactMethod":"phone","phone":"1"}}`, `Ann can be called: 1.`},
		{"schema", "tools/list", `{}`, `"$anchor":"addressDef"`},
		{"template", "resources/read", `{"uri":"test://template/123/data"}`, `\"id\":\"123\"`},
		{"binary", "resources/read", `{"uri":"test://static-binary"}`, `"blob":"`},
		{"unknown resource", "resources/read", `{"uri":"test://nowhere"}`, `"data":{"uri":"test://nowhere"}`},
		{"prompt", "prompts/get", `{"name":"test_prompt_with_arguments","arguments":{"arg1":"one","arg2":"two"}}`, `arg1=\"one\", arg2=\"two\"`},
		{"completion", "completion/complete", `{"ref":{"type":"ref/prompt","name":"test_prompt_with_arguments"},"argument":{"name":"arg1","value":"test"}}`, `["testValue1","testOther1"]`},
	}
	inBothEras(t, func(t *testing.T, c *client) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				if got := c.call(t, test.method, test.params); !strings.Contains(got, test.want) {
					t.Errorf("got %s, want it to contain %s", got, test.want)
				}
			})
		}
	})
}

func TestQuestions(t *testing.T) {
	tests := []struct {
		name, params string
		answers      map[string]string // by words in the question
		want         string
	}{
		{
			"user", `{"name":"test_input_required_result_elicitation","arguments":{}}`,
			map[string]string{"elicitation/create": `{"action":"accept","content":{"name":"Ann"}}`},
			"Hello, Ann!",
		},
		{
			"refusal", `{"name":"test_elicitation","arguments":{"message":"Who are you?"}}`,
			map[string]string{"elicitation/create": `{"action":"decline"}`},
			"The user declined to answer.",
		},
		{
			"model", `{"name":"test_sampling","arguments":{"prompt":"Hello?"}}`,
			map[string]string{"sampling/createMessage": `{"role":"assistant","model":"m","content":{"type":"text","text":"Hi."}}`},
			"LLM response: Hi.",
		},
		{
			"all at once", `{"name":"test_input_required_result_multiple_inputs","arguments":{}}`,
			map[string]string{
				"elicitation/create":     `{"action":"accept","content":{"name":"Ann"}}`,
				"sampling/createMessage": `{"role":"assistant","model":"m","content":{"type":"text","text":"Hi."}}`,
				"roots/list":             `{"roots":[{"uri":"file:///a"}]}`,
			},
			`Ann says \"Hi.\" in 1 places.`,
		},
		{
			"one after the other", `{"name":"test_input_required_result_multi_round","arguments":{}}`,
			map[string]string{
				"What is your name?": `{"action":"accept","content":{"name":"Ann"}}`,
				"do you like, Ann?":  `{"action":"accept","content":{"color":"green"}}`,
			},
			"Ann likes green.",
		},
	}
	inBothEras(t, func(t *testing.T, c *client) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				got := c.callAnswering(t, "tools/call", test.params, test.answers)
				if !strings.Contains(got, test.want) {
					t.Errorf("got %s, want it to contain %s", got, test.want)
				}
			})
		}
	})
}

// TestNotifications checks the notifications sent before the answer.
func TestNotifications(t *testing.T) {
	tests := []struct{ tool, want string }{
		{"test_tool_with_logging", "notifications/message"},
		{"test_tool_with_progress", "notifications/progress"},
	}
	inBothEras(t, func(t *testing.T, c *client) {
		for _, test := range tests {
			c.notified = nil
			c.call(t, "tools/call", `{"name":"`+test.tool+`","arguments":{}}`)
			if want := slices.Repeat([]string{test.want}, 3); !slices.Equal(c.notified, want) {
				t.Errorf("%s: got %q, want %q", test.tool, c.notified, want)
			}
		}
	})
}

// TestChanges checks that every trigger changes the list.
func TestChanges(t *testing.T) {
	tests := []struct{ trigger, list string }{
		{"test_trigger_tool_change", "tools/list"},
		{"test_trigger_prompt_change", "prompts/list"},
	}
	inBothEras(t, func(t *testing.T, c *client) {
		for _, test := range tests {
			for _, want := range []bool{true, false, true} {
				c.call(t, "tools/call", `{"name":"`+test.trigger+`","arguments":{}}`)
				if got := strings.Contains(c.call(t, test.list, `{}`), `"transient"`); got != want {
					t.Errorf("after %s: in %s is %t, want %t", test.trigger, test.list, got, want)
				}
			}
		}
	})
}

func TestTamperedState(t *testing.T) {
	c := connect(t, modern)
	const params = `{"name":"test_input_required_result_tampered_state","arguments":{}}`
	asked := c.answer(t, c.request(t, "tools/call", params, nil), nil)
	if !strings.Contains(string(asked.Result), `"requestState"`) {
		t.Fatalf("got %s", asked.Result)
	}
	for _, state := range []string{"", "x", strings.Repeat("A", 100)} {
		m := c.answer(t, c.request(t, "tools/call", params, map[string]any{
			"inputResponses": map[string]any{"confirm": map[string]any{"action": "accept", "content": map[string]any{"ok": true}}},
			"requestState":   state,
		}), nil)
		if !strings.Contains(string(m.Error), `"code":-32602`) {
			t.Errorf("state %q: got %s %s, want an error", state, m.Result, m.Error)
		}
	}
}

func TestCapabilities(t *testing.T) {
	c := connect(t, modern)
	c.capabilities = `{"elicitation":{}}`
	got := c.call(t, "tools/call", `{"name":"test_missing_capability","arguments":{}}`)
	if want := `"data":{"requiredCapabilities":{"sampling":{}}}`; !strings.Contains(got, want) {
		t.Errorf("got %s, want it to contain %s", got, want)
	}
}

// TestReconnection resumes a call on a second connection.
func TestReconnection(t *testing.T) {
	c := connect(t, legacy)
	resp := c.request(t, "tools/call", `{"name":"test_reconnection","arguments":{}}`, nil)
	if !resp.closes {
		t.Error("the client does not know that the connection is of no use any more")
	}
	last := ""
	for event, err := range sse.Read(resp.body, nil) {
		if err != nil || event.Data != "" {
			t.Fatalf("got %+v, %v on the first connection", event, err)
		}
		last = event.LastEventID
	}
	again := c.do(t, http.MethodGet, http.Header{"Last-Event-Id": {last}}, http.NoBody)
	if m := c.answer(t, again, nil); !strings.Contains(string(m.Result), "The answer came") {
		t.Errorf("got %s %s", m.Result, m.Error)
	}
}

// TestEnd checks that the server shuts down gracefully while streams are open, and ends the
// streams.
func TestEnd(t *testing.T) {
	inBothEras(t, func(t *testing.T, c *client) {
		var resp *response
		if c.version == modern {
			resp = c.request(t, "subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`, nil)
		} else {
			resp = c.do(t, http.MethodGet, nil, http.NoBody)
		}
		if resp.status != http.StatusOK {
			t.Fatalf("there is no stream: %d", resp.status)
		}
		c.stop()
		if _, err := io.Copy(io.Discard, resp.body); err != nil {
			t.Errorf("the stream broke off: %v", err)
		}
	})
}
