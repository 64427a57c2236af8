// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// modernRequest is a request of a client with these capabilities.
func modernRequest(id, method, members, capabilities string) string {
	meta := strings.Replace(eras[0].meta, `{"elicitation":{}}`, capabilities, 1)
	return wireEra{meta: meta}.request(id, method, members)
}

// A handler that asks by hand can ask only what the client supports, and the error names
// what is missing.
func TestMissingCapabilities(t *testing.T) {
	elicit, sample, roots := mcp.MethodElicit, mcp.MethodCreateMessage, mcp.MethodListRoots
	for i, c := range []struct{ method, params, has, missing string }{
		{elicit, `{}`, `{}`, `{"elicitation":{"form":{}}}`},
		{elicit, `{}`, `{"elicitation":{}}`, ""},
		{elicit, `{"mode":"form"}`, `{"elicitation":{"form":{}}}`, ""},
		{elicit, `{"mode":"form"}`, `{"elicitation":{"url":{}}}`, `{"elicitation":{"form":{}}}`},
		{elicit, `{"mode":"url"}`, `{"elicitation":{"form":{}}}`, `{"elicitation":{"url":{}}}`},
		{elicit, `{"mode":"url"}`, `{"elicitation":{"url":{}}}`, ""},
		{sample, `{}`, `{}`, `{"sampling":{}}`},
		{sample, `{}`, `{"sampling":{}}`, ""},
		{sample, `{"tools":[]}`, `{"sampling":{}}`, `{"sampling":{"tools":{}}}`},
		{sample, `{"toolChoice":{}}`, `{"sampling":{}}`, `{"sampling":{"tools":{}}}`},
		{sample, `{"tools":[],"toolChoice":{}}`, `{"sampling":{"tools":{}}}`, ""},
		{sample, `{"includeContext":"thisServer"}`, `{"sampling":{}}`, `{"sampling":{"context":{}}}`},
		{sample, `{"includeContext":"thisServer"}`, `{"sampling":{"context":{}}}`, ""},
		{sample, `{"includeContext":"none"}`, `{"sampling":{}}`, ""},
		{sample, `{"tools":[],"includeContext":"allServers"}`, `{"sampling":{"tools":{}}}`, `{"sampling":{"context":{},"tools":{}}}`},
		{sample, `{"tools":[]}`, `{}`, `{"sampling":{"tools":{}}}`},
		{roots, `{}`, `{}`, `{"roots":{}}`},
		{roots, `{}`, `{"roots":{}}`, ""},
	} {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("ask", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			return &mcp.InputRequired{InputRequests: map[string]mcp.InputRequest{"k": {Method: c.method, Params: json.RawMessage(c.params)}}}, nil
		}))
		p := newPeer(t, mux, eras[0])
		p.send(modernRequest(fmt.Sprint(i), mcp.MethodCallTool, `"name":"ask"`, c.has))
		got := p.read()
		switch {
		case c.missing == "":
			if !strings.Contains(string(got.Result), `"inputRequests":{"k":{"method":"`+c.method+`"`) {
				t.Errorf("%s %s of %s: got %s, %v", c.method, c.params, c.has, got.Result, got.Error)
			}
		case got.Error == nil || got.Error.Code != mcp.CodeMissingCapability || string(got.Error.Data) != `{"requiredCapabilities":`+c.missing+`}`:
			t.Errorf("%s %s of %s: got %s, %v %s", c.method, c.params, c.has, got.Result, got.Error, got.Error.Data)
		}
	}
}

// What a handler asks by hand is checked before it is sent.
func TestQuestionsByHand(t *testing.T) {
	state := "s"
	for want, asked := range map[string]*mcp.InputRequired{
		"asked for input without a question or a state": {},
		`a client cannot be asked "tools/list"`:         {InputRequests: map[string]mcp.InputRequest{"k": {Method: mcp.MethodListTools}}},
		`the params of the question "k"`:                {InputRequests: map[string]mcp.InputRequest{"k": {Method: mcp.MethodElicit, Params: json.RawMessage(`[]`)}}},
		`the params of the question "j"`:                {InputRequests: map[string]mcp.InputRequest{"j": {Method: mcp.MethodElicit, Params: json.RawMessage(`{"a":}`)}}},
		"":                                              {RequestState: &state},
	} {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("ask", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return asked, nil }))
		p := newPeer(t, mux, eras[0])
		p.send(eras[0].request("1", mcp.MethodCallTool, `"name":"ask"`))
		got := p.read()
		if want == "" && got.Error != nil || want != "" && (got.Error == nil || got.Error.Code != mcp.CodeInternalError || !strings.Contains(got.Error.Message, want)) {
			t.Errorf("%q: got %s, %v", want, got.Result, got.Error)
		}
	}
}

// An answer that is not one fails the call with an error that names the question.
func TestAnswersThatAreNone(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("elicit", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Elicit[namedField](ctx, "k", "?")
		return "", err
	}, nil))
	mux.Tool("url", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		return "", mcp.ElicitURL(ctx, "k", "?", "https://example.com/")
	}, nil))
	mux.Tool("sample", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Sample(ctx, "k", &mcp.CreateMessageParams{MaxTokens: 1})
		return "", err
	}, nil))
	mux.Tool("roots", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Roots(ctx, "k")
		return "", err
	}, nil))
	const all = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`
	for name, answers := range map[string][]string{
		"elicit": {`5`, `{"action":5}`, `{"action":"maybe"}`, `{"action":"accept","content":{"name":5}}`, `{"action":"accept","content":[]}`},
		"url":    {`[]`, `{"action":[]}`, `{"action":""}`},
		"sample": {`5`, `{"role":5}`, `{"role":"assistant","content":5,"model":"m"}`},
		"roots":  {`5`, `{"roots":5}`, `{"roots":[5]}`},
	} {
		for _, answer := range answers {
			p := newPeer(t, mux, eras[0])
			p.send(modernRequest("1", mcp.MethodCallTool, `"name":"`+name+`"`, all))
			var asked struct{ RequestState string }
			if err := json.Unmarshal(p.read().Result, &asked); err != nil || asked.RequestState == "" {
				t.Fatalf("%s: it did not ask: %v", name, err)
			}
			p.send(modernRequest("2", mcp.MethodCallTool, fmt.Sprintf(`"name":%q,"inputResponses":{"k":%s},"requestState":%q`, name, answer, asked.RequestState), all))
			if got := p.read(); got.Error == nil || got.Error.Code != mcp.CodeInvalidParams || !strings.Contains(got.Error.Message, `"k"`) {
				t.Errorf("%s, %s: got %s, %v", name, answer, got.Result, got.Error)
			}
		}
	}
}

// An answer of an older client that cannot be read fails the call that waits for it, at
// once.
func TestUnreadableAnswer(t *testing.T) {
	p := newPeer(t, welcoming(), eras[1])
	p.send(eras[1].request("1", mcp.MethodCallTool, `"name":"greet"`))
	asked := p.receive()
	var question struct{ ID string }
	if err := json.Unmarshal([]byte(asked), &question); err != nil || question.ID == "" {
		t.Fatalf("got %s, %v", asked, err)
	}
	p.send(`{"jsonrpc":"2.0","id":"` + question.ID + `","result":{"action":"accept","content":{"name":}}}`)
	if got := p.receive(); !strings.Contains(got, `"id":1`) || !strings.Contains(got, "could not be read") {
		t.Errorf("got %s", got)
	}
}

// The error of a legacy server for a resource that does not exist has its URI, as that of
// a modern one.
func TestMissingResourceOfLegacyServer(t *testing.T) {
	for data, want := range map[string]string{"": `{"uri":"test://x"}`, `,"data":{"a":1}`: `{"a":1}`} {
		c := connectTo(t, fakeServer(func(method, id string) (string, bool) {
			switch {
			case method == "initialize":
				return resultFor(id, `{"protocolVersion":"2025-11-25","capabilities":{"resources":{}},"serverInfo":{"name":"s","version":"1"}}`), true
			case id == "":
				return "", true
			}
			return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32002,"message":"no"` + data + `}}`, true
		}), &mcp.ClientOptions{Version: "2025-11-25"})
		_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://x"})
		wantData(t, err, want)
		if data == "" {
			want = ""
		}
		_, err = c.CallTool(t.Context(), tool("t", ""))
		wantData(t, err, want)
	}
}

func wantData(t *testing.T, err error, want string) {
	t.Helper()
	e, ok := err.(*mcp.Error) //nolint:errorlint // as it is returned
	if !ok || e.Code != mcp.CodeInvalidParams || string(e.Data) != want {
		t.Errorf("got %v with %s, want %s", err, e.Data, want)
	}
}
