// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// A template serves many resources. Its variables set the fields of a struct. An
// fs.ErrNotExist, wrapped or not, reports that the resource does not exist.
func ExampleResourceFunc() {
	type note struct {
		Text string   `json:"text"`
		Tags []string `json:"tags"`
	}
	notes := map[int]note{7: {"buy bread", []string{"home"}}}
	read := func(_ context.Context, in struct {
		ID int `json:"id"`
	}) (note, error) {
		if n, ok := notes[in.ID]; ok {
			return n, nil
		}
		return note{}, fmt.Errorf("note %d: %w", in.ID, fs.ErrNotExist)
	}
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.Resource("notes://{id}", mcp.ResourceFunc(read, &mcp.Resource{Name: "note", MIMEType: "application/json"}))

	for _, uri := range []string{"notes://7", "notes://8"} {
		res, err := mux.ServeMCP(context.Background(), mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri}))
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(res.(*mcp.ReadResourceResult).Contents[0].Text)
	}
	// Output:
	// {"text":"buy bread","tags":["home"]}
	// resource "notes://8" not found (code -32602)
}

// Nothing outside of the directory is served, not even through symbolic links.
func ExampleFileServerRoot() {
	dir, err := os.MkdirTemp("", "site")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "index.html"), []byte("<h1>Hello</h1>"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer root.Close()
	mux := mcp.NewMux("site", "v1.0.0", nil)
	mux.Resource("file:///site/{+path}", mcp.FileServerRoot(root, nil))

	res, err := mux.ServeMCP(context.Background(), mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "file:///site/index.html"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	contents := res.(*mcp.ReadResourceResult).Contents[0]
	fmt.Println(contents.MIMEType, contents.Text)
	// Output: text/html <h1>Hello</h1>
}

// A prompt may be a whole conversation.
func ExampleUserMessage() {
	mux := mcp.NewMux("tutor", "v1.0.0", nil)
	mux.Prompt("teach", mcp.PromptFunc(func(_ context.Context, in struct {
		Topic string `json:"topic"`
	}) ([]*mcp.PromptMessage, error) {
		return []*mcp.PromptMessage{
			mcp.UserMessage(mcp.Text("Teach me " + in.Topic + ".")),
			mcp.AssistantMessage(mcp.Text("What do you know already?")),
		}, nil
	}, nil))

	res, err := mux.ServeMCP(context.Background(), mcptest.NewRequest(mcp.MethodGetPrompt, &mcp.GetPromptParams{
		Name: "teach", Arguments: map[string]string{"topic": "Go"},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range res.(*mcp.GetPromptResult).Messages {
		fmt.Printf("%s: %s\n", m.Role, m.Content.(*mcp.TextContent).Text)
	}
	// Output:
	// user: Teach me Go.
	// assistant: What do you know already?
}

// Arguments other than enums are completed by a function or from a list.
func ExampleCompleteFrom() {
	type deployIn struct {
		Branch      string `json:"branch"`
		Environment string `json:"environment"`
	}
	branches := func(_ context.Context, p *mcp.CompleteParams) ([]string, error) {
		return []string{p.Argument.Value + "-next", p.Argument.Value + "-stable"}, nil // or what a repository says
	}
	mux := mcp.NewMux("deploy", "v1.0.0", nil)
	mux.Prompt("deploy", mcp.PromptFunc(func(_ context.Context, in deployIn) (string, error) {
		return "Deploy " + in.Branch + " to " + in.Environment, nil
	}, &mcp.Prompt{Completers: map[string]mcp.Completer{
		"branch":      branches,
		"environment": mcp.CompleteFrom("production", "preview", "staging"),
	}}))

	for _, typed := range []mcp.CompleteArgument{{Name: "branch", Value: "v2"}, {Name: "environment", Value: "p"}} {
		res, err := mux.ServeMCP(context.Background(), mcptest.NewRequest(mcp.MethodComplete, &mcp.CompleteParams{
			Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "deploy"}, Argument: typed,
		}))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(res.(*mcp.CompleteResult).Completion.Values)
	}
	// Output:
	// [v2-next v2-stable]
	// [production preview]
}
