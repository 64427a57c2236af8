// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/go-psi/psi/mcp"
)

// A client can be asked everything that it has a function for. The call returns once all
// questions are answered.
func ExampleClientOptions() {
	type confirm struct {
		Sure bool `json:"sure"`
	}
	mux := mcp.NewMux("files", "v1.0.0", nil)
	mux.Tool("clean", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		answer, err := mcp.Elicit[confirm](ctx, "confirm", "Delete all drafts?")
		if err != nil || !answer.Sure {
			return "kept", err
		}
		return "deleted", nil
	}, nil))
	client := mcp.NewClient("host", "v1.0.0", &mcp.ClientOptions{
		Elicit: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			fmt.Println(p.Message) // a program shows a form
			return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: json.RawMessage(`{"sure":true}`)}, nil
		},
	})
	ctx := context.Background()
	conn, err := client.Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(mcp.Call[string](ctx, conn, "clean", nil))
	// Output:
	// Delete all drafts?
	// deleted <nil>
}

// Independent questions are asked together.
func ExampleAsk() {
	mux := mcp.NewMux("travel", "v1.0.0", nil)
	mux.Tool("plan", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		var trip struct {
			To string `json:"to"`
		}
		var folders []mcp.Root
		if err := mcp.Ask(ctx, mcp.ElicitQuestion("trip", "Where to?", &trip), mcp.RootsQuestion("folders", &folders)); err != nil {
			return "", err
		}
		return fmt.Sprintf("the plan for %s goes to %s", trip.To, folders[0].URI), nil
	}, nil))
	client := mcp.NewClient("host", "v1.0.0", &mcp.ClientOptions{
		Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: json.RawMessage(`{"to":"Lisbon"}`)}, nil
		},
		Roots: []mcp.Root{{URI: "file:///home/ada/trips"}},
	})
	ctx := context.Background()
	conn, err := client.Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(mcp.Call[string](ctx, conn, "plan", nil))
	// Output: the plan for Lisbon goes to file:///home/ada/trips <nil>
}

// The fields of a form can be determined at run time.
func ExampleElicitSchemaQuestion() {
	mux := mcp.NewMux("survey", "v1.0.0", nil)
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		schema := json.RawMessage(`{"type":"object","properties":{"colour":{"type":"string","enum":["red","blue"]}},"required":["colour"]}`)
		var answers json.RawMessage
		err := mcp.Ask(ctx, mcp.ElicitSchemaQuestion("survey", "Which one?", schema, &answers))
		return string(answers), err
	}, nil))
	client := mcp.NewClient("host", "v1.0.0", &mcp.ClientOptions{
		Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: json.RawMessage(`{"colour":"blue"}`)}, nil
		},
	})
	ctx := context.Background()
	conn, err := client.Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(mcp.Call[string](ctx, conn, "ask", nil))
	// Output: {"colour":"blue"} <nil>
}

// A tool works only in the directories that the client allows.
func ExampleRoots() {
	mux := mcp.NewMux("editor", "v1.0.0", nil)
	mux.Tool("where", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		roots, err := mcp.Roots(ctx, "folders")
		if err != nil || len(roots) == 0 {
			return "nowhere", err
		}
		return roots[0].URI, nil
	}, nil))
	client := mcp.NewClient("host", "v1.0.0", &mcp.ClientOptions{
		Roots: []mcp.Root{{URI: "file:///home/ada/project", Name: "project"}},
	})
	ctx := context.Background()
	conn, err := client.Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(mcp.Call[string](ctx, conn, "where", nil))
	// Output: file:///home/ada/project <nil>
}

// A tool uses the client's model.
func ExampleSample() {
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.Tool("summarize", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		res, err := mcp.Sample(ctx, "summary", &mcp.CreateMessageParams{
			SystemPrompt: "Answer in one sentence.",
			Messages:     []*mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text("Summarize: …")}}},
			MaxTokens:    100,
		})
		if err != nil {
			return "", err
		}
		return res.Content[0].(*mcp.TextContent).Text, nil
	}, nil))
	client := mcp.NewClient("host", "v1.0.0", &mcp.ClientOptions{
		Sample: func(_ context.Context, _ *mcp.Conn, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			fmt.Println("the model is asked for", p.MaxTokens, "tokens at most")
			return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Content: mcp.SamplingContent{mcp.Text("It is short.")}, Model: "a-model"}, nil
		},
	})
	ctx := context.Background()
	conn, err := client.Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(mcp.Call[string](ctx, conn, "summarize", nil))
	// Output:
	// the model is asked for 100 tokens at most
	// It is short. <nil>
}

// Secrets such as passwords must not pass through the client. Ask for them on a page of the
// server.
func ExampleElicitURL() {
	paid := false // noted by the page
	mux := mcp.NewMux("shop", "v1.0.0", nil)
	mux.Tool("buy", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		if err := mcp.ElicitURL(ctx, "pay", "Please pay.", "https://shop.example/pay/4711"); err != nil {
			return "", err
		}
		if !paid { // that the user went there does not mean that anything was done
			return "not paid yet", nil
		}
		return "thank you", nil
	}, nil))
	client := mcp.NewClient("host", "v1.0.0", &mcp.ClientOptions{
		ElicitURL: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			fmt.Println(p.Message, p.URL) // a program asks before it opens a browser
			paid = true
			return &mcp.ElicitResult{Action: mcp.ActionAccept}, nil
		},
	})
	ctx := context.Background()
	conn, err := client.Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(mcp.Call[string](ctx, conn, "buy", nil))
	// Output:
	// Please pay. https://shop.example/pay/4711
	// thank you <nil>
}
