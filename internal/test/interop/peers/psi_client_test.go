// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// A psiClient is psi's client.
type psiClient struct {
	*mcp.Conn
	told *told
}

// connectPsi connects psi's client over the transport returned by open.
func connectPsi(open func(t *testing.T) transport.Transport) func(t *testing.T, version string, told *told) client {
	return func(t *testing.T, version string, told *told) client {
		t.Helper()
		log := logger(t)
		opts := psiOptions(told)
		opts.Version, opts.Logger = version, log
		conn, err := mcp.NewClient("psi", "v1", opts).Connect(limited(t), transport.WithLogging(open(t), log))
		if err != nil {
			t.Fatalf("connect: %v", err)
		}
		return &psiClient{conn, told}
	}
}

// answer returns the user's answer to a question of the servers.
func answer(message string) map[string]any {
	switch message {
	case whoAreYou:
		return map[string]any{"name": "Ada"}
	case everythingForm:
		return map[string]any{"name": "Ada", "check": true, "integer": 7, "untitledMultipleSelectEnum": []string{"Piano", "Bass"}}
	default: // for the quickstart
		return map[string]any{"address": "Via Roma 1", "agreed": true}
	}
}

func psiOptions(told *told) *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ConnectTimeout: 10 * time.Second, // node starts slowly
		LogLevel:       "info",
		Roots:          []mcp.Root{{URI: "file:///psi", Name: "psi"}},
		Elicit: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			content, err := json.Marshal(answer(p.Message))
			return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: content}, err
		},
		ElicitURL: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			if p.URL != visitURL {
				return nil, fmt.Errorf("an unknown URL %q", p.URL)
			}
			return &mcp.ElicitResult{Action: mcp.ActionAccept}, nil
		},
		Sample: func(_ context.Context, _ *mcp.Conn, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			text := "pong to " + textOf(p.Messages[0].Content)
			return &mcp.CreateMessageResult{Role: "assistant", Model: "test", Content: mcp.SamplingContent{mcp.Text(text)}}, nil
		},
		Log: func(_ context.Context, _ *mcp.Conn, p *mcp.LoggingMessageParams) {
			put(told.logged, logLine(string(p.Level), p.Data))
		},
	}
}

// logLine formats a log message as one line. Messages logged with slog are objects.
func logLine(level string, data any) string {
	if fields, ok := data.(map[string]any); ok && fields["msg"] != nil {
		data = fields["msg"]
	}
	return fmt.Sprintf("%s: %v", level, data)
}

func (c *psiClient) version() string    { return c.Version() }
func (c *psiClient) code(err error) int { return mcp.CodeOf(err) }
func (c *psiClient) close() error       { return c.Close() }

func (c *psiClient) names(ctx context.Context) ([]string, error) {
	return sortedNames(
		namesOf(c.Tools(ctx, nil), func(t *mcp.Tool) string { return t.Name }),
		namesOf(c.Prompts(ctx, nil), func(p *mcp.Prompt) string { return p.Name }),
		namesOf(c.Resources(ctx, nil), func(r *mcp.Resource) string { return r.URI }),
		namesOf(c.ResourceTemplates(ctx, nil), func(t *mcp.ResourceTemplate) string { return t.URITemplate }),
	)
}

func (c *psiClient) call(ctx context.Context, tool string, args any, progress func(float64)) (*outcome, error) {
	params := &mcp.CallToolParams{Name: tool}
	if args != nil {
		raw, err := json.Marshal(args)
		if err != nil {
			return nil, err
		}
		params.Arguments = raw
	}
	if progress != nil {
		ctx = mcp.WithProgress(ctx, func(p *mcp.ProgressParams) { progress(p.Progress) })
	}
	res, err := c.CallTool(ctx, params)
	if err != nil {
		return nil, err
	}
	return convert[outcome](map[string]any{
		"content": res.Content, "structuredContent": res.StructuredContent, "isError": res.IsError,
	}, nil)
}

func (c *psiClient) prompt(ctx context.Context, name string, args map[string]string) (string, error) {
	res, err := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: args})
	if err != nil {
		return "", err
	}
	wire, err := convert[wirePrompt](map[string]any{"messages": res.Messages}, nil)
	if err != nil {
		return "", err
	}
	return wire.text()
}

func (c *psiClient) read(ctx context.Context, uri string) (string, error) {
	res, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return "", err
	}
	wire, err := convert[wireRead](map[string]any{"contents": res.Contents}, nil)
	if err != nil {
		return "", err
	}
	return wire.text()
}

func (c *psiClient) complete(ctx context.Context, ref, argument, value string) ([]string, error) {
	params := &mcp.CompleteParams{Argument: mcp.CompleteArgument{Name: argument, Value: value}}
	if strings.Contains(ref, "://") {
		params.Ref = mcp.CompleteRef{Type: "ref/resource", URI: ref}
	} else {
		params.Ref = mcp.CompleteRef{Type: "ref/prompt", Name: ref}
	}
	res, err := c.Complete(ctx, params)
	if err != nil {
		return nil, err
	}
	return res.Completion.Values, nil
}

func (c *psiClient) listen(ctx context.Context, uri string) error {
	filter := mcp.SubscriptionFilter{ToolsListChanged: true}
	if uri != "" {
		filter.ResourceSubscriptions = []string{uri}
	}
	sub, err := c.Listen(ctx, filter, func(change mcp.Change) {
		switch change.Method {
		case mcp.NotificationToolsListChanged:
			put(c.told.tools, true)
		case mcp.NotificationResourceUpdated:
			put(c.told.updated, change.URI)
		}
	})
	if err == nil && (!sub.Accepted().ToolsListChanged || len(sub.Accepted().ResourceSubscriptions) != len(filter.ResourceSubscriptions)) {
		err = fmt.Errorf("accepted %+v", sub.Accepted())
	}
	return err
}
