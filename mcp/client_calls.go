// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/internal/sparse"
	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp/transport"
)

// send sends a request and returns its result as an R. If the server asks questions that
// the client does not answer, it returns an [*InputRequiredError].
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
		return none, &InputRequiredError{method, asked}
	}
	return none, wrongResultError(method, res)
}

// Do sends a request of any method, such as one of an extension, through the middleware of the
// connection, and returns its result. The result of a method that this package does not know is
// an [*EmptyResult], whose Extra holds the members, unless one of ClientOptions.Extensions has
// a type for it. Questions are answered as in other calls; those that the client does not
// answer are returned as an [*InputRequired]. Errors are those of the other methods of Conn.
// Use the function [Do] for a result of your own type.
func (c *Conn) Do(ctx context.Context, req *Request) (Result, error) {
	if req == nil {
		panic("mcp: Conn.Do: the request is nil; make one with NewRequest")
	}
	return c.serve(ctx, req)
}

// A Doer sends requests. [Conn] and [Upstream] do.
type Doer interface {
	Do(ctx context.Context, req *Request) (Result, error)
}

// Do sends a request of any method, such as one of an extension, with params as in
// [NewRequest], and decodes the result into an Out. If the result does not fit, the error wraps
// [ErrUnreadable]. If the server asks questions that the client does not answer, the error is
// an [*InputRequiredError].
func Do[Out any](ctx context.Context, c Doer, method string, params any) (Out, error) {
	var out Out
	if c == nil {
		panic("mcp: Do: the connection is nil; make one with Client.Connect or Client.Maintain")
	}
	req, err := NewRequest(method, params)
	if err != nil {
		return out, err
	}
	res, err := c.Do(ctx, req)
	if err != nil {
		return out, err
	}
	if same, ok := any(res).(Out); ok {
		return same, nil
	}
	if asked, ok := res.(*InputRequired); ok {
		return out, &InputRequiredError{method, asked}
	}
	raw, err := MarshalResult(res)
	if err == nil {
		err = unmarshal(raw, &out)
	}
	if err != nil {
		return out, fmt.Errorf("mcp: the result of %s: %w: %w", method, ErrUnreadable, err)
	}
	return out, nil
}

// wrongResultError returns the error for a result that is not the one of its method.
func wrongResultError(method string, res Result) error {
	empty, ok := res.(*EmptyResult)
	switch {
	case !ok: // of a middleware
		return fmt.Errorf("mcp: the result of %s is a %T", method, res)
	case empty.ResultType == tasking.ResultTask:
		return fmt.Errorf("mcp: the server answered %s with a task: add tasks.Client to ClientOptions.Extensions", method)
	}
	return fmt.Errorf("mcp: the server answered %s with a result of the type %q, which none of ClientOptions.Extensions understands", method, sparse.Excerpt(empty.ResultType))
}

// An InputRequiredError is returned by calls about which the server asks questions that the
// client has no functions for; see [ClientOptions].Capabilities. To continue, repeat the
// call with the [Resume] fields of its params set.
type InputRequiredError struct {
	Method string         // of the call
	Result *InputRequired // the questions
}

func (e *InputRequiredError) Error() string {
	return fmt.Sprintf("mcp: the server asks %d questions before it answers %s", len(orEmpty(e.Result).InputRequests), e.Method)
}

// Discover returns the identity and the capabilities of the server (server/discover).
func (c *Conn) Discover(ctx context.Context) (*DiscoverResult, error) {
	return send[*DiscoverResult](ctx, c, MethodDiscover, nil)
}

// ListTools returns one page of tools (tools/list). Use [Conn.Tools] to list all of them.
func (c *Conn) ListTools(ctx context.Context, p *ListParams) (*ListToolsResult, error) {
	return send[*ListToolsResult](ctx, c, MethodListTools, orEmpty(p))
}

// ListPrompts returns one page of prompts (prompts/list). Use [Conn.Prompts] to list all of
// them.
func (c *Conn) ListPrompts(ctx context.Context, p *ListParams) (*ListPromptsResult, error) {
	return send[*ListPromptsResult](ctx, c, MethodListPrompts, orEmpty(p))
}

// ListResources returns one page of resources (resources/list). Use [Conn.Resources] to
// list all of them.
func (c *Conn) ListResources(ctx context.Context, p *ListParams) (*ListResourcesResult, error) {
	return send[*ListResourcesResult](ctx, c, MethodListResources, orEmpty(p))
}

// ListResourceTemplates returns one page of templates (resources/templates/list). Use
// [Conn.ResourceTemplates] to list all of them.
func (c *Conn) ListResourceTemplates(ctx context.Context, p *ListParams) (*ListResourceTemplatesResult, error) {
	return send[*ListResourceTemplatesResult](ctx, c, MethodListResourceTemplates, orEmpty(p))
}

// CallTool calls a tool (tools/call). If the tool was listed on this connection, its
// structured content is validated against its output schema; the error is an [*OutputError],
// which has the result, if the content does not fit or could not be validated. If
// validation fails, the tools are listed again, because the schema may have changed.
// Validation has the same timeout as the call.
func (c *Conn) CallTool(ctx context.Context, p *CallToolParams) (*CallToolResult, error) {
	c.mustBeMade()
	p = orEmpty(p)
	if p.Arguments == nil {
		withArguments := *p
		withArguments.Arguments = json.RawMessage("{}")
		p = &withArguments
	}
	res, err := send[*CallToolResult](ctx, c, MethodCallTool, p)
	if err != nil {
		return nil, err
	}
	if err := c.checkOutput(ctx, p.Name, res); err != nil {
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

// Complete returns completions for an argument (completion/complete).
func (c *Conn) Complete(ctx context.Context, p *CompleteParams) (*CompleteResult, error) {
	return send[*CompleteResult](ctx, c, MethodComplete, orEmpty(p))
}

// Ping checks that the server responds. It sends ping in the legacy era and server/discover
// in the modern era. Any response counts, even an error. [ClientOptions].CallTimeout
// applies.
func (c *Conn) Ping(ctx context.Context) error {
	c.mustBeMade()
	ctx, stop := c.withCallTimeout(ctx, MethodDiscover)
	defer stop()
	return c.ping(ctx)
}

// Notify sends a notification; params are as in [NewRequest]. A nil error means that it was
// sent, not that the server has received it.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	c.mustBeMade()
	raw, err := notificationParams(method, params)
	if err != nil {
		return err
	}
	body := transport.AppendNotification(nil, method, raw)
	return privateWireError(ctx, c.wire.Send(ctx, &transport.Outgoing{Method: method, Version: c.Version(), Body: body}))
}

func orEmpty[P any](p *P) *P {
	if p == nil {
		return new(P)
	}
	return p
}

// Errors that end an iteration over a list.
var (
	// ErrRepeatedCursor means that the server returned the same cursor twice.
	ErrRepeatedCursor = errors.New("mcp: the server repeats a cursor: its list has no end")
	// ErrTooManyPages means that the list has more than a thousand pages.
	ErrTooManyPages = errors.New("mcp: the server's list has more pages than the client reads")
)

// Tools returns an iterator over the tools of all pages. If an error occurs, the iterator
// yields it with a nil tool and stops, so range over both values. A server that offers no
// tools may return [CodeMethodNotFound]. p may be nil; its cursor is the starting position.
func (c *Conn) Tools(ctx context.Context, p *ListParams) iter.Seq2[*Tool, error] {
	c.mustBeMade()
	return c.toolPages(ctx, p, c.client.opts.maxPages)
}

func (c *Conn) toolPages(ctx context.Context, p *ListParams, maxPages int) iter.Seq2[*Tool, error] {
	return pages(maxPages, p, func(p *ListParams) ([]*Tool, *string, error) {
		r, err := c.ListTools(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		return r.Tools, r.NextCursor, nil
	})
}

// Prompts returns an iterator over the prompts of all pages; see [Conn.Tools].
func (c *Conn) Prompts(ctx context.Context, p *ListParams) iter.Seq2[*Prompt, error] {
	c.mustBeMade()
	return pages(c.client.opts.maxPages, p, func(p *ListParams) ([]*Prompt, *string, error) {
		r, err := c.ListPrompts(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		return r.Prompts, r.NextCursor, nil
	})
}

// Resources returns an iterator over the resources of all pages; see [Conn.Tools].
func (c *Conn) Resources(ctx context.Context, p *ListParams) iter.Seq2[*Resource, error] {
	c.mustBeMade()
	return pages(c.client.opts.maxPages, p, func(p *ListParams) ([]*Resource, *string, error) {
		r, err := c.ListResources(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		return r.Resources, r.NextCursor, nil
	})
}

// ResourceTemplates returns an iterator over the templates of all pages; see [Conn.Tools].
func (c *Conn) ResourceTemplates(ctx context.Context, p *ListParams) iter.Seq2[*ResourceTemplate, error] {
	c.mustBeMade()
	return pages(c.client.opts.maxPages, p, func(p *ListParams) ([]*ResourceTemplate, *string, error) {
		r, err := c.ListResourceTemplates(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		return r.ResourceTemplates, r.NextCursor, nil
	})
}

// pages returns an iterator over the items of at most maxPages pages, or of all pages if
// maxPages is negative.
func pages[D any](maxPages int, p *ListParams, fetch func(*ListParams) ([]*D, *string, error)) iter.Seq2[*D, error] {
	return func(yield func(*D, error) bool) {
		params := *orEmpty(p)
		seen := map[[sha256.Size]byte]bool{} // hashes, because cursors may be long
		for n := 1; ; n++ {
			items, next, err := fetch(&params)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, d := range items {
				if !yield(d, nil) {
					return
				}
			}
			if next == nil {
				return
			}
			sum := sha256.Sum256([]byte(*next))
			switch {
			case seen[sum]:
				yield(nil, ErrRepeatedCursor)
				return
			case n == maxPages:
				yield(nil, ErrTooManyPages)
				return
			}
			seen[sum] = true
			params.Cursor = next
		}
	}
}

// A ToolCaller calls tools. [Conn] and [Upstream] do.
type ToolCaller interface {
	CallTool(ctx context.Context, p *CallToolParams) (*CallToolResult, error)
}

// Call calls a tool with arguments that encode as a JSON object. It decodes the structured
// content of the result. If there is none, it decodes the text as JSON or, if Out is
// string, returns the text. Out may also be [*CallToolResult], [Contents] or an [Output].
//
// If the output is not an Out, the error says what it is, and what to use instead. That
// includes an object none of whose members is a field of the struct Out, and a member that
// differs from a field's name only in case. Other members without a field are ignored.
//
// If the tool failed, the error is a [*ToolError]. If the error is an [*OutputError], Call
// returns the decoded output as well, as far as it can be decoded, for callers that do not need
// validation.
func Call[Out any](ctx context.Context, c ToolCaller, tool string, args any) (Out, error) {
	var out Out
	if c == nil {
		panic("mcp: Call: the connection is nil; make one with Client.Connect or Client.Maintain")
	}
	raw, err := rawParams(args)
	if err != nil {
		return out, fmt.Errorf("mcp: arguments of %s: %w", tool, err)
	}
	res, err := c.CallTool(ctx, &CallToolParams{Name: tool, Arguments: raw})
	if unfit, ok := errors.AsType[*OutputError](err); ok {
		_ = decodeOutput(unfit.Result, &out) // err says more
	}
	if err != nil {
		return out, err
	}
	if res.IsError {
		return out, &ToolError{Tool: tool, Result: res}
	}
	if err := decodeOutput(res, &out); err != nil {
		return out, fmt.Errorf("mcp: the output of %s: %w", tool, err)
	}
	return out, nil
}

// A ToolError is returned by [Call] if the result says that the tool failed.
type ToolError struct {
	Tool   string
	Result *CallToolResult
}

func (e *ToolError) Error() string {
	return fmt.Sprintf("the tool %q failed: %s", e.Tool, printable.Text(printable.Excerpt(textOf(orEmpty(e.Result).Content))))
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
