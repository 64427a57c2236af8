// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// library returns a server with resources and prompts, and no tools of its own.
func library(pageSize int) *mcp.Mux {
	opts := quiet()
	opts.PageSize = pageSize
	mux := mcp.NewMux("library", "v1", opts)
	mux.Use(middleware.ResourcesAsTools(), middleware.PromptsAsTools())
	mux.Use(middleware.Visible(func(ctx context.Context, _ mcp.Kind, name string) bool {
		return !strings.Contains(name, "secret") || mcp.PrincipalFromContext(ctx).HasScope("secrets")
	}))
	text := func(text string) mcp.Handler {
		return mcp.ResourceFunc(func(context.Context, none) (string, error) { return text, nil }, nil)
	}
	mux.Resource("book://go", text("The Go book."))
	mux.Resource("book://secret", text("The secret book."))
	mux.Resource("book://caf%C3%A9", text("A menu."))
	mux.Resource("book://{title}/page/{n}", mcp.ResourceFunc(func(_ context.Context, in struct {
		Title string `json:"title"`
		N     string `json:"n"`
	}) (string, error) {
		return in.Title + " " + in.N, nil
	}, nil))
	mux.Resource("pic://cover", mcp.ResourceFunc(func(context.Context, none) (*mcp.ResourceContents, error) {
		return &mcp.ResourceContents{MIMEType: "image/png", Blob: []byte("png")}, nil
	}, nil))
	mux.Resource("dir://all", mcp.ResourceFunc(func(context.Context, none) ([]*mcp.ResourceContents, error) {
		return []*mcp.ResourceContents{{URI: "dir://all/1", Text: "one"}, {URI: "dir://all/2", MIMEType: "application/zip", Blob: []byte("zip")}}, nil
	}, nil))
	mux.Prompt("review", mcp.PromptFunc(func(_ context.Context, in struct {
		Title string `json:"title" jsonschema:"description=The book"`
	}) (string, error) {
		return "Review " + in.Title + ".", nil
	}, &mcp.Prompt{Description: "Review a book."}))
	mux.Prompt("talk", mcp.PromptFunc(func(context.Context, none) ([]*mcp.PromptMessage, error) {
		return []*mcp.PromptMessage{mcp.UserMessage(mcp.Text("Hi.")), mcp.AssistantMessage(mcp.Text("Hello."))}, nil
	}, nil))
	mux.Prompt("ask", mcp.PromptFunc(func(ctx context.Context, _ none) (string, error) {
		f, err := mcp.Elicit[struct {
			Name string `json:"name"`
		}](ctx, "name", "Who are you?")
		return "I am " + f.Name, err
	}, nil))
	return mux
}

// said is what a model reads: the blocks of a result, and whether it failed.
func said(t *testing.T, c *mcp.Conn, tool, args string) string {
	t.Helper()
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	if res.IsError {
		b.WriteString("failed: ")
	}
	for i, block := range res.Content {
		if i > 0 {
			b.WriteString(" | ")
		}
		switch block := block.(type) {
		case *mcp.TextContent:
			b.WriteString(block.Text)
		case *mcp.ImageContent:
			b.WriteString(block.MIMEType + " " + string(block.Data))
		case *mcp.EmbeddedResource:
			b.WriteString(block.Resource.URI + " " + string(block.Resource.Blob))
		}
	}
	return b.String()
}

// A host that knows tools only reads resources and prompts with tools, in every era, and sees
// what its caller may see.
func TestResourcesAndPromptsAsTools(t *testing.T) {
	client := mcptest.Client{Options: mcp.ClientOptions{Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return mcp.AcceptElicit(map[string]string{"name": "Ada"})
	}}}
	client.Run(t, library(0), func(t *testing.T, c *mcp.Conn) {
		if got := listed(t, c); got != "get_prompt list_prompts list_resources read_resource" {
			t.Errorf("listed %s", got)
		}
		for call, want := range map[string]string{
			`read_resource {"uri":"book://go"}`:                       "The Go book.",
			`read_resource {"uri":"BOOK://café"}`:                     "A menu.",
			`read_resource {"uri":"book://go/page/7"}`:                "go 7",
			`read_resource {"uri":"pic://cover"}`:                     "image/png png",
			`read_resource {"uri":"dir://all"}`:                       "dir://all/1 | one | dir://all/2 | dir://all/2 zip",
			`read_resource {"uri":"book://secret"}`:                   `failed: resource "book://secret" not found`,
			`read_resource {"uri":"Book://secret"}`:                   `failed: resource "book://secret" not found`,
			`read_resource {"uri":"book://none"}`:                     `failed: resource "book://none" not found`,
			`read_resource {}`:                                        "failed: invalid arguments:\n/uri: expected string, got nothing (the property is required)",
			`get_prompt {"name":"review","arguments":{"title":"Go"}}`: "Review Go.",
			`get_prompt {"name":"talk"}`:                              "user: | Hi. | assistant: | Hello.",
			`get_prompt {"name":"ask"}`:                               "I am Ada",
			`get_prompt {"name":"none"}`:                              `failed: unknown prompt "none"`,
		} {
			tool, args, _ := strings.Cut(call, " ")
			if got := said(t, c, tool, args); got != want {
				t.Errorf("%s: got %q, want %q", call, got, want)
			}
		}
		if got := said(t, c, "get_prompt", `{"name":"review"}`); !strings.HasPrefix(got, "failed: ") || !strings.Contains(got, "title") {
			t.Errorf("got %q", got)
		}
		if got := said(t, c, "list_prompts", `{}`); !strings.Contains(got, `"name":"review","description":"Review a book.","arguments":[{"name":"title"`) {
			t.Errorf("got %s", got)
		}
		got := said(t, c, "list_resources", `{}`)
		if !strings.Contains(got, `"uri":"book://go"`) || !strings.Contains(got, `"uriTemplate":"book://{title}/page/{n}"`) || strings.Contains(got, "secret") {
			t.Errorf("got %s", got)
		}
	})
}

// Long lists have pages: first the resources, then the templates.
func TestPagesAsTools(t *testing.T) {
	mux := library(2)
	for i := range 3 {
		mux.Resource(fmt.Sprintf("more%d://{x}", i), mcp.ResourceFunc(func(context.Context, none) (string, error) { return "", nil }, nil))
	}
	c := mcptest.Connect(t, mux)
	for tool, want := range map[string][]int{"list_resources": {2, 1, 1 + 2, 2}, "list_prompts": {2, 1}} {
		var sizes []int
		cursor := ""
		for {
			raw := json.RawMessage(`{}`)
			if cursor != "" {
				raw = fmt.Appendf(nil, `{"cursor":%q}`, cursor)
			}
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: raw})
			var page struct {
				Resources, Templates, Prompts []json.RawMessage
				ResourceTemplates             []json.RawMessage `json:"resourceTemplates"`
				NextCursor                    string            `json:"nextCursor"`
			}
			if err != nil || json.Unmarshal(res.StructuredContent, &page) != nil {
				t.Fatalf("%s: %v, %v", tool, res, err)
			}
			sizes = append(sizes, len(page.Resources)+len(page.ResourceTemplates)+len(page.Prompts))
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		if fmt.Sprint(sizes) != fmt.Sprint(want) {
			t.Errorf("%s: pages of %v, want %v", tool, sizes, want)
		}
	}
	if got := said(t, c, "list_resources", `{"cursor":"x"}`); !strings.HasPrefix(got, "failed: params.cursor was not issued") {
		t.Errorf("got %s", got)
	}
}

// Tools of the server stay, but for those with the same names, and a server that has neither
// resources nor prompts says so.
func TestToolsBesideResources(t *testing.T) {
	mux := saying("a", "read_resource")
	mux.Use(middleware.ResourcesAsTools())
	c := mcptest.Connect(t, mux)
	if got := listed(t, c); got != "a list_resources read_resource" {
		t.Errorf("listed %s", got)
	}
	for call, want := range map[string]string{"a": "a ", "list_resources": "failed: the server has none", "get_prompt": "error: "} {
		if got := said(t, c, call, `{}`); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", call, got, want)
		}
	}
	mustPanic(t, "ResourcesAsTools", func() { mcp.NewMux("m", "v1", quiet()).With(middleware.ResourcesAsTools()).Tool("a", says("a")) })
}

// A host that knows tools only gets at the documents of a server.
func ExampleResourcesAsTools() {
	mux := mcp.NewMux("docs", "v1.0.0", nil)
	mux.Use(middleware.ResourcesAsTools(), middleware.PromptsAsTools())
	mux.Resource("docs://start", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "Install it first.", nil }, nil))

	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(mcp.Call[string](ctx, conn, "read_resource", map[string]any{"uri": "docs://start"}))
	// Output: Install it first. <nil>
}
