// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	mark "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func serveMark() error { return server.ServeStdio(newMark()) }

// markSuggest provides completions for mcp-go.
type markSuggest struct{}

func (markSuggest) CompletePromptArgument(_ context.Context, _ string, argument mark.CompleteArgument, _ mark.CompleteContext) (*mark.Completion, error) {
	return &mark.Completion{Values: suggest(argument.Name, argument.Value)}, nil
}

func (markSuggest) CompleteResourceArgument(_ context.Context, _ string, argument mark.CompleteArgument, _ mark.CompleteContext) (*mark.Completion, error) {
	return &mark.Completion{Values: suggest(argument.Name, argument.Value)}, nil
}

// markTool adds a tool that returns a text.
func markTool(s *server.MCPServer, name string, fn func(ctx context.Context, req mark.CallToolRequest) (string, error), opts ...mark.ToolOption) {
	s.AddTool(mark.NewTool(name, opts...), func(ctx context.Context, req mark.CallToolRequest) (*mark.CallToolResult, error) {
		text, err := fn(ctx, req)
		if err != nil {
			return mark.NewToolResultError(err.Error()), nil
		}
		return mark.NewToolResultText(text), nil
	})
}

// newMark returns the server made with mcp-go.
func newMark() *server.MCPServer {
	s := server.NewMCPServer("mcp-go", "v1", server.WithToolCapabilities(true), server.WithElicitation(), server.WithRoots(),
		server.WithLogging(), server.WithCompletions(), server.WithPromptCompletionProvider(markSuggest{}), server.WithResourceCompletionProvider(markSuggest{}),
		server.WithResourceCapabilities(true, true), server.WithPromptCapabilities(true))
	s.EnableSampling()
	s.AddTool(mark.NewTool("add", mark.WithNumber("a"), mark.WithNumber("b"), mark.WithOutputSchema[addOut]()),
		func(_ context.Context, req mark.CallToolRequest) (*mark.CallToolResult, error) {
			sum := req.GetInt("a", 0) + req.GetInt("b", 0)
			return mark.NewToolResultStructured(addOut{sum}, fmt.Sprintf(`{"sum":%d}`, sum)), nil
		})
	s.AddTool(mark.NewTool("show"), func(context.Context, mark.CallToolRequest) (*mark.CallToolResult, error) {
		return &mark.CallToolResult{Content: []mark.Content{
			mark.NewTextContent("all"),
			mark.NewImageContent("aW1hZ2U=", "image/png"),
			mark.NewAudioContent("YXVkaW8=", "audio/wav"),
			mark.NewResourceLink("demo://readme", "readme", "", ""),
			mark.NewEmbeddedResource(mark.BlobResourceContents{URI: "demo://blob", Blob: "YmxvYg=="}),
		}}, nil
	})
	addAskingMark(s)
	addTellingMark(s)
	gate := newGate()
	markTool(s, "wait", func(ctx context.Context, _ mark.CallToolRequest) (string, error) { return "", gate.wait(ctx) })
	markTool(s, "waits", func(ctx context.Context, _ mark.CallToolRequest) (string, error) { return "", pass(ctx, gate.began) })
	markTool(s, "stopped", func(ctx context.Context, _ mark.CallToolRequest) (string, error) { return "", pass(ctx, gate.ended) })
	markTool(s, "fail", func(context.Context, mark.CallToolRequest) (string, error) { return "", errBroken })

	s.AddPrompt(mark.NewPrompt("greet", mark.WithArgument("name")), func(_ context.Context, req mark.GetPromptRequest) (*mark.GetPromptResult, error) {
		greeting := mark.NewTextContent("Greet " + req.Params.Arguments["name"])
		return mark.NewGetPromptResult("", []mark.PromptMessage{mark.NewPromptMessage(mark.RoleUser, greeting)}), nil
	})
	read := func(_ context.Context, req mark.ReadResourceRequest) ([]mark.ResourceContents, error) {
		uri := req.Params.URI
		return []mark.ResourceContents{mark.TextResourceContents{URI: uri, MIMEType: "text/plain", Text: itemText(uri)}}, nil
	}
	s.AddResource(mark.NewResource("demo://readme", "readme"), read)
	s.AddResourceTemplate(mark.NewResourceTemplate("demo://item/{id}", "item"), read)
	return s
}

// addAskingMark adds the tools that send requests to the client. They use the form of the
// modern era, which mcp-go translates for older clients.
func addAskingMark(s *server.MCPServer) {
	asking := func(name string, ask func(b *server.InputRequestBuilder), finish func(answers mark.InputResponses) (string, error)) {
		s.AddTool(mark.NewTool(name), func(_ context.Context, req mark.CallToolRequest) (*mark.CallToolResult, error) {
			if _, ok := req.Params.InputResponses["q"]; !ok {
				b := server.NewInputRequestBuilder("asked")
				ask(b)
				return b.ToolResult(), nil
			}
			text, err := finish(req.Params.InputResponses)
			return mark.NewToolResultText(text), err
		})
	}
	asking("ask", func(b *server.InputRequestBuilder) {
		b.Elicit("q", mark.ElicitationParams{Mode: "form", Message: whoAreYou, RequestedSchema: json.RawMessage(nameSchema)})
	}, func(answers mark.InputResponses) (string, error) {
		answer := server.ElicitationResponse(answers, "q")
		if answer == nil {
			return "", errors.New("no form")
		}
		content, _ := answer.Content.(map[string]any)
		return fmt.Sprint("hello ", content["name"]), nil
	})
	asking("visit", func(b *server.InputRequestBuilder) {
		b.Elicit("q", mark.ElicitationParams{Mode: "url", Message: "Go there", URL: visitURL, ElicitationID: "1"})
	}, func(answers mark.InputResponses) (string, error) {
		if answer := server.ElicitationResponse(answers, "q"); answer == nil || answer.Action != mark.ElicitationResponseActionAccept {
			return "", fmt.Errorf("answered %+v", answer)
		}
		return "visited", nil
	})
	asking("sample", func(b *server.InputRequestBuilder) {
		b.Sample("q", mark.CreateMessageParams{MaxTokens: 10, Messages: []mark.SamplingMessage{{Role: "user", Content: mark.NewTextContent("ping")}}})
	}, func(answers mark.InputResponses) (string, error) {
		answer := server.SamplingResponse(answers, "q")
		if answer == nil {
			return "", errors.New("no message")
		}
		text, err := samplingText(answer)
		return "model: " + text, err
	})
	asking("roots", func(b *server.InputRequestBuilder) { b.Roots("q") }, func(answers mark.InputResponses) (string, error) {
		answer := server.RootsResponse(answers, "q")
		if answer == nil || len(answer.Roots) != 1 {
			return "", fmt.Errorf("answered %+v", answer)
		}
		return answer.Roots[0].URI, nil
	})
}

// addTellingMark adds the tools that send notifications to the client.
func addTellingMark(s *server.MCPServer) {
	markTool(s, "count", func(ctx context.Context, req mark.CallToolRequest) (string, error) {
		if req.Params.Meta == nil {
			return "", errors.New("no progress token")
		}
		steps := req.GetInt("steps", 0)
		for i := range steps {
			if err := s.SendNotificationToClient(ctx, "notifications/progress", map[string]any{
				"progressToken": req.Params.Meta.ProgressToken, "progress": i + 1, "total": steps,
			}); err != nil {
				return "", err
			}
		}
		return "counted", nil
	}, mark.WithNumber("steps"))
	markTool(s, "log", func(ctx context.Context, _ mark.CallToolRequest) (string, error) {
		return "", s.SendLogMessageToClient(ctx, mark.NewLoggingMessageNotification(mark.LoggingLevelInfo, "", "logged"))
	})
	markTool(s, "grow", func(context.Context, mark.CallToolRequest) (string, error) {
		markTool(s, "grown", func(context.Context, mark.CallToolRequest) (string, error) { return "", nil })
		return "grown", nil
	})
	markTool(s, "touch", func(context.Context, mark.CallToolRequest) (string, error) {
		s.SendNotificationToAllClients(mark.MethodNotificationResourceUpdated, map[string]any{"uri": "demo://readme"})
		return "touched", nil
	})
}
