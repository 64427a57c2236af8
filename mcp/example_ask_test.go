// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// A handler asks in the middle of its work. It reads as if the answer came back
// immediately, but the handler runs twice.
func ExampleElicit() {
	type confirm struct {
		Sure bool `json:"sure"`
	}
	mux := mcp.NewMux("files", "v1.0.0", nil)
	mux.Tool("delete", mcp.ToolFunc(func(ctx context.Context, in struct {
		Path string `json:"path"`
	}) (string, error) {
		answer, err := mcp.Elicit[confirm](ctx, "confirm", "Really delete "+in.Path+"?")
		if err != nil {
			return "", err
		}
		if !answer.Sure {
			return "kept " + in.Path, nil
		}
		return "deleted " + in.Path, nil
	}, nil))

	arguments := json.RawMessage(`{"path":"notes.txt"}`)
	asked := printRound(mux, &mcp.CallToolParams{Name: "delete", Arguments: arguments})
	printRound(mux, &mcp.CallToolParams{Name: "delete", Arguments: arguments, Resume: mcp.Resume{
		InputResponses: map[string]json.RawMessage{"confirm": json.RawMessage(`{"action":"accept","content":{"sure":true}}`)},
		RequestState:   asked.RequestState,
	}})
	// Output:
	// confirm: Really delete notes.txt?
	// deleted notes.txt
}

// Use Once for work that must not happen twice and for values that must not change between
// rounds.
func ExampleOnce() {
	type confirm struct {
		Pay bool `json:"pay"`
	}
	price := 100
	fetchPrice := func(context.Context) (int, error) { return price, nil }
	mux := mcp.NewMux("shop", "v1.0.0", nil)
	mux.Tool("buy", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		quote, err := mcp.Once(ctx, "quote", fetchPrice)
		if err != nil {
			return "", err
		}
		answer, err := mcp.Elicit[confirm](ctx, "confirm", fmt.Sprintf("Pay %d?", quote))
		if err != nil || !answer.Pay {
			return "no deal", err
		}
		return fmt.Sprintf("paid %d", quote), nil
	}, nil))

	asked := printRound(mux, &mcp.CallToolParams{Name: "buy"})
	price = 120 // the market moves while the user thinks
	printRound(mux, &mcp.CallToolParams{Name: "buy", Resume: mcp.Resume{
		InputResponses: map[string]json.RawMessage{"confirm": json.RawMessage(`{"action":"accept","content":{"pay":true}}`)},
		RequestState:   asked.RequestState,
	}})
	// Output:
	// confirm: Pay 100?
	// paid 100
}

// Replicas behind one address need the same StateKeys, so that each can open the state
// sealed by another.
func ExampleMuxOptions() {
	newMux := func(key string) *mcp.Mux {
		mux := mcp.NewMux("greeter", "v1.0.0", &mcp.MuxOptions{StateKeys: [][]byte{[]byte(key)}})
		mux.Tool("greet", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			day, err := mcp.Once(ctx, "day", func(context.Context) (string, error) { return "Monday", nil })
			if err != nil {
				return "", err
			}
			var in struct {
				Name string `json:"name"`
			}
			err = mcp.Ask(ctx, mcp.ElicitQuestion("name", "Who are you?", &in))
			return "a nice " + day + " to you, " + in.Name, err
		}, nil))
		return mux
	}
	one, two, stranger := newMux("a key of at least 16 bytes"), newMux("a key of at least 16 bytes"), newMux("the key of somebody else")

	asked := printRound(one, &mcp.CallToolParams{Name: "greet"})
	answered := &mcp.CallToolParams{Name: "greet", Resume: mcp.Resume{
		InputResponses: map[string]json.RawMessage{"name": json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`)},
		RequestState:   asked.RequestState,
	}}
	printRound(two, answered)
	printRound(stranger, answered)
	// Output:
	// name: Who are you?
	// a nice Monday to you, Ada
	// error: params.requestState was not made for this request (code -32602)
}

// printRound sends one request, as a client of the modern era does, and prints the result:
// the questions, which it returns, or the text.
func printRound(h mcp.Handler, p *mcp.CallToolParams) *mcp.InputRequired {
	res, err := h.ServeMCP(context.Background(), mcptest.NewRequest(mcp.MethodCallTool, p))
	if err != nil {
		fmt.Println("error:", err)
		return nil
	}
	switch res := res.(type) {
	case *mcp.InputRequired:
		for key, question := range res.InputRequests {
			var p mcp.ElicitParams
			_ = json.Unmarshal(question.Params, &p)
			fmt.Println(key+":", p.Message)
		}
		return res
	case *mcp.CallToolResult:
		fmt.Println(res.Content[0].(*mcp.TextContent).Text)
	}
	return nil
}
