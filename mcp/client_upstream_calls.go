// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"iter"
)

// The methods below make one call each, as those of [Conn] do. They wait for a connection as
// [Upstream.Conn] does.

// onConn makes a call on the current connection.
func onConn[P, R any](ctx context.Context, u *Upstream, call func(*Conn, context.Context, P) (R, error), p P) (r R, err error) {
	c, err := u.Conn(ctx)
	if err != nil {
		return r, err
	}
	return call(c, ctx, p)
}

// listed lists items on the current connection.
func listed[T any](ctx context.Context, u *Upstream, list func(*Conn, context.Context, *ListParams) iter.Seq2[T, error], p *ListParams) iter.Seq2[T, error] {
	u.mustBeMade()
	return func(yield func(T, error) bool) {
		c, err := u.Conn(ctx)
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		list(c, ctx, p)(yield)
	}
}

// ListTools lists one page of tools; see [Conn.ListTools].
func (u *Upstream) ListTools(ctx context.Context, p *ListParams) (*ListToolsResult, error) {
	return onConn(ctx, u, (*Conn).ListTools, p)
}

// ListPrompts lists one page of prompts; see [Conn.ListPrompts].
func (u *Upstream) ListPrompts(ctx context.Context, p *ListParams) (*ListPromptsResult, error) {
	return onConn(ctx, u, (*Conn).ListPrompts, p)
}

// ListResources lists one page of resources; see [Conn.ListResources].
func (u *Upstream) ListResources(ctx context.Context, p *ListParams) (*ListResourcesResult, error) {
	return onConn(ctx, u, (*Conn).ListResources, p)
}

// ListResourceTemplates lists one page of templates; see [Conn.ListResourceTemplates].
func (u *Upstream) ListResourceTemplates(ctx context.Context, p *ListParams) (*ListResourceTemplatesResult, error) {
	return onConn(ctx, u, (*Conn).ListResourceTemplates, p)
}

// CallTool calls a tool; see [Conn.CallTool].
func (u *Upstream) CallTool(ctx context.Context, p *CallToolParams) (*CallToolResult, error) {
	return onConn(ctx, u, (*Conn).CallTool, p)
}

// GetPrompt gets a prompt; see [Conn.GetPrompt].
func (u *Upstream) GetPrompt(ctx context.Context, p *GetPromptParams) (*GetPromptResult, error) {
	return onConn(ctx, u, (*Conn).GetPrompt, p)
}

// ReadResource reads a resource; see [Conn.ReadResource].
func (u *Upstream) ReadResource(ctx context.Context, p *ReadResourceParams) (*ReadResourceResult, error) {
	return onConn(ctx, u, (*Conn).ReadResource, p)
}

// Complete completes an argument; see [Conn.Complete].
func (u *Upstream) Complete(ctx context.Context, p *CompleteParams) (*CompleteResult, error) {
	return onConn(ctx, u, (*Conn).Complete, p)
}

// Do sends a request of any method; see [Conn.Do].
func (u *Upstream) Do(ctx context.Context, req *Request) (Result, error) {
	return onConn(ctx, u, (*Conn).Do, req)
}

// Tools iterates over all tools; see [Conn.Tools].
func (u *Upstream) Tools(ctx context.Context, p *ListParams) iter.Seq2[*Tool, error] {
	return listed(ctx, u, (*Conn).Tools, p)
}

// Prompts iterates over all prompts; see [Conn.Prompts].
func (u *Upstream) Prompts(ctx context.Context, p *ListParams) iter.Seq2[*Prompt, error] {
	return listed(ctx, u, (*Conn).Prompts, p)
}

// Resources iterates over all resources; see [Conn.Resources].
func (u *Upstream) Resources(ctx context.Context, p *ListParams) iter.Seq2[*Resource, error] {
	return listed(ctx, u, (*Conn).Resources, p)
}

// ResourceTemplates iterates over all templates; see [Conn.ResourceTemplates].
func (u *Upstream) ResourceTemplates(ctx context.Context, p *ListParams) iter.Seq2[*ResourceTemplate, error] {
	return listed(ctx, u, (*Conn).ResourceTemplates, p)
}
