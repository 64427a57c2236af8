// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// A result that cannot be encoded fails only its own response. The buffer keeps what was
// appended before.
func TestAppendResponseAfterOthers(t *testing.T) {
	req := mcptest.NewRequest("vendor/x", nil)
	bad := &mcp.EmptyResult{ResultBase: mcp.ResultBase{Extra: mcp.Extra{"x": json.RawMessage("{")}}}
	got := string(mcp.AppendResponse([]byte("before "), req, bad, nil))
	if !strings.HasPrefix(got, `before {"jsonrpc"`) || !strings.Contains(got, "-32603") {
		t.Errorf("got %s", got)
	}
}

// In the legacy era, a result with an unknown resultType is an error. It is not sent as
// another type.
func TestUnknownResultTypeInLegacyEra(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Prompt("p", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.EmptyResult{ResultBase: mcp.ResultBase{ResultType: "vendor"}}, nil
	}))
	p := newPeer(t, mux, eras[1])
	p.send(eras[1].request("1", mcp.MethodGetPrompt, `"name":"p"`))
	if got := p.read(); got.Error == nil || !strings.Contains(got.Error.Message, `"vendor"`) {
		t.Errorf("got %s, %v", got.Result, got.Error)
	}
}

// A sampling question with null in its lists is rejected without calling the client's
// function.
func TestNullsInASamplingQuestion(t *testing.T) {
	for _, params := range []string{`{"messages":[null],"maxTokens":1}`, `{"messages":[],"tools":[null],"maxTokens":1}`} {
		called := false
		opts := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapability{Tools: &struct{}{}}}, Sample: func(context.Context, *mcp.Conn, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			called = true
			return &mcp.CreateMessageResult{}, nil
		}}
		asked := `{"resultType":"input_required","inputRequests":{"s":{"method":"sampling/createMessage","params":` + params + `}}}`
		c := connectTo(t, transport.FromStream(newHostile(t, mcp.LatestVersion, newScript([]byte(reply(asked)), 0)).connect), opts)
		if res, err := c.CallTool(t.Context(), tool("t", "")); mcp.CodeOf(err) != mcp.CodeInvalidParams || called {
			t.Errorf("%s: got %+v, %v, called: %t", params, res, err, called)
		}
	}
}

// broken is a result that panics when encoded.
type broken struct {
	mcp.ResultBase
	Value explosive `json:"value"`
}

type explosive struct{}

func (explosive) MarshalJSON() ([]byte, error) { panic("secret") }

// T43: a result that cannot be encoded, for whatever reason, fails only its own request.
func TestResultsThatPanic(t *testing.T) {
	returning := func(res mcp.Result) mcp.Handler {
		return mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return res, nil })
	}
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			mux := hello()
			mux.Tool("nil text", mcp.ToolFunc(func(context.Context, none) (*mcp.TextContent, error) { return nil, nil }, nil))
			mux.Tool("nil image", returning(&mcp.CallToolResult{Content: mcp.Contents{(*mcp.ImageContent)(nil)}}))
			mux.Tool("nothing unknown", returning(&mcp.CallToolResult{Content: mcp.Contents{&mcp.UnknownContent{}, mcp.Text("")}}))
			mux.Handle("vendor/nil", returning((*mcp.CallToolResult)(nil)))
			mux.Handle("vendor/list", returning(&mcp.ListToolsResult{Tools: []*mcp.Tool{nil}}))
			mux.Handle("vendor/panic", returning(&broken{}))
			p := newPeer(t, mux, era)
			for _, request := range []string{
				era.request("1", "tools/call", `"name":"nil text"`), era.request("1", "tools/call", `"name":"nil image"`),
				era.request("1", "tools/call", `"name":"nothing unknown"`),
				era.request("1", "vendor/nil", ""), era.request("1", "vendor/list", ""), era.request("1", "vendor/panic", ""),
			} {
				p.send(request)
				if r := p.read(); r.Error == nil || r.Error.Code != mcp.CodeInternalError {
					t.Errorf("%s was answered with %s, %v", request, r.Result, r.Error)
				}
			}
			p.send(era.request("2", "tools/call", `"name":"hello"`))
			if r := p.read(); r.Error != nil {
				t.Errorf("after that: %v", r.Error)
			}
		})
	}
}

// Raw JSON from a handler is validated before it is sent. Invalid JSON fails its response,
// never corrupts the message around it, and the error names the invalid part.
func TestFindingCH3W3S34RawJSONIsChecked(t *testing.T) {
	injection := json.RawMessage(`{}},"error":{"code":1,"message":"x"},"y":{"z":1`)
	structured := func(raw string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("ok")}, StructuredContent: json.RawMessage(raw)}
	}
	withMeta := func(raw string) *mcp.CallToolResult {
		res := mcp.TextResult("ok")
		res.Meta = mcp.Meta{"a": json.RawMessage(raw)}
		return res
	}
	for name, test := range map[string]struct {
		res  *mcp.CallToolResult
		err  error
		want string // part of the error; "" if the call succeeds
	}{
		"a web page":            {structured("<html>502</html>"), nil, "structuredContent is not JSON"},
		"injected members":      {structured(string(injection)), nil, "structuredContent is not JSON"},
		"an empty value":        {structured(""), nil, "structuredContent is not JSON"},
		"two values":            {structured("{} {}"), nil, "structuredContent is not JSON"},
		"a member twice":        {structured(`{"a":1,"a":2}`), nil, "structuredContent is not JSON"},
		"half a surrogate pair": {structured(`{"a":"\ud83d"}`), nil, "structuredContent is not JSON"},
		"too deep":              {structured(`{"a":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`), nil, "structuredContent is not JSON"},
		"meta":                  {withMeta(string(injection)), nil, `_meta["a"] is not JSON`},
		"a null in meta":        {&mcp.CallToolResult{ResultBase: mcp.ResultBase{Meta: mcp.Meta{"a": nil}}, Content: mcp.Contents{mcp.Text("ok")}}, nil, ""},
		"unknown content":       {&mcp.CallToolResult{Content: mcp.Contents{&mcp.UnknownContent{Raw: json.RawMessage(`{}],"z":[{}`)}}}, nil, "unknown content is not JSON"},
		"content of no object":  {&mcp.CallToolResult{Content: mcp.Contents{&mcp.UnknownContent{Raw: json.RawMessage(`7`)}}}, nil, "unknown content is not a JSON object"},
		"the data of an error":  {nil, &mcp.Error{Code: 7, Message: "upstream", Data: injection}, "the data of an error is not JSON; the error: upstream"},
		"a good one":            {structured(`{"a":1}`), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			mux := mcp.NewMux("m", "v1", quiet())
			mux.Tool("raw", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
				if test.err != nil {
					return nil, test.err
				}
				return test.res, nil
			}))
			mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
				res, err := c.CallTool(t.Context(), tool("raw", ""))
				if test.want == "" && (err != nil || textOf(res) != "ok") {
					t.Errorf("got %+v, %v", res, err)
				}
				if test.want != "" && (mcp.CodeOf(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("got %+v, %v; want %s", res, err, test.want)
				}
			})
		})
	}
}

// A notification whose params are not a JSON object is not sent.
func TestFindingS34Notifications(t *testing.T) {
	var problems []error
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("notify", mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		problems = nil
		for _, raw := range []string{`{}},"id":1,"x":{`, `[]`, ``, `"x"`} {
			problems = append(problems, req.Notify(ctx, "example/note", json.RawMessage(raw)))
		}
		return mcp.TextResult("ok"), req.Notify(ctx, "example/note", json.RawMessage(`{"n":1}`))
	}))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if got := mustCall(t, c, "notify", ""); got != "ok" {
			t.Errorf("got %q", got)
		}
		for _, err := range problems {
			if err == nil || errors.Is(err, mcp.ErrNotDelivered) || !strings.Contains(err.Error(), "params of example/note") {
				t.Errorf("got %v", err)
			}
		}
	})
}

// Invalid UTF-8, for example in a database row, does not fail a result: it is replaced
// everywhere in what a handler returns. In a client's request, it is an error, so that the
// client never asks for something else than intended.
func TestInvalidTextInResults(t *testing.T) {
	const bad, want = "caf\xe9", "caf\ufffd"
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("text", mcp.ToolFunc(func(context.Context, none) (string, error) { return bad, nil }, nil))
	mux.Tool("row", mcp.ToolFunc(func(context.Context, none) (map[string]string, error) { return map[string]string{"name": bad}, nil }, nil))
	mux.Tool("annotated", mcp.ToolFunc(func(context.Context, none) (mcp.Content, error) {
		return &mcp.TextContent{Text: bad, Annotations: &mcp.Annotations{Priority: new(0.5)}}, nil
	}, nil))
	mux.Tool("embedded", mcp.ToolFunc(func(context.Context, none) (mcp.Content, error) {
		return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "row:1", Text: bad}}, nil
	}, nil))
	mux.Tool("error", mcp.ToolFunc(func(context.Context, none) (string, error) {
		return "", mcp.Errorf(mcp.CodeInvalidParams, "no").WithData(map[string]string{"name": bad})
	}, nil))
	mux.Resource("row:{id}", mcp.ResourceFunc(func(context.Context, map[string]string) (string, error) { return bad, nil }, nil))
	mux.Prompt("about", mcp.PromptFunc(func(context.Context, none) (*mcp.PromptMessage, error) {
		return &mcp.PromptMessage{Role: mcp.RoleUser, Content: &mcp.TextContent{Text: bad, Meta: mcp.Meta{"k": []byte("1")}}}, nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		got := map[string]any{}
		for _, name := range []string{"text", "row", "annotated", "embedded"} {
			res, err := c.CallTool(t.Context(), tool(name, ""))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			got[name] = res
		}
		_, err := c.CallTool(t.Context(), tool("error", ""))
		if e, ok := errors.AsType[*mcp.Error](err); ok && mcp.CodeOf(err) == mcp.CodeInvalidParams {
			got["error"] = e
		}
		if res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "row:1"}); err == nil {
			got["resource"] = res
		}
		if res, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "about"}); err == nil {
			got["prompt"] = res
		}
		for _, what := range []string{"text", "row", "annotated", "embedded", "error", "resource", "prompt"} {
			if text, err := json.Marshal(got[what]); err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%s: got %s, %v", what, text, err)
			}
		}
		_, err = c.CallTool(t.Context(), &mcp.CallToolParams{Name: bad})
		if err == nil || !strings.Contains(err.Error(), "invalid UTF-8") {
			t.Errorf("a name that is not valid UTF-8: %v", err)
		}
	})
}

// Codes that only older revisions have do not reach a peer of the newest one, which handlers
// written for other packages return.
func TestFindingY10CodesOfOlderRevisions(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	for name, code := range map[string]int{"missing": -32002, "visit": -32042, "own": -31000} {
		mux.Tool(name, mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			return nil, mcp.Errorf(code, "no").WithData("data")
		}))
	}
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		want := map[string]int{"missing": -32602, "visit": -32603, "own": -31000}
		if c.Version() != mcp.LatestVersion {
			want["visit"] = -32042
		}
		for name, code := range want {
			_, err := c.CallTool(t.Context(), tool(name, ""))
			if e, ok := errors.AsType[*mcp.Error](err); !ok || e.Code != code || e.Message != "no" || string(e.Data) != `"data"` {
				t.Errorf("%s: got %v, want the code %d", name, err, code)
			}
		}
	})
}

// A message has every member of a result and of its blocks, whichever fields are set. Some of
// them have encoders that name each field.
func TestResultsAreSentWhole(t *testing.T) {
	for _, zero := range protocolTypes {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(zero)) {
			member, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if member == "" || member == "-" {
				continue
			}
			v := reflect.New(reflect.TypeOf(zero))
			fill(v.Elem().FieldByIndex(f.Index))
			res, isResult := reflect.TypeAssert[mcp.Result](v)
			if block, ok := reflect.TypeAssert[mcp.Content](v); ok {
				res = &mcp.CallToolResult{Content: mcp.Contents{block}}
			} else if !isResult {
				continue
			}
			sent := mcp.AppendResponse(nil, mcptest.NewRequest("vendor/x", nil), res, nil)
			if !strings.Contains(string(sent), `"`+member+`":`) {
				t.Errorf("%T.%s is not sent: %s", zero, f.Name, sent)
			}
		}
	}
}
