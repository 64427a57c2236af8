// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"image/png"
	"log/slog"
	"regexp"
	"slices"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// TestQuickstart tries everything that the server has, in both eras, over every
// transport.
func TestQuickstart(t *testing.T) {
	var asked []string // messages of the questions of the test that runs
	client := &mcptest.Client{Options: mcp.ClientOptions{Elicit: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		asked = append(asked, p.Message)
		return mcptest.Accept(delivery{Address: "Via Roma 1", Agreed: true}), nil
	}}}
	client.Run(t, newMux(slog.New(slog.DiscardHandler)), func(t *testing.T, c *mcp.Conn) {
		asked = nil
		t.Run("add", func(t *testing.T) { testAdd(t, c) })
		t.Run("order", func(t *testing.T) { testOrder(t, c, &asked) })
		t.Run("countdown", func(t *testing.T) { testCountdown(t, c) })
		t.Run("swatch", func(t *testing.T) { testSwatch(t, c) })
		t.Run("secret", func(t *testing.T) { testSecret(t, c) })
		t.Run("explain", func(t *testing.T) { testExplain(t, c) })
		t.Run("docs", func(t *testing.T) { testDocs(t, c) })
	})
}

func call(t *testing.T, ctx context.Context, c *mcp.Conn, name string, args any) *mcp.CallToolResult {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: raw})
	if err != nil || res.IsError || len(res.Content) != 1 {
		t.Fatalf("%s: %+v, %v", name, res, err)
	}
	return res
}

func text(res *mcp.CallToolResult) string {
	block, ok := res.Content[0].(*mcp.TextContent)
	if !ok {
		return ""
	}
	return block.Text
}

func testAdd(t *testing.T, c *mcp.Conn) {
	if res := call(t, t.Context(), c, "add", addIn{2, 3}); text(res) != `{"sum":5}` || string(res.StructuredContent) != `{"sum":5}` {
		t.Errorf("got %+v", res)
	}
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "add", Arguments: []byte(`{"a":"two"}`)})
	if err != nil || !res.IsError {
		t.Errorf("arguments that do not fit: %+v, %v", res, err)
	}
}

// The user is asked once, and pays what the question said.
func testOrder(t *testing.T, c *mcp.Conn, asked *[]string) {
	got := text(call(t, t.Context(), c, "order", orderIn{"funghi"}))
	parts := regexp.MustCompile(`^One funghi for (\d+) euros is on its way to Via Roma 1\.$`).FindStringSubmatch(got)
	if parts == nil {
		t.Fatalf("got %q", got)
	}
	if want := []string{"A funghi is " + parts[1] + " euros today. Where to?"}; !slices.Equal(*asked, want) {
		t.Errorf("asked %q, want %q", *asked, want)
	}
}

func testCountdown(t *testing.T, c *mcp.Conn) {
	var told []string
	ctx := mcp.WithProgress(t.Context(), func(p *mcp.ProgressParams) { told = append(told, p.Message) })
	got := text(call(t, ctx, c, "countdown", map[string]int{"from": 3, "pause": 1}))
	if want := []string{"3", "2", "1"}; got != "Liftoff!" || !slices.Equal(told, want) {
		t.Errorf("got %q after %q", got, told)
	}
}

func testSwatch(t *testing.T, c *mcp.Conn) {
	block, ok := call(t, t.Context(), c, "swatch", swatchIn{"green"}).Content[0].(*mcp.ImageContent)
	if !ok {
		t.Fatal("no image")
	}
	img, err := png.Decode(bytes.NewReader(block.Data))
	if err != nil {
		t.Fatal(err)
	}
	if r, g, b, _ := img.At(1, 1).RGBA(); r != 0 || g != 0xffff || b != 0 {
		t.Errorf("green is %x %x %x", r, g, b)
	}
}

func testSecret(t *testing.T, c *mcp.Conn) {
	changes := make(chan mcp.Change, 10)
	_, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(change mcp.Change) { changes <- change })
	if err != nil {
		t.Fatal(err)
	}
	for _, revealed := range []bool{true, false} {
		res := call(t, t.Context(), c, "secret", secretIn{revealed})
		if link, ok := res.Content[0].(*mcp.ResourceLink); !ok || link.URI != "docs:///secrets.md" {
			t.Errorf("got %+v", res.Content[0])
		}
		if change := <-changes; change.Method != mcp.NotificationToolsListChanged {
			t.Errorf("got %+v", change)
		}
		list, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if listed := slices.ContainsFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == "whisper" }); listed != revealed {
			t.Errorf("whisper is listed: %v, want %v", listed, revealed)
		}
	}
}

func testExplain(t *testing.T, c *mcp.Conn) {
	res, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "explain", Arguments: map[string]string{"topic": "monads"}})
	if err != nil || len(res.Messages) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := res.Messages[0].Content.(*mcp.TextContent).Text; got != "Explain monads to me, in a plain style." {
		t.Errorf("got %q", got)
	}
	completed, err := c.Complete(t.Context(), &mcp.CompleteParams{
		Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "explain"}, Argument: mcp.CompleteArgument{Name: "style", Value: "p"},
	})
	if err != nil || !slices.Equal(completed.Completion.Values, []string{"plain", "poetic", "pirate"}) {
		t.Errorf("%+v, %v", completed, err)
	}
}

func testDocs(t *testing.T, c *mcp.Conn) {
	list, err := c.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var uris []string
	for _, r := range list.Resources {
		uris = append(uris, r.URI)
		res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: r.URI})
		if err != nil || len(res.Contents) != 1 || int64(len(res.Contents[0].Text)) != *r.Size {
			t.Errorf("%s: %+v, %v", r.URI, res, err)
		}
	}
	if want := []string{"docs:///menu/pizza.csv", "docs:///secrets.md", "docs:///welcome.md"}; !slices.Equal(uris, want) {
		t.Errorf("listed %q, want %q", uris, want)
	}
}
