// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// newReports has a tool with text, a picture, progress and an error, a prompt and a resource.
func newReports() *mcp.Mux {
	mux := mcp.NewMux("reports", "v1.0.0", nil)
	mux.Tool("report", mcp.ToolFunc(func(ctx context.Context, in struct {
		Month string `json:"month"`
	}) (mcp.Contents, error) {
		if in.Month != "May" {
			return nil, errors.New("there is only May")
		}
		mcp.Progress(ctx, 1, 2, "drawing")
		return mcp.Contents{mcp.Text("3 orders"), &mcp.ImageContent{Data: []byte("png"), MIMEType: "image/png"}}, nil
	}, nil))
	mux.Prompt("review", mcp.PromptFunc(func(_ context.Context, in struct {
		File string `json:"file"`
	}) (string, error) {
		return "Review " + in.File, nil
	}, nil))
	mux.Resource("notes://{user}/{id}", mcp.ResourceFunc(func(_ context.Context, in noteIn) (string, error) {
		return "a note of " + in.User, nil
	}, nil))
	return mux
}

func printReport(ctx context.Context, conn *mcp.Conn, out io.Writer) error {
	ctx = mcp.WithProgress(ctx, func(p *mcp.ProgressParams) {
		fmt.Fprintln(out, p.Progress, p.Message) // p.Total is nil if it is unknown
	})
	res, err := mcp.Call[*mcp.CallToolResult](ctx, conn, "report", map[string]any{"month": "May"})
	if err != nil {
		return err // a *mcp.ToolError if the tool failed
	}
	for _, block := range res.Content {
		switch block := block.(type) {
		case *mcp.TextContent:
			fmt.Fprintln(out, block.Text)
		case *mcp.ImageContent:
			fmt.Fprintln(out, block.MIMEType, len(block.Data), "bytes")
		}
	}
	prompt, err := conn.GetPrompt(ctx, &mcp.GetPromptParams{Name: "review", Arguments: map[string]string{"file": "main.go"}})
	if err != nil {
		return err
	}
	note, err := conn.ReadResource(ctx, &mcp.ReadResourceParams{URI: "notes://ada/1"})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, len(prompt.Messages), "messages,", len(note.Contents), "contents")
	return nil
}

// TestWholeResults runs the client with all transports and revisions.
func TestWholeResults(t *testing.T) {
	mcptest.Run(t, newReports(), func(t *testing.T, conn *mcp.Conn) {
		var out strings.Builder
		err := printReport(t.Context(), conn, &out)
		if want := "1 drawing\n3 orders\nimage/png 3 bytes\n1 messages, 1 contents\n"; err != nil || out.String() != want {
			t.Errorf("printed %q, %v; want %q", &out, err, want)
		}
		_, err = mcp.Call[*mcp.CallToolResult](t.Context(), conn, "report", map[string]any{"month": "June"})
		if failed := new(mcp.ToolError); !errors.As(err, &failed) || !strings.Contains(err.Error(), "there is only May") {
			t.Errorf("got %v", err)
		}
	})
}
