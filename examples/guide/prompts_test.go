// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

type reviewIn struct {
	File   string `json:"file" jsonschema:"description=The path of the file to review"`
	Depth  string `json:"depth,omitzero" jsonschema:"enum=quick,enum=thorough,default=quick"`
	Author string `json:"author,omitzero"`
}

func review(_ context.Context, in reviewIn) (string, error) {
	return fmt.Sprintf("Do a %s review of %s. List what you would change, the most important first.", in.Depth, in.File), nil
}

// explainFile begins a conversation with the file itself.
func explainFile(_ context.Context, in struct {
	File string `json:"file"`
}) ([]*mcp.PromptMessage, error) {
	text, err := fs.ReadFile(sources, in.File)
	if err != nil {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "there is no file %q", in.File)
	}
	return []*mcp.PromptMessage{
		mcp.UserMessage(&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "src:///" + in.File, Text: string(text)}}),
		mcp.UserMessage(mcp.Text("Explain this file to a new member of the team.")),
		mcp.AssistantMessage(mcp.Text("What do you know about the project already?")),
	}, nil
}

// completeFile suggests the files whose path begins with what was typed.
func completeFile(_ context.Context, p *mcp.CompleteParams) ([]string, error) {
	names, err := fs.Glob(sources, "*")
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, p.Argument.Value) }), err
}

// sources are the files of this package.
var sources fs.FS = sourceFiles

func newReviews() *mcp.Mux {
	mux := mcp.NewMux("reviews", "v1.0.0", nil)
	mux.Prompt("review", mcp.PromptFunc(review, &mcp.Prompt{
		Title:       "Review a file",
		Description: "Review a file of the project, and suggest changes.",
		Completers: map[string]mcp.Completer{
			"file":   completeFile,
			"author": mcp.CompleteFrom("ada", "alan"),
		},
	}))
	mux.Prompt("explain", mcp.PromptFunc(explainFile, nil))
	return mux
}

func TestPrompts(t *testing.T) {
	mcptest.Run(t, newReviews(), func(t *testing.T, conn *mcp.Conn) {
		p, err := conn.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "review", Arguments: map[string]string{"file": "main.go"}})
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := p.Messages[0].Content.(*mcp.TextContent); !ok || !strings.HasPrefix(text.Text, "Do a quick review of main.go.") {
			t.Errorf("got %+v", p.Messages[0].Content)
		}
		p, err = conn.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "explain", Arguments: map[string]string{"file": "prompts_test.go"}})
		if err != nil || len(p.Messages) != 3 || p.Messages[2].Role != mcp.RoleAssistant {
			t.Errorf("got %+v, %v", p, err)
		}
		_, err = conn.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "explain", Arguments: map[string]string{"file": "no.go"}})
		if mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Errorf("a file that is missing: %v", err)
		}
		for argument, typed := range map[string][2]string{"file": {"prom", "prompts_test.go"}, "depth": {"th", "thorough"}, "author": {"al", "alan"}} {
			c, err := conn.Complete(t.Context(), &mcp.CompleteParams{
				Ref:      mcp.CompleteRef{Type: "ref/prompt", Name: "review"},
				Argument: mcp.CompleteArgument{Name: argument, Value: typed[0]},
			})
			if err != nil || !slices.Equal(c.Completion.Values, typed[1:]) {
				t.Errorf("%s: got %+v, %v; want %s", argument, c, err, typed[1])
			}
		}
	})
}
