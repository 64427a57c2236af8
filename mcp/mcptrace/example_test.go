// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptrace_test

import (
	"context"
	"fmt"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptrace"
)

// A trace shows what the results of calls do not: here, which revision was negotiated, and
// that a tool asked a question before it answered.
func ExampleWithClientTrace() {
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		in, err := mcp.Elicit[struct {
			Name string `json:"name"`
		}](ctx, "name", "What is your name?")
		return "Hello, " + in.Name + "!", err
	}, nil))
	client := mcp.NewClient("host", "v1.0.0", &mcp.ClientOptions{
		Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: []byte(`{"name":"Ada"}`)}, nil
		},
	})

	ctx := mcptrace.WithClientTrace(context.Background(), &mcptrace.ClientTrace{
		ProbeSent: func(i mcptrace.ProbeInfo) { fmt.Println("probe:", i.Method) },
		EraChosen: func(era mcptrace.EraInfo) { fmt.Println("speaks", era.Version) },
		Question:  func(q mcptrace.QuestionInfo) { fmt.Println("question:", q.Method) },
		Round:     func(r mcptrace.RoundInfo) { fmt.Println("round", r.Round, "of", r.Name) },
	})
	conn, err := client.Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(mcp.Call[string](ctx, conn, "greet", nil))
	// Output:
	// probe: server/discover
	// speaks 2026-07-28
	// question: elicitation/create
	// round 2 of greet
	// Hello, Ada! <nil>
}
