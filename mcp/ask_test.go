// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
)

type yes struct {
	OK bool `json:"ok"`
}

type seat struct {
	Row  int    `json:"row" jsonschema:"minimum=1,maximum=40"`
	Side string `json:"side" jsonschema:"enum=window,enum=aisle"`
}

// user returns a client that accepts every form with the content listed under its message.
func user(contents map[string]any) *mcptest.Client {
	elicit := func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		content, ok := contents[p.Message]
		switch {
		case !ok:
			return nil, fmt.Errorf("nobody expected %q", p.Message)
		case content == mcp.ActionDecline || content == mcp.ActionCancel:
			return &mcp.ElicitResult{Action: content.(string)}, nil
		case p.Mode == "url":
			return &mcp.ElicitResult{Action: mcp.ActionAccept}, nil
		}
		return mcptest.Accept(content), nil
	}
	return &mcptest.Client{Options: mcp.ClientOptions{
		Elicit:    elicit,
		ElicitURL: elicit,
		Sample: func(_ context.Context, _ *mcp.Conn, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			said := p.Messages[0].Content[0].(*mcp.TextContent).Text
			return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Content: mcp.SamplingContent{mcp.Text("re: " + said)}, Model: "m"}, nil
		},
		Roots: []mcp.Root{{URI: "file:///home", Name: "home"}},
	}}
}

// A handler that asks twice has the same outcome in every era and over every transport, and
// the function passed to Once runs only once.
func TestAskTwice(t *testing.T) {
	var quoted, booked atomic.Int32
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("book", mcp.ToolFunc(func(ctx context.Context, in struct {
		City string `json:"city"`
	}) (string, error) {
		quote, err := mcp.Once(ctx, "quote", func(context.Context) (int32, error) { return quoted.Add(1), nil })
		if err != nil {
			return "", err
		}
		where, err := mcp.Elicit[seat](ctx, "seat", "Which seat?")
		if err != nil {
			return "", err
		}
		sure, err := mcp.Elicit[yes](ctx, "sure", fmt.Sprintf("Row %d?", where.Row))
		if err != nil {
			return "", fmt.Errorf("confirming: %w", err) // wrapped is fine
		}
		booked.Add(1)
		return fmt.Sprintf("%s %d %s %t, quote %d", in.City, where.Row, where.Side, sure.OK, quote), nil
	}, nil))
	u := user(map[string]any{"Which seat?": seat{12, "window"}, "Row 12?": yes{true}})
	u.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		quoted.Store(0)
		booked.Store(0)
		if got := mustCall(t, c, "book", `{"city":"Oslo"}`); got != "Oslo 12 window true, quote 1" {
			t.Errorf("got %q", got)
		}
		if quoted.Load() != 1 || booked.Load() != 1 {
			t.Errorf("quoted %d times, booked %d times", quoted.Load(), booked.Load())
		}
	})
}

// Several questions asked together take one round.
func TestAskSeveral(t *testing.T) {
	var runs atomic.Int32
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		runs.Add(1)
		var (
			form    yes
			given   json.RawMessage
			sampled mcp.CreateMessageResult
			roots   []mcp.Root
		)
		err := mcp.Ask(ctx,
			mcp.ElicitQuestion("form", "Form?", &form),
			mcp.ElicitSchemaQuestion("given", "Given?", json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`), &given),
			mcp.ElicitURLQuestion("link", "Go there?", "https://example.com/"),
			mcp.SampleQuestion("sample", &mcp.CreateMessageParams{MaxTokens: 9, Messages: []*mcp.SamplingMessage{
				{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text("hello")}},
			}}, &sampled),
			mcp.RootsQuestion("roots", &roots),
		)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%t %s %s %s", form.OK, given, sampled.Content[0].(*mcp.TextContent).Text, roots[0].URI), nil
	}, nil))
	u := user(map[string]any{"Form?": yes{true}, "Given?": map[string]int{"n": 5}, "Go there?": true})
	u.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		runs.Store(0)
		if got := mustCall(t, c, "ask", ""); got != `true {"n":5} re: hello file:///home` {
			t.Errorf("got %q", got)
		}
		if runs.Load() != 2 {
			t.Errorf("the handler ran %d times", runs.Load())
		}
	})
}

// Prompts and resources can ask questions, as tools can.
func TestAskInPromptsAndResources(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Prompt("p", mcp.PromptFunc(func(ctx context.Context, _ none) (string, error) {
		answer, err := mcp.Elicit[yes](ctx, "k", "Sure?")
		return fmt.Sprint(answer.OK), err
	}, nil))
	mux.Resource("r:{x}", mcp.ResourceFunc(func(ctx context.Context, in map[string]string) (string, error) {
		answer, err := mcp.Elicit[yes](ctx, "k", "Sure?")
		return fmt.Sprint(in["x"], answer.OK), err
	}, nil))
	outer := mcp.NewMux("outer", "v1", quiet())
	outer.Mount("in_", mux)
	user(map[string]any{"Sure?": yes{true}}).Run(t, outer, func(t *testing.T, c *mcp.Conn) {
		prompt, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "in_p"})
		if err != nil || prompt.Messages[0].Content.(*mcp.TextContent).Text != "true" {
			t.Errorf("got %+v, %v", prompt, err)
		}
		res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mount:in_:r:1"})
		if err != nil || res.Contents[0].Text != "1true" {
			t.Errorf("got %+v, %v", res, err)
		}
	})
}

func TestRefusal(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, in struct {
		Q string `json:"q"`
	}) (string, error) {
		_, err := mcp.Elicit[yes](ctx, "k", in.Q)
		switch {
		case errors.Is(err, mcp.ErrDeclined):
			return "declined", nil
		case errors.Is(err, mcp.ErrCancelled):
			return "cancelled", nil
		}
		return "", err
	}, nil))
	u := user(map[string]any{"no": mcp.ActionDecline, "away": mcp.ActionCancel})
	u.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for q, want := range map[string]string{"no": "declined", "away": "cancelled"} {
			if got := mustCall(t, c, "ask", `{"q":"`+q+`"}`); got != want {
				t.Errorf("%s: got %q", q, got)
			}
		}
	})
}

// An answer that does not match the form is rejected.
func TestAnswerThatDoesNotFit(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Elicit[seat](ctx, "k", "Which seat?")
		return "", err
	}, nil))
	for _, content := range []any{seat{99, "window"}, seat{1, "roof"}, map[string]int{"row": 1}} {
		u := user(nil)
		u.Options.AnswerMiddleware = []mcp.Middleware{func(mcp.Handler) mcp.Handler { // a client would reject it, too
			return mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return mcptest.Accept(content), nil })
		}}
		c := u.Connect(t, mux)
		_, err := c.CallTool(t.Context(), tool("ask", ""))
		wantCode(t, err, mcp.CodeInvalidParams)
	}
}

// T50: a question that the client does not support fails immediately, before any side
// effect, and the error names the missing capability.
func TestMissingCapability(t *testing.T) {
	var after atomic.Int32
	ask := func(q func(ctx context.Context) error) mcp.Handler {
		return mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			if err := q(ctx); err != nil {
				return "", err
			}
			after.Add(1)
			return "", nil
		}, nil)
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("elicitation", ask(func(ctx context.Context) error { _, err := mcp.Elicit[yes](ctx, "k", "?"); return err }))
	mux.Tool("url", ask(func(ctx context.Context) error { return mcp.ElicitURL(ctx, "k", "?", "https://example.com") }))
	mux.Tool("sampling", ask(func(ctx context.Context) error {
		_, err := mcp.Sample(ctx, "k", &mcp.CreateMessageParams{})
		return err
	}))
	mux.Tool("roots", ask(func(ctx context.Context) error { _, err := mcp.Roots(ctx, "k"); return err }))
	mux.Tool("tools", ask(func(ctx context.Context) error {
		_, err := mcp.Sample(ctx, "k", &mcp.CreateMessageParams{Tools: []*mcp.Tool{{Name: "t"}}})
		return err
	}))
	mux.Tool("result", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.InputRequired{InputRequests: map[string]mcp.InputRequest{"k": {Method: mcp.MethodListRoots}}}, nil
	}))
	check := func(t *testing.T, c *mcp.Conn, names ...string) {
		for _, name := range names {
			start := time.Now()
			_, err := c.CallTool(t.Context(), tool(name, ""))
			e := new(mcp.Error)
			if !errors.As(err, &e) || e.Code != mcp.CodeMissingCapability || !strings.Contains(string(e.Data), "requiredCapabilities") {
				t.Errorf("%s: got %v", name, err)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("%s: took %v", name, took)
			}
		}
		if after.Load() > 0 {
			t.Error("a handler went on")
		}
	}
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		check(t, c, "elicitation", "url", "sampling", "roots", "tools", "result")
	})
	some := &mcptest.Client{Options: mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{
		Elicitation: &mcp.ElicitationCapability{}, Sampling: &mcp.SamplingCapability{}, // form mode, no tools
	}}}
	some.Run(t, mux, func(t *testing.T, c *mcp.Conn) { check(t, c, "url", "tools", "roots") })
}

// A handler that returns InputRequired itself gets its state back.
func TestInputRequiredByHand(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		var p mcp.CallToolParams
		if err := req.Decode(&p); err != nil {
			return nil, err
		}
		if p.RequestState == nil {
			state := ""
			params, _ := json.Marshal(mcp.ElicitParams{Message: "Sure?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
			return &mcp.InputRequired{
				InputRequests: map[string]mcp.InputRequest{"k": {Method: mcp.MethodElicit, Params: params}}, RequestState: &state,
			}, nil
		}
		return mcp.TextResult(string(p.InputResponses["k"]) + *p.RequestState), nil
	}))
	user(map[string]any{"Sure?": yes{true}}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if got := mustCall(t, c, "ask", ""); got != `{"action":"accept","content":{"ok":true}}` {
			t.Errorf("got %q", got)
		}
	})
}

// A handler that keeps asking is stopped.
func TestEndlessQuestions(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		for i := 0; ; i++ {
			if _, err := mcp.Elicit[yes](ctx, fmt.Sprint(i), "Sure?"); err != nil {
				return "", err
			}
		}
	}, nil))
	u := user(map[string]any{"Sure?": yes{true}})
	u.Options.Version = "2025-11-25"
	_, err := u.Connect(t, mux).CallTool(t.Context(), tool("ask", ""))
	wantCode(t, err, mcp.CodeInternalError)
}

// In the legacy era, a question that fails at the client ends the call with an error the
// model can read.
func TestUnansweredQuestion(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Elicit[yes](ctx, "k", "Unexpected?")
		return "", err
	}, nil))
	user(nil).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		res, err := c.CallTool(t.Context(), tool("ask", ""))
		if err == nil && (!res.IsError || !strings.Contains(textOf(res), "nobody expected")) {
			t.Errorf("got %+v", res)
		}
		if err != nil && !strings.Contains(err.Error(), "nobody expected") {
			t.Errorf("got %v", err)
		}
	})
}

// Steps that run at the same time need different keys, because nothing tells them apart when
// the handler runs again. The error names the key.
func TestOnceAtTheSameTime(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		running, release := make(chan struct{}), make(chan struct{})
		first := make(chan string)
		go func() {
			text, err := mcp.Once(ctx, "k", func(context.Context) (string, error) {
				close(running)
				<-release
				return "first", nil
			})
			first <- fmt.Sprint(text, err)
		}()
		<-running
		never := func(context.Context) (string, error) { return "never", nil }
		_, concurrent := mcp.Once(ctx, "k", never)
		other, err := mcp.Once(ctx, "other", func(context.Context) (string, error) { return "other", nil })
		cancelled, cancel := context.WithCancelCause(ctx)
		cancel(errCut)
		_, cut := mcp.Once(cancelled, "third", never)
		close(release)
		return fmt.Sprintln(<-first, concurrent, other, err, cut), nil
	}, nil))
	res, err := callTool(t, mux, "t", "")
	if want := fmt.Sprintln("first<nil>", `the step "k" of tools/call "t" is running already: goroutines need steps with different keys (code -32603)`, "other", nil, errCut); err != nil || textOf(res) != want {
		t.Errorf("got %v, %v, want %q", textOf(res), err, want)
	}
}

func TestAskOutsideOfAHandler(t *testing.T) {
	if _, err := mcp.Elicit[yes](t.Context(), "k", "?"); err == nil || mcp.CodeOf(err) != mcp.CodeInternalError {
		t.Errorf("got %v", err)
	}
	if _, err := mcp.Once(t.Context(), "k", func(context.Context) (int, error) { return 1, nil }); err == nil {
		t.Error("Once worked without a request")
	}
}

// Forms that clients cannot display are rejected.
func TestFormsThatCannotBeShown(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("nested", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Elicit[struct{ Seat seat }](ctx, "k", "?")
		return "", err
	}, nil))
	res, err := callTool(t, mux, "nested", "")
	if err != nil || !res.IsError || !strings.Contains(textOf(res), "form") {
		t.Errorf("got %+v, %v", res, err)
	}
}

// modernRequest returns a request of a client with the given capabilities.
func modernRequest(id, method, members, capabilities string) string {
	meta := strings.Replace(eras[0].meta, `{"elicitation":{}}`, capabilities, 1)
	return wireEra{meta: meta}.request(id, method, members)
}

// A handler that returns InputRequired itself can ask only what the client supports, and
// the error names what is missing.
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

// Questions in an InputRequired result are validated before they are sent.
func TestQuestionsByHand(t *testing.T) {
	state := "s"
	tooMany := &mcp.InputRequired{InputRequests: map[string]mcp.InputRequest{}}
	for i := range 17 {
		tooMany.InputRequests[fmt.Sprint(i)] = mcp.InputRequest{Method: mcp.MethodElicit, Params: json.RawMessage(`{"message":"?","requestedSchema":{"type":"object","properties":{}}}`)}
	}
	for want, asked := range map[string]*mcp.InputRequired{
		"asked for input without a question or a state":  {},
		`a client cannot be asked "tools/list"`:          {InputRequests: map[string]mcp.InputRequest{"k": {Method: mcp.MethodListTools}}},
		`the params of the question "k"`:                 {InputRequests: map[string]mcp.InputRequest{"k": {Method: mcp.MethodElicit, Params: json.RawMessage(`[]`)}}},
		`the params of the question "j"`:                 {InputRequests: map[string]mcp.InputRequest{"j": {Method: mcp.MethodElicit, Params: json.RawMessage(`{"a":}`)}}},
		`asks 17 questions at once; a client answers up`: tooMany,
		"": {RequestState: &state},
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

// A malformed answer fails the call with an error that names the question.
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

// An unreadable answer from a legacy client immediately fails the call that waits for it.
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

// When a legacy server reports a missing resource, the error contains the URI, as with a
// modern server.
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

// A tool that calls another tool keeps its own answers and Once values, and two tools that
// run concurrently do not share theirs.
func TestFindingCH4ToolCallsATool(t *testing.T) {
	var ran atomic.Int32
	mux := mcp.NewMux("m", "v1", quiet())
	once := func(value string) mcp.Handler {
		return mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			return mcp.Once(ctx, "k", func(context.Context) (string, error) { return value, nil })
		}, nil)
	}
	mux.Tool("a", once("a"))
	mux.Tool("b", once("b"))
	call := func(ctx context.Context, name string) (string, error) {
		req, err := mcp.RequestFromContext(ctx).WithParams(tool(name, "{}"))
		if err != nil {
			return "", err
		}
		res, err := mux.ServeMCP(ctx, req)
		if err != nil {
			return "", err
		}
		return textOf(res.(*mcp.CallToolResult)), nil
	}
	mux.Tool("sequential", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		n, err := mcp.Once(ctx, "k", func(context.Context) (int32, error) { return ran.Add(1), nil })
		if err != nil {
			return "", err
		}
		inner, err := call(ctx, "a")
		if err != nil {
			return "", err
		}
		answer, err := mcp.Elicit[yes](ctx, "sure", "Sure?")
		return fmt.Sprintf("%d %s %t", n, inner, answer.OK), err
	}, nil))
	mux.Tool("parallel", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		var wg sync.WaitGroup
		got := make([]string, 20)
		for i := range got {
			wg.Go(func() { got[i], _ = call(ctx, string(rune('a'+i%2))) })
		}
		wg.Wait()
		return strings.Join(got, ""), nil
	}, nil))
	user(map[string]any{"Sure?": yes{true}}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		ran.Store(0)
		if got := mustCall(t, c, "sequential", ""); got != "1 a true" {
			t.Errorf("got %q", got)
		}
		if got, want := mustCall(t, c, "parallel", ""), strings.Repeat("ab", 10); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A goroutine that outlives its handler may still ask while earlier questions are being
// encoded.
func TestFindingCM1GoroutineLeftBehind(t *testing.T) {
	var left sync.WaitGroup
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		left.Go(func() {
			for i := range 200 {
				_, _ = mcp.Elicit[yes](ctx, fmt.Sprint("late", i%10), "Late?")
			}
		})
		_, err := mcp.Elicit[yes](ctx, "k", "Sure?")
		return "", err
	}, nil))
	for range 20 {
		res, _, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodCallTool, tool("ask", "")))
		asked, ok := res.(*mcp.InputRequired)
		if err != nil || !ok {
			t.Fatalf("got %+v, %v", res, err)
		}
		for range 50 {
			if _, err := json.Marshal(asked.InputRequests); err != nil {
				t.Fatal(err)
			}
		}
	}
	left.Wait()
}

// A step that fails is not over: its next use is another attempt, and not a second step.
func TestFindingCM11OnceIsRetried(t *testing.T) {
	var attempts int
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("once", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		pay := func(context.Context) (int, error) {
			if attempts++; attempts < 3 {
				return 0, fmt.Errorf("the line is busy")
			}
			return attempts, nil
		}
		paid, err := mcp.Once(ctx, "pay", pay)
		for err != nil {
			paid, err = mcp.Once(ctx, "pay", pay)
		}
		_, err = mcp.Elicit[yes](ctx, "sure", "Ship?")
		return fmt.Sprint("paid in attempt ", paid), err
	}, nil))
	user(map[string]any{"Ship?": yes{true}}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		attempts = 0
		if got := mustCall(t, c, "once", ""); got != "paid in attempt 3" || attempts != 3 {
			t.Errorf("got %q after %d attempts", got, attempts)
		}
	})
}

// Each use of a key in a run is a question of its own, whatever it asks.
func TestFindingCM19U6OneKeyTwoQuestions(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("wipe", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		if _, err := mcp.Elicit[yes](ctx, "k", "Delete?"); err != nil {
			return "", err
		}
		really, err := mcp.Elicit[yes](ctx, "k", "Really delete everything?")
		return fmt.Sprint("deleted: ", really.OK), err
	}, nil))
	user(map[string]any{"Delete?": yes{true}, "Really delete everything?": yes{false}}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if got := mustCall(t, c, "wipe", ""); got != "deleted: false" {
			t.Errorf("got %q", got)
		}
	})
}

// An answer is valid only for the question as it was asked: a user who agreed to pay 10 has
// not agreed to pay 1000.
func TestFindingCM19TheQuestionChanges(t *testing.T) {
	var log lockedBuffer
	opts := &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	price := 1
	mux := mcp.NewMux("m", "v1", opts)
	mux.Tool("buy", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		price = min(price*10, 1000)
		message := fmt.Sprintf("Buy for %d?", price)
		_, err := mcp.Elicit[yes](ctx, "sure", message)
		return message, err
	}, nil))
	var asked []string
	client := &mcptest.Client{Options: mcp.ClientOptions{Elicit: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		asked = append(asked, p.Message)
		return mcptest.Accept(yes{true}), nil
	}}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		price, asked = 1, nil
		got := mustCall(t, c, "buy", "")
		if want := "[Buy for 10? Buy for 100? Buy for 1000?]"; got != "Buy for 1000?" || fmt.Sprint(asked) != want {
			t.Errorf("got %q after %v, want %s", got, asked, want)
		}
	})
	if !strings.Contains(log.String(), "has changed since it was answered") || !strings.Contains(log.String(), "key=sure") {
		t.Errorf("got the log %s", log.String())
	}
}

// The state of a handler has a size limit, and exceeding it returns an error that says so.
func TestFindingCM19StateIsBounded(t *testing.T) {
	mux := mcp.NewMux("m", "v1", mcp.LimitState(quiet(), 1000))
	mux.Tool("keep", mcp.ToolFunc(func(ctx context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		if _, err := mcp.Once(ctx, "big", func(context.Context) (string, error) { return strings.Repeat("x", in.N), nil }); err != nil {
			return "", err
		}
		_, err := mcp.Elicit[yes](ctx, "k", "Sure?")
		return "done", err
	}, nil))
	user(map[string]any{"Sure?": yes{true}}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if got := mustCall(t, c, "keep", `{"n":500}`); got != "done" {
			t.Errorf("got %q", got)
		}
		_, err := c.CallTool(t.Context(), tool("keep", `{"n":2000}`))
		if mcp.CodeOf(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), "the limit is 1000") {
			t.Errorf("got %v", err)
		}
	})
}

// State is bound to the server, the mounts on the way to it and the method, even if keys,
// names and arguments are the same.
func TestFindingS22StateOfAnotherServer(t *testing.T) {
	key := bytes.Repeat([]byte("k"), 32)
	server := func(name string) *mcp.Mux {
		mux := mcp.NewMux(name, "v1", &mcp.MuxOptions{StateKeys: [][]byte{key}, Logger: quiet().Logger})
		ask := func(ctx context.Context, _ none) (string, error) {
			answer, err := mcp.Elicit[yes](ctx, "k", "Sure?")
			return fmt.Sprint(answer.OK), err
		}
		mux.Tool("ask", mcp.ToolFunc(ask, nil))
		mux.Prompt("ask", mcp.PromptFunc(ask, nil))
		return mux
	}
	gateway := mcp.NewMux("gateway", "v1", quiet())
	inner := server("inner")
	gateway.Mount("a_", inner)
	gateway.Mount("b_", inner)
	client := new(mcptest.Client)
	state := stateOf(t, server("one"), client, tool("ask", ""))
	mounted := stateOf(t, gateway, client, tool("a_ask", ""))
	for _, test := range []struct {
		name   string
		server mcp.Handler
		params *mcp.CallToolParams
		ok     bool
	}{
		{"a replica", server("one"), answered(tool("ask", ""), state), true},
		{"another server", server("two"), answered(tool("ask", ""), state), false},
		{"the same mount", gateway, answered(tool("a_ask", ""), mounted), true},
		{"another mount", gateway, answered(tool("b_ask", ""), mounted), false},
		{"not mounted", inner, answered(tool("ask", ""), mounted), false},
	} {
		_, _, err := mcptest.Do(t, test.server, client.NewRequest(mcp.MethodCallTool, test.params))
		if (err == nil) != test.ok {
			t.Errorf("%s: got %v", test.name, err)
		}
	}
	p := &mcp.GetPromptParams{Name: "ask", Resume: answered(tool("ask", ""), state).Resume}
	_, _, err := mcptest.Do(t, server("one"), client.NewRequest(mcp.MethodGetPrompt, p))
	wantCode(t, err, mcp.CodeInvalidParams)
}

// State is bound to all params of a request, not only to its name and arguments.
func TestFindingS2StateIsBoundToAllParams(t *testing.T) {
	mux := asking(quiet())
	client := new(mcptest.Client)
	asked := tool("ask", "")
	asked.Extra = mcp.Extra{"account": json.RawMessage(`1`)}
	state := stateOf(t, mux, client, asked)
	again := answered(asked, state)
	if _, _, err := mcptest.Do(t, mux, client.NewRequest(mcp.MethodCallTool, again)); err != nil {
		t.Error(err)
	}
	again.Extra = mcp.Extra{"account": json.RawMessage(`2`)}
	_, _, err := mcptest.Do(t, mux, client.NewRequest(mcp.MethodCallTool, again))
	wantCode(t, err, mcp.CodeInvalidParams)
}

// With a store, the same answers are valid for one attempt across all replicas.
func TestFindingS23StateIsSingleUse(t *testing.T) {
	used := store.NewMemory(nil)
	replica := func() *mcp.Mux {
		return asking(&mcp.MuxOptions{StateKeys: [][]byte{bytes.Repeat([]byte("k"), 32)}, StateStore: used, Logger: quiet().Logger})
	}
	client := new(mcptest.Client)
	again := answered(tool("ask", ""), stateOf(t, replica(), client, tool("ask", "")))
	if _, _, err := mcptest.Do(t, replica(), client.NewRequest(mcp.MethodCallTool, again)); err != nil {
		t.Fatal(err)
	}
	_, _, err := mcptest.Do(t, replica(), client.NewRequest(mcp.MethodCallTool, again))
	if mcp.CodeOf(err) != mcp.CodeInvalidParams || !strings.Contains(err.Error(), "used before") {
		t.Errorf("got %v", err)
	}
	user(map[string]any{"Sure?": yes{true}}).Run(t, replica(), func(t *testing.T, c *mcp.Conn) {
		if got := mustCall(t, c, "ask", ""); got != "true" {
			t.Errorf("got %q", got)
		}
	})
}

// Answers to questions that were not asked are ignored and not kept.
func TestFindingW16UnaskedAnswers(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		if _, err := mcp.Elicit[yes](ctx, "first", "First?"); err != nil {
			return "", err
		}
		if _, err := mcp.Elicit[yes](ctx, "k", "Second?"); err != nil {
			return "", err
		}
		_, err := mcp.Elicit[yes](ctx, "last", "Last?")
		return "", err
	}, nil))
	mux.Tool("remember", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		if _, err := mcp.Once(ctx, "quote", func(context.Context) (int, error) { return 1, nil }); err != nil {
			return "", err
		}
		_, err := mcp.Elicit[yes](ctx, "first", "First?")
		return "", err
	}, nil))
	client := new(mcptest.Client)
	ask := func(p *mcp.CallToolParams) *mcp.InputRequired {
		t.Helper()
		res, _, err := mcptest.Do(t, mux, client.NewRequest(mcp.MethodCallTool, p))
		asked, ok := res.(*mcp.InputRequired)
		if err != nil || !ok {
			t.Fatalf("got %+v, %v", res, err)
		}
		return asked
	}
	accept := json.RawMessage(`{"action":"accept","content":{"ok":true}}`)
	p := tool("ask", "")
	p.InputResponses = map[string]json.RawMessage{"first": accept, "k": accept}
	asked := ask(p) // without state, only the first question can have an answer
	if _, ok := asked.InputRequests["k"]; !ok {
		t.Errorf("got %+v", asked)
	}
	remembering := tool("remember", "") // after Once, a question can be answered only together with its state
	remembering.InputResponses = p.InputResponses
	if asked := ask(remembering); len(asked.InputRequests) != 1 {
		t.Errorf("got %+v", asked)
	}
	plain := len(*asked.RequestState)
	for i := range 1000 {
		p.InputResponses[fmt.Sprint("unasked", i)] = accept
	}
	p.RequestState = asked.RequestState
	asked = ask(p)
	if _, ok := asked.InputRequests["last"]; !ok || len(*asked.RequestState) > 2*plain+200 {
		t.Errorf("got %v with a state of %d bytes", asked.InputRequests, len(*asked.RequestState))
	}
}

// If a handler does not return the error of a question, a message is logged.
func TestFindingU6TheErrorIsNotPassedOn(t *testing.T) {
	var log lockedBuffer
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		if _, err := mcp.Elicit[yes](ctx, "sure", "Sure?"); err != nil {
			return "default", nil //nolint:nilerr // the mistake under test
		}
		return "asked", nil
	}, nil))
	if _, err := callTool(t, mux, "ask", ""); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"did not return the error of Ask", "name=ask", "keys=[sure]"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log does not say %s: %s", part, log.String())
		}
	}
}

// A value that was remembered with another type, because the handler has changed, is an error
// that names the key. Two steps under one key may differ.
func TestFindingU6OnceWithTwoTypes(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	runs := 0
	mux.Tool("once", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		var err error
		if runs++; runs == 1 {
			_, err = mcp.Once(ctx, "k", func(context.Context) (int, error) { return 1, nil })
		} else {
			_, err = mcp.Once(ctx, "k", func(context.Context) (string, error) { return "one", nil })
		}
		if err == nil {
			_, err = mcp.Once(ctx, "k", func(context.Context) (bool, error) { return true, nil })
		}
		if err == nil {
			_, err = mcp.Elicit[yes](ctx, "sure", "Sure?")
		}
		return "", err
	}, nil))
	user(map[string]any{"Sure?": yes{true}}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		runs = 0
		_, err := c.CallTool(t.Context(), tool("once", ""))
		if runs != 2 || mcp.CodeOf(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), `under "k"`) {
			t.Errorf("got %v after %d runs", err, runs)
		}
	})
}

// The params of a question in a handler's InputRequired must be valid JSON.
func TestFindingCH3Questions(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.InputRequired{InputRequests: map[string]mcp.InputRequest{
			"k": {Method: mcp.MethodElicit, Params: json.RawMessage(`{}},"method":"ping","x":{"y":{}`)},
		}}, nil
	}))
	user(nil).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		_, err := c.CallTool(t.Context(), tool("ask", ""))
		if mcp.CodeOf(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), `the question "k"`) {
			t.Errorf("got %v", err)
		}
	})
}

// Cancelling a call withdraws its question.
func TestCancelledCallWithdrawsItsQuestion(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Elicit[yes](ctx, "k", "Sure?")
		return "", err
	}, nil))
	p := newPeer(t, mux, eras[1])
	p.send(eras[1].request("7", "tools/call", `"name":"ask"`))
	var question struct {
		ID     mcp.ID `json:"id"`
		Method string `json:"method"`
	}
	if err := json.Unmarshal([]byte(p.receive()), &question); err != nil || question.Method != mcp.MethodElicit {
		t.Fatalf("got %+v, %v", question, err)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	if got := p.receive(); !strings.Contains(got, mcp.NotificationCancelled) || !strings.Contains(got, `"requestId":`+question.ID.String()) {
		t.Errorf("got %s", got)
	}
}

// Questions of a handler without a Mux are validated as well. In the legacy era they are
// sent as messages, so invalid JSON could add members to the message.
func TestQuestionsOfAnyHandler(t *testing.T) {
	h := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == mcp.MethodDiscover {
			return &mcp.DiscoverResult{Capabilities: &mcp.ServerCapabilities{}}, nil
		}
		asked := &mcp.InputRequired{InputRequests: map[string]mcp.InputRequest{
			"k": {Method: mcp.MethodElicit, Params: json.RawMessage(`{}},"id":"1","x":{`)},
		}}
		asked.ResultType = mcp.ResultInputRequired
		return asked, nil
	})
	for _, era := range eras {
		p := newPeer(t, h, era)
		p.send(era.request("1", "prompts/get", `"name":"x"`))
		if got := p.receive(); !strings.Contains(got, `"code":-32603`) || strings.Contains(got, `"x"`) {
			t.Errorf("%s: got %s", era.name, got)
		}
	}
}

// A key that is not valid UTF-8 fails the call with an error that says so.
func TestKeysThatAreNotText(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Prompt("ask", mcp.PromptFunc(func(ctx context.Context, _ none) (string, error) {
		if _, err := mcp.Once(ctx, "\xff", func(context.Context) (int, error) { return 1, nil }); err != nil {
			return "", err
		}
		_, err := mcp.Elicit[yes](ctx, "k", "Sure?")
		return "", err
	}, nil))
	user(map[string]any{"Sure?": yes{true}}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		_, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "ask"})
		if mcp.CodeOf(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), "must be valid UTF-8") {
			t.Errorf("got %v", err)
		}
	})
}

// A handler that asks in a loop, or takes one step after the other, does not outlive its call,
// even if it never looks at its context: once the context is done, [mcp.Ask] and [mcp.Once]
// return the cause.
func TestFindingV1V3NothingBeginsForACallerThatHasGone(t *testing.T) {
	loops := map[string]func(ctx context.Context, i int) error{
		"elicit": func(ctx context.Context, _ int) error {
			_, err := mcp.Elicit[yes](ctx, "k", "Sure?")
			return err
		},
		"sample": func(ctx context.Context, _ int) error {
			_, err := mcp.Sample(ctx, "k", &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text("more")}}}})
			return err
		},
		"roots": func(ctx context.Context, _ int) error {
			_, err := mcp.Roots(ctx, "k")
			return err
		},
		"one step": func(ctx context.Context, _ int) error {
			_, err := mcp.Once(ctx, "k", func(context.Context) (int, error) { return 1, nil })
			return err
		},
		"steps": func(ctx context.Context, i int) error {
			_, err := mcp.Once(ctx, fmt.Sprint("k", i), func(context.Context) (int, error) { return i, nil })
			return err
		},
	}
	for name, loop := range loops {
		t.Run(name, func(t *testing.T) {
			var (
				cancel context.CancelFunc // of the call
				late   int                // rounds of the loop after the cancellation
				ended  = make(chan error, 1)
			)
			mux := mcp.NewMux("m", "v1", quiet())
			mux.Tool("loop", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
				for i := 0; ; i++ {
					err := loop(ctx, i)
					if ctx.Err() != nil {
						late++
					}
					isOver, isLate := late > 10 || err != nil, late > 10 || ctx.Err() != nil
					if isOver && isLate {
						ended <- err // from here on, late belongs to the next run
					}
					if isOver {
						return "", err
					}
					cancel()
					<-ctx.Done()
				}
			}, nil))
			user(map[string]any{"Sure?": yes{true}}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
				var ctx context.Context
				ctx, cancel = context.WithCancel(t.Context())
				late = 0
				if _, err := c.CallTool(ctx, tool("loop", "")); !errors.Is(err, context.Canceled) {
					t.Errorf("the caller got %v", err)
				}
				err := <-ended
				if _, cancelled := errors.AsType[*mcp.CancelError](err); !cancelled || late != 1 {
					t.Errorf("the loop ended with %v, %d rounds after the caller had gone", err, late)
				}
			})
		})
	}
}
