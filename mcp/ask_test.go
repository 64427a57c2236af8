// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

type yes struct {
	OK bool `json:"ok"`
}

type seat struct {
	Row  int    `json:"row" jsonschema:"minimum=1,maximum=40"`
	Side string `json:"side" jsonschema:"enum=window,enum=aisle"`
}

// user answers every form with the content under its message.
func user(contents map[string]any) *mcptest.Client {
	elicit := func(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
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
		Sample: func(_ context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			said := p.Messages[0].Content[0].(*mcp.TextContent).Text
			return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Content: mcp.SamplingContent{mcp.Text("re: " + said)}, Model: "m"}, nil
		},
		Roots: []mcp.Root{{URI: "file:///home", Name: "home"}},
	}}
}

// A handler that asks twice gives the same outcome in every era and over every
// transport, and what it did once stays done.
func TestAskTwice(t *testing.T) {
	var quoted, booked atomic.Int32
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("book", mcp.ToolFunc(func(ctx context.Context, in struct {
		City string `json:"city"`
	}) (string, error) {
		quote, err := mcp.Once(ctx, "quote", func() (int32, error) { return quoted.Add(1), nil })
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

// Several questions at once take one round.
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

// Prompts and resources ask as tools do.
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

// An answer that does not fit the form is refused.
func TestAnswerThatDoesNotFit(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Elicit[seat](ctx, "k", "Which seat?")
		return "", err
	}, nil))
	for _, content := range []any{seat{99, "window"}, seat{1, "roof"}, map[string]int{"row": 1}} {
		u := user(nil)
		u.Options.AnswerMiddleware = []mcp.Middleware{func(mcp.Handler) mcp.Handler { // the client would refuse it, too
			return mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return mcptest.Accept(content), nil })
		}}
		c := u.Connect(t, mux)
		_, err := c.CallTool(t.Context(), tool("ask", ""))
		wantCode(t, err, mcp.CodeInvalidParams)
	}
}

// T50: a question that the client cannot be asked fails at once, before any side
// effect, with what is missing.
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

// A handler that writes its questions itself gets its state back.
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

// A handler that never stops to ask comes to an end all the same.
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

// A question that fails on the client's side ends the call of the legacy era
// with something the model can read.
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

// Goroutines of a handler that need the same value share one call of the function. They wait
// for it no longer than their context allows.
func TestOnceAtTheSameTime(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		running, release := make(chan struct{}), make(chan struct{})
		value := func(ctx context.Context) (string, error) {
			return mcp.Once(ctx, "k", func() (string, error) {
				close(running)
				<-release
				return "shared", nil
			})
		}
		results := make(chan string, 2)
		for range 2 {
			go func() {
				text, err := value(ctx)
				results <- fmt.Sprint(text, err)
			}()
		}
		<-running
		cancelled, cancel := context.WithCancelCause(ctx)
		cancel(errCut)
		_, err := value(cancelled)
		close(release)
		return fmt.Sprint(err, <-results, <-results), nil
	}, nil))
	res, err := callTool(t, mux, "t", "")
	if want := fmt.Sprint(errCut, "shared<nil>", "shared<nil>"); err != nil || textOf(res) != want {
		t.Errorf("got %v, %v, want %q", res, err, want)
	}
}

func TestAskOutsideOfAHandler(t *testing.T) {
	if _, err := mcp.Elicit[yes](t.Context(), "k", "?"); err == nil || mcp.CodeOf(err) != mcp.CodeInternalError {
		t.Errorf("got %v", err)
	}
	if _, err := mcp.Once(t.Context(), "k", func() (int, error) { return 1, nil }); err == nil {
		t.Error("Once worked without a request")
	}
}

// Forms that clients cannot show fail.
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
