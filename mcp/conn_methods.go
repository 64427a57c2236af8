// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-psi/psi/internal/printable"
)

// send sends a request and returns its result as an R.
func send[R Result](ctx context.Context, c *Conn, method string, params any) (R, error) {
	var none R
	req, err := NewRequest(method, params)
	if err != nil {
		return none, err
	}
	res, err := c.serve(ctx, req)
	if err != nil {
		return none, err
	}
	r, ok := res.(R)
	if ok {
		return r, nil
	}
	if asked, ok := res.(*InputRequired); ok {
		return none, &InputRequiredError{asked}
	}
	return none, fmt.Errorf("mcp: %s was answered with a %T of the type %q", method, res, res.base().ResultType)
}

// An InputRequiredError is returned by calls that a server asked about, if the
// client does not answer by itself; see [ClientOptions.ManualInput]. To go on, the
// call is made again with [Retry] filled in.
type InputRequiredError struct{ *InputRequired }

func (e *InputRequiredError) Error() string {
	return fmt.Sprintf("mcp: the server asks %d questions before it answers", len(e.InputRequests))
}

// Discover asks what the server is and offers (server/discover).
func (c *Conn) Discover(ctx context.Context) (*DiscoverResult, error) {
	return send[*DiscoverResult](ctx, c, MethodDiscover, nil)
}

// ListTools lists one page of tools (tools/list); see [Conn.Tools] for all.
func (c *Conn) ListTools(ctx context.Context, p *ListParams) (*ListToolsResult, error) {
	return send[*ListToolsResult](ctx, c, MethodListTools, orEmpty(p))
}

// ListPrompts lists one page of prompts (prompts/list); see [Conn.Prompts] for all.
func (c *Conn) ListPrompts(ctx context.Context, p *ListParams) (*ListPromptsResult, error) {
	return send[*ListPromptsResult](ctx, c, MethodListPrompts, orEmpty(p))
}

// ListResources lists one page of resources (resources/list); see [Conn.Resources]
// for all.
func (c *Conn) ListResources(ctx context.Context, p *ListParams) (*ListResourcesResult, error) {
	return send[*ListResourcesResult](ctx, c, MethodListResources, orEmpty(p))
}

// ListResourceTemplates lists one page of templates (resources/templates/list); see
// [Conn.ResourceTemplates] for all.
func (c *Conn) ListResourceTemplates(ctx context.Context, p *ListParams) (*ListResourceTemplatesResult, error) {
	return send[*ListResourceTemplatesResult](ctx, c, MethodListResourceTemplates, orEmpty(p))
}

// CallTool calls a tool (tools/call). If the tool was listed on this connection, its
// structured content is validated against its output schema; see [OutputError]. That
// takes no longer than the call itself may.
func (c *Conn) CallTool(ctx context.Context, p *CallToolParams) (*CallToolResult, error) {
	p = orEmpty(p)
	if p.Arguments == nil {
		with := *p
		with.Arguments = json.RawMessage("{}")
		p = &with
	}
	res, err := send[*CallToolResult](ctx, c, MethodCallTool, p)
	if err != nil {
		return nil, err
	}
	ctx, done := c.bounded(ctx, MethodCallTool)
	defer done()
	if err := c.tools.checkOutput(ctx, p.Name, res); err != nil {
		return nil, err
	}
	return res, nil
}

// GetPrompt gets a prompt (prompts/get).
func (c *Conn) GetPrompt(ctx context.Context, p *GetPromptParams) (*GetPromptResult, error) {
	return send[*GetPromptResult](ctx, c, MethodGetPrompt, orEmpty(p))
}

// ReadResource reads a resource (resources/read).
func (c *Conn) ReadResource(ctx context.Context, p *ReadResourceParams) (*ReadResourceResult, error) {
	return send[*ReadResourceResult](ctx, c, MethodReadResource, orEmpty(p))
}

// Complete asks for completions of an argument (completion/complete).
func (c *Conn) Complete(ctx context.Context, p *CompleteParams) (*CompleteResult, error) {
	return send[*CompleteResult](ctx, c, MethodComplete, orEmpty(p))
}

// Ping asks the server for a sign of life: ping in the legacy era, server/discover
// in the modern one. Any answer will do, an error included. It is bounded as calls
// are.
func (c *Conn) Ping(ctx context.Context) error {
	ctx, stop := c.bounded(ctx, c.era.pingMethod())
	defer stop()
	return c.era.ping(ctx)
}

// Notify sends a notification.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	raw, err := notificationParams(method, params)
	if err != nil {
		return err
	}
	return c.wire.Send(ctx, &Envelope{Method: method, Version: c.Version(), Body: AppendNotification(nil, method, raw)})
}

func orEmpty[P any](p *P) *P {
	if p == nil {
		return new(P)
	}
	return p
}

// Call calls a tool with arguments that encode as an object and decodes its
// structured content, or, if it has none, the JSON of its only text block. A tool
// that failed is a [*ToolError].
func Call[Out any](ctx context.Context, c *Conn, tool string, args any) (Out, error) {
	var out Out
	raw, err := rawParams(args)
	if err != nil {
		return out, fmt.Errorf("mcp: arguments of %s: %w", tool, err)
	}
	res, err := c.CallTool(ctx, &CallToolParams{Name: tool, Arguments: raw})
	if err != nil {
		return out, err
	}
	if res.IsError {
		return out, &ToolError{Tool: tool, Result: res}
	}
	if text, ok := any(&out).(*string); ok && res.StructuredContent == nil {
		*text = textOf(res.Content)
		return out, nil
	}
	content := res.StructuredContent
	if content == nil {
		content = json.RawMessage(textOf(res.Content))
	}
	if err := decode(content, &out); err != nil {
		return out, fmt.Errorf("mcp: %s", decodeProblem("the output of "+tool, err))
	}
	return out, nil
}

// A ToolError is a tool's own failure.
type ToolError struct {
	Tool   string
	Result *CallToolResult
}

func (e *ToolError) Error() string {
	return fmt.Sprintf("mcp: the tool %q failed: %s", e.Tool, printable.Text(textOf(e.Result.Content)))
}

func textOf(contents Contents) string {
	var text strings.Builder
	for _, c := range contents {
		if t, ok := c.(*TextContent); ok {
			text.WriteString(t.Text)
		}
	}
	return text.String()
}
