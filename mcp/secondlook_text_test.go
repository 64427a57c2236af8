// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// The questions of a handler that is no mux's are checked, too, before they go out: in
// the legacy era they are messages, and what is not JSON put members into them.
func TestSecondLookQuestionsOfAnyHandler(t *testing.T) {
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

// Content has one type, that of its Go type, also if it was made of something that has a
// member of that name.
func TestSecondLookOneType(t *testing.T) {
	foreign := mcp.Resource{URI: "notes://a", Name: "a", Extra: mcp.Extra{"type": json.RawMessage(`"image"`), "x": json.RawMessage(`1`)}}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("link", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.CallToolResult{Content: mcp.Contents{&mcp.ResourceLink{Resource: foreign}}}, nil
	}))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		res, err := c.CallTool(t.Context(), tool("link", ""))
		if err != nil || textOf(res) != "*mcp.ResourceLink" {
			t.Fatalf("got %+v, %v", res, err)
		}
		if extra := res.Content[0].(*mcp.ResourceLink).Extra; len(extra) != 1 || extra["x"] == nil {
			t.Errorf("got %s", extra)
		}
	})
}

// An application may end a call for a reason that is not valid UTF-8.
func TestSecondLookCancelledForAnyReason(t *testing.T) {
	begun, cancelled := make(chan struct{}), make(chan error, 1)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("wait", mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
		close(begun)
		<-ctx.Done()
		cancelled <- context.Cause(ctx)
		return nil, ctx.Err()
	}))
	near, far := transport.Pipe()
	go mcpstdio.ServeStream(t.Context(), mux, far, nil)
	c, err := mcp.NewClient("c", "v1", nil).Connect(t.Context(), transport.FromStream(func(context.Context) (transport.Stream, error) { return near, nil }))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-begun
		cancel(errors.New("the file \xff is gone"))
	}()
	if _, err := c.CallTool(ctx, tool("wait", "")); err == nil || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("got %v", err)
	}
	if got := <-cancelled; !strings.Contains(got.Error(), "the file \ufffd is gone") {
		t.Errorf("the server heard of %v", got)
	}
}

// A key that cannot travel fails its call, and says so.
func TestSecondLookKeysThatAreNoText(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Prompt("ask", mcp.PromptFunc(func(ctx context.Context, _ none) (string, error) {
		if _, err := mcp.Once(ctx, "\xff", func() (int, error) { return 1, nil }); err != nil {
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

// One file whose name is not valid UTF-8 does not keep the others from being completed.
func TestSecondLookFileNames(t *testing.T) {
	files := fstest.MapFS{"a.txt": {Data: []byte("a")}, "b\xff.txt": {Data: []byte("b")}}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("file:///{+path}", mcp.FileServerFS(files, nil))
	c := mcptest.Connect(t, mux)
	res, err := c.Complete(t.Context(), &mcp.CompleteParams{
		Ref:      mcp.CompleteRef{Type: "ref/resource", URI: "file:///{+path}"},
		Argument: mcp.CompleteArgument{Name: "path"},
	})
	if err != nil || !slices.Equal(res.Completion.Values, []string{"a.txt"}) {
		t.Errorf("got %+v, %v", res, err)
	}
}

// A byte that is not valid UTF-8, as in a row of a database, does not cost a result: it is
// replaced in all that a handler returns. A client does not ask for something else than its
// program said.
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
