// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"context"
	"encoding/json"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func serveSDK() error { return newSDK().Run(context.Background(), &sdk.StdioTransport{}) }

func sdkText(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// sdkTool adds a tool that returns a text.
func sdkTool[In any](s *sdk.Server, name string, fn func(ctx context.Context, req *sdk.CallToolRequest, in In) (string, error)) {
	sdk.AddTool(s, &sdk.Tool{Name: name}, func(ctx context.Context, req *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		text, err := fn(ctx, req, in)
		if err != nil {
			return nil, nil, err
		}
		return sdkText(text), nil, nil
	})
}

// newSDK returns the server made with the Go SDK.
func newSDK() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "go-sdk", Version: "v1"}, &sdk.ServerOptions{
		CompletionHandler: func(_ context.Context, req *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
			argument := req.Params.Argument
			return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: suggest(argument.Name, argument.Value)}}, nil
		},
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	sdk.AddTool(s, &sdk.Tool{Name: "add"}, func(_ context.Context, _ *sdk.CallToolRequest, in addIn) (*sdk.CallToolResult, addOut, error) {
		return nil, addOut{in.A + in.B}, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "show"}, func(context.Context, *sdk.CallToolRequest, none) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "all"},
			&sdk.ImageContent{Data: []byte("image"), MIMEType: "image/png"},
			&sdk.AudioContent{Data: []byte("audio"), MIMEType: "audio/wav"},
			&sdk.ResourceLink{URI: "demo://readme", Name: "readme"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "demo://blob", Blob: []byte("blob")}},
		}}, nil, nil
	})
	addAskingSDK(s)
	addTellingSDK(s)
	gate := newGate()
	sdkTool(s, "wait", func(ctx context.Context, _ *sdk.CallToolRequest, _ none) (string, error) { return "", gate.wait(ctx) })
	sdkTool(s, "waits", func(ctx context.Context, _ *sdk.CallToolRequest, _ none) (string, error) {
		return "", pass(ctx, gate.began)
	})
	sdkTool(s, "stopped", func(ctx context.Context, _ *sdk.CallToolRequest, _ none) (string, error) {
		return "", pass(ctx, gate.ended)
	})
	sdkTool(s, "fail", func(context.Context, *sdk.CallToolRequest, none) (string, error) { return "", errBroken })

	s.AddPrompt(&sdk.Prompt{Name: "greet", Arguments: []*sdk.PromptArgument{{Name: "name"}}}, func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		greeting := &sdk.TextContent{Text: "Greet " + req.Params.Arguments["name"]}
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: greeting}}}, nil
	})
	read := func(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		uri := req.Params.URI
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: itemText(uri)}}}, nil
	}
	s.AddResource(&sdk.Resource{Name: "readme", URI: "demo://readme"}, read)
	s.AddResourceTemplate(&sdk.ResourceTemplate{Name: "item", URITemplate: "demo://item/{id}"}, read)
	return s
}

// addAskingSDK adds the tools that send requests to the client. They use the form of the
// modern era, which the SDK translates for older clients.
func addAskingSDK(s *sdk.Server) {
	asking := func(name string, question sdk.InputRequest, finish func(answer sdk.InputResponse) (string, error)) {
		sdk.AddTool(s, &sdk.Tool{Name: name}, func(_ context.Context, req *sdk.CallToolRequest, _ none) (*sdk.CallToolResult, any, error) {
			answer, ok := req.Params.InputResponses["q"]
			if !ok {
				return &sdk.CallToolResult{RequestState: "asked", InputRequests: sdk.InputRequestMap{"q": question}}, nil, nil
			}
			text, err := finish(answer)
			return sdkText(text), nil, err
		})
	}
	asking("ask", &sdk.ElicitParams{Mode: "form", Message: whoAreYou, RequestedSchema: json.RawMessage(nameSchema)}, func(answer sdk.InputResponse) (string, error) {
		form, ok := answer.(*sdk.ElicitResult)
		if !ok {
			return "", fmt.Errorf("answered %T", answer)
		}
		return fmt.Sprint("hello ", form.Content["name"]), nil
	})
	asking("visit", &sdk.ElicitParams{Mode: "url", Message: "Go there", URL: visitURL, ElicitationID: "1"}, func(answer sdk.InputResponse) (string, error) {
		if visit, ok := answer.(*sdk.ElicitResult); !ok || visit.Action != "accept" {
			return "", fmt.Errorf("answered %+v", answer)
		}
		return "visited", nil
	})
	ping := &sdk.CreateMessageParams{MaxTokens: 10, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "ping"}}}}
	asking("sample", ping, func(answer sdk.InputResponse) (string, error) {
		text, err := samplingText(answer)
		return "model: " + text, err
	})
	asking("roots", &sdk.ListRootsParams{}, func(answer sdk.InputResponse) (string, error) {
		roots, ok := answer.(*sdk.ListRootsResult)
		if !ok || len(roots.Roots) != 1 {
			return "", fmt.Errorf("answered %+v", answer)
		}
		return roots.Roots[0].URI, nil
	})
}

// samplingText returns the text of a sampling result, whose content is a block or a list of
// blocks.
func samplingText(answer any) (string, error) {
	type message struct {
		Content json.RawMessage `json:"content"`
	}
	m, err := convert[message](answer, nil)
	if err != nil {
		return "", err
	}
	if m.Content[0] != '[' {
		m.Content = fmt.Appendf(nil, "[%s]", m.Content)
	}
	var blocks []struct{ Text string }
	if err := json.Unmarshal(m.Content, &blocks); err != nil || len(blocks) != 1 {
		return "", fmt.Errorf("answered %s, %w", m.Content, err)
	}
	return blocks[0].Text, nil
}

// addTellingSDK adds the tools that send notifications to the client.
func addTellingSDK(s *sdk.Server) {
	sdkTool(s, "count", func(ctx context.Context, req *sdk.CallToolRequest, in countIn) (string, error) {
		for i := range in.Steps {
			if err := req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: req.Params.GetProgressToken(), Progress: float64(i + 1), Total: float64(in.Steps),
			}); err != nil {
				return "", err
			}
		}
		return "counted", nil
	})
	sdkTool(s, "log", func(ctx context.Context, req *sdk.CallToolRequest, _ none) (string, error) {
		return "", req.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: "logged"})
	})
	sdkTool(s, "grow", func(context.Context, *sdk.CallToolRequest, none) (string, error) {
		sdkTool(s, "grown", func(context.Context, *sdk.CallToolRequest, none) (string, error) { return "", nil })
		return "grown", nil
	})
	sdkTool(s, "touch", func(ctx context.Context, _ *sdk.CallToolRequest, _ none) (string, error) {
		return "touched", s.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: "demo://readme"})
	})
}
