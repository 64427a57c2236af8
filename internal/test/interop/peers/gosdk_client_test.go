// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// An sdkClient is a client of the Go SDK.
type sdkClient struct {
	*sdk.ClientSession
	progress atomic.Pointer[func(float64)] // progress callback of the last call
}

// connectSDK connects the Go SDK's client over the transport returned by open.
func connectSDK(open func(t *testing.T) sdk.Transport) func(t *testing.T, version string, told *told) client {
	return func(t *testing.T, version string, told *told) client {
		t.Helper()
		told.late = true
		c := &sdkClient{}
		peer := sdk.NewClient(&sdk.Implementation{Name: "go-sdk", Version: "v1"}, c.options(told))
		peer.AddRoots(&sdk.Root{URI: "file:///psi"})
		var err error
		if c.ClientSession, err = peer.Connect(limited(t), open(t), &sdk.ClientSessionOptions{ProtocolVersion: version}); err != nil {
			t.Fatalf("connect: %v", err)
		}
		if eraOf(c.version()) == "legacy" {
			if err := c.SetLoggingLevel(limited(t), &sdk.SetLoggingLevelParams{Level: "info"}); err != nil {
				t.Logf("logging/setLevel: %v", err) // the feature will fail
			}
		}
		return c
	}
}

func (c *sdkClient) options(told *told) *sdk.ClientOptions {
	return &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{
			RootsV2:     &sdk.RootCapabilities{ListChanged: true},
			Sampling:    &sdk.SamplingCapabilities{},
			Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}},
		},
		ElicitationHandler: func(_ context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			if req.Params.Mode == "url" {
				if req.Params.URL != visitURL {
					return nil, fmt.Errorf("an unknown URL %q", req.Params.URL)
				}
				return &sdk.ElicitResult{Action: "accept"}, nil
			}
			return &sdk.ElicitResult{Action: "accept", Content: answer(req.Params.Message)}, nil
		},
		CreateMessageHandler: func(_ context.Context, req *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
			asked, ok := req.Params.Messages[0].Content.(*sdk.TextContent)
			if !ok {
				return nil, errors.New("not a text")
			}
			return &sdk.CreateMessageResult{Role: "assistant", Model: "test", Content: &sdk.TextContent{Text: "pong to " + asked.Text}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
			if tell := c.progress.Load(); tell != nil {
				(*tell)(req.Params.Progress)
			}
		},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { put(told.tools, true) },
		ResourceUpdatedHandler: func(_ context.Context, req *sdk.ResourceUpdatedNotificationRequest) {
			put(told.updated, req.Params.URI)
		},
		LoggingMessageHandler: func(_ context.Context, req *sdk.LoggingMessageRequest) {
			put(told.logged, logLine(string(req.Params.Level), req.Params.Data))
		},
	}
}

func (c *sdkClient) version() string { return c.InitializeResult().ProtocolVersion }
func (c *sdkClient) close() error    { return c.Close() }

func (c *sdkClient) code(err error) int {
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return int(wire.Code)
	}
	return 0
}

func (c *sdkClient) names(ctx context.Context) ([]string, error) {
	return sortedNames(
		namesOf(c.Tools(ctx, nil), func(t *sdk.Tool) string { return t.Name }),
		namesOf(c.Prompts(ctx, nil), func(p *sdk.Prompt) string { return p.Name }),
		namesOf(c.Resources(ctx, nil), func(r *sdk.Resource) string { return r.URI }),
		namesOf(c.ResourceTemplates(ctx, nil), func(t *sdk.ResourceTemplate) string { return t.URITemplate }),
	)
}

func (c *sdkClient) call(ctx context.Context, tool string, args any, progress func(float64)) (*outcome, error) {
	params := &sdk.CallToolParams{Name: tool, Arguments: args, Meta: sdk.Meta{}}
	if progress != nil {
		params.Meta["progressToken"] = "p"
		c.progress.Store(&progress)
	}
	if eraOf(c.version()) == "modern" {
		params.Meta[sdk.MetaKeyLogLevel] = "info"
	}
	return convert[outcome](c.CallTool(ctx, params))
}

func (c *sdkClient) prompt(ctx context.Context, name string, args map[string]string) (string, error) {
	res, err := convert[wirePrompt](c.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: args}))
	if err != nil {
		return "", err
	}
	return res.text()
}

func (c *sdkClient) read(ctx context.Context, uri string) (string, error) {
	res, err := convert[wireRead](c.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri}))
	if err != nil {
		return "", err
	}
	return res.text()
}

func (c *sdkClient) complete(ctx context.Context, ref, argument, value string) ([]string, error) {
	params := &sdk.CompleteParams{Argument: sdk.CompleteParamsArgument{Name: argument, Value: value}}
	if strings.Contains(ref, "://") {
		params.Ref = &sdk.CompleteReference{Type: "ref/resource", URI: ref}
	} else {
		params.Ref = &sdk.CompleteReference{Type: "ref/prompt", Name: ref}
	}
	res, err := c.Complete(ctx, params)
	if err != nil {
		return nil, err
	}
	return res.Completion.Values, nil
}

// listen subscribes to a resource. The client listens for list changes from the start.
func (c *sdkClient) listen(ctx context.Context, uri string) error {
	if uri == "" {
		return nil
	}
	if eraOf(c.version()) == "legacy" {
		return c.Subscribe(ctx, &sdk.SubscribeParams{URI: uri})
	}
	go func() { _ = c.Subscribe(ctx, &sdk.SubscribeParams{URI: uri}) }() // returns when the stream ends
	return nil
}
