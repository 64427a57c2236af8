// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	mcpgo "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mark "github.com/mark3labs/mcp-go/mcp"
)

// A markClient is a client of mcp-go.
type markClient struct {
	*mcpgo.Client
	progress atomic.Pointer[func(float64)]
}

// connectMark connects mcp-go's client over the transport returned by open.
func connectMark(open func(t *testing.T, version string) (transport.Interface, error)) func(t *testing.T, version string, told *told) client {
	return func(t *testing.T, version string, told *told) client {
		t.Helper()
		told.late = true
		tr, err := open(t, version)
		if err != nil {
			t.Fatal(err)
		}
		answers := markAnswers{}
		c := &markClient{Client: mcpgo.NewClient(tr, mcpgo.WithProtocolVersion(version), mcpgo.WithElicitationHandler(answers),
			mcpgo.WithSamplingHandler(answers), mcpgo.WithRootsHandler(answers),
			mcpgo.WithClientCapabilities(mark.ClientCapabilities{Elicitation: &mark.ElicitationCapability{Form: &none{}, URL: &none{}}}))}
		c.OnNotification(func(n mark.JSONRPCNotification) { c.heard(told, n) })
		if err := c.Start(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		init := mark.InitializeRequest{}
		init.Params.ProtocolVersion = version
		init.Params.ClientInfo = mark.Implementation{Name: "mcp-go", Version: "v1"}
		if _, err := c.Initialize(limited(t), init); err != nil {
			t.Fatalf("initialize: %v", err)
		}
		if err := c.SetLevel(limited(t), mark.SetLevelRequest{Params: mark.SetLevelParams{Level: mark.LoggingLevelInfo}}); err != nil {
			t.Logf("logging/setLevel: %v", err) // the feature will fail
		}
		return c
	}
}

func (c *markClient) heard(told *told, n mark.JSONRPCNotification) {
	fields := n.Params.AdditionalFields
	switch n.Method {
	case "notifications/progress":
		if tell := c.progress.Load(); tell != nil {
			done, _ := fields["progress"].(float64)
			(*tell)(done)
		}
	case "notifications/tools/list_changed":
		put(told.tools, true)
	case "notifications/resources/updated":
		put(told.updated, fmt.Sprint(fields["uri"]))
	case "notifications/message":
		put(told.logged, logLine(fmt.Sprint(fields["level"]), fields["data"]))
	}
}

// markAnswers answers requests from servers.
type markAnswers struct{}

func (markAnswers) Elicit(_ context.Context, req mark.ElicitationRequest) (*mark.ElicitationResult, error) {
	accepted := mark.ElicitationResponse{Action: mark.ElicitationResponseActionAccept}
	switch {
	case req.Params.Mode != "url":
		accepted.Content = answer(req.Params.Message)
	case req.Params.URL != visitURL:
		return nil, fmt.Errorf("an unknown URL %q", req.Params.URL)
	}
	return &mark.ElicitationResult{ElicitationResponse: accepted}, nil
}

func (markAnswers) CreateMessage(_ context.Context, req mark.CreateMessageRequest) (*mark.CreateMessageResult, error) {
	asked, err := samplingText(req.Messages[0])
	if err != nil {
		return nil, err
	}
	return &mark.CreateMessageResult{SamplingMessage: mark.SamplingMessage{Role: "assistant", Content: mark.NewTextContent("pong to " + asked)}, Model: "test"}, nil
}

func (markAnswers) ListRoots(context.Context, mark.ListRootsRequest) (*mark.ListRootsResult, error) {
	return &mark.ListRootsResult{Roots: []mark.Root{{URI: "file:///psi"}}}, nil
}

func (c *markClient) version() string { return c.ProtocolVersion() }
func (c *markClient) code(error) int  { return 0 } // errors have only a text
func (c *markClient) close() error    { return c.Close() }

func (c *markClient) names(ctx context.Context) (names []string, err error) {
	tools, toolsErr := c.ListTools(ctx, mark.ListToolsRequest{})
	prompts, promptsErr := c.ListPrompts(ctx, mark.ListPromptsRequest{})
	resources, resourcesErr := c.ListResources(ctx, mark.ListResourcesRequest{})
	templates, templatesErr := c.ListResourceTemplates(ctx, mark.ListResourceTemplatesRequest{})
	if err := errors.Join(toolsErr, promptsErr, resourcesErr, templatesErr); err != nil {
		return nil, err
	}
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	for _, prompt := range prompts.Prompts {
		names = append(names, prompt.Name)
	}
	for _, resource := range resources.Resources {
		names = append(names, resource.URI)
	}
	for _, template := range templates.ResourceTemplates {
		names = append(names, template.URITemplate.Raw())
	}
	slices.Sort(names)
	return names, nil
}

func (c *markClient) call(ctx context.Context, tool string, args any, progress func(float64)) (*outcome, error) {
	params := mark.CallToolParams{Name: tool, Arguments: args}
	if progress != nil {
		params.Meta = &mark.Meta{ProgressToken: "p"}
		c.progress.Store(&progress)
	}
	return convert[outcome](c.CallTool(ctx, mark.CallToolRequest{Params: params}))
}

func (c *markClient) prompt(ctx context.Context, name string, args map[string]string) (string, error) {
	res, err := convert[wirePrompt](c.GetPrompt(ctx, mark.GetPromptRequest{Params: mark.GetPromptParams{Name: name, Arguments: args}}))
	if err != nil {
		return "", err
	}
	return res.text()
}

func (c *markClient) read(ctx context.Context, uri string) (string, error) {
	res, err := convert[wireRead](c.ReadResource(ctx, mark.ReadResourceRequest{Params: mark.ReadResourceParams{URI: uri}}))
	if err != nil {
		return "", err
	}
	return res.text()
}

func (c *markClient) complete(ctx context.Context, ref, argument, value string) ([]string, error) {
	params := mark.CompleteParams{Argument: mark.CompleteArgument{Name: argument, Value: value}}
	if strings.Contains(ref, "://") {
		params.Ref = mark.ResourceReference{Type: "ref/resource", URI: ref}
	} else {
		params.Ref = mark.PromptReference{Type: "ref/prompt", Name: ref}
	}
	res, err := c.Complete(ctx, mark.CompleteRequest{Params: params})
	if err != nil {
		return nil, err
	}
	return res.Completion.Values, nil
}

func (c *markClient) listen(ctx context.Context, uri string) error {
	if eraOf(c.version()) == "legacy" {
		if uri == "" {
			return nil
		}
		return c.Subscribe(ctx, mark.SubscribeRequest{Params: mark.SubscribeParams{URI: uri}})
	}
	filter := mark.SubscriptionFilter{ToolsListChanged: true}
	if uri != "" {
		filter.ResourceSubscriptions = []string{uri}
	}
	go func() { _ = c.Listen(ctx, filter) }() // returns when the stream ends
	return nil
}
