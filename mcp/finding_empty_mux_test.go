// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// A server that has nothing yet, itself or behind a mount, offers what may come: lists
// are empty, names are unknown, and listeners hear of the first of each.
func TestFindingU13EmptyMux(t *testing.T) {
	for name, prepare := range map[string]func(mux *mcp.Mux){
		"empty": func(*mcp.Mux) {},
		"mounts only": func(mux *mcp.Mux) {
			mux.Mount("gone_", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
				return nil, mcp.NewMethodNotFoundError(req.Method)
			}))
		},
		"empty mounts": func(mux *mcp.Mux) { mux.Mount("empty_", mcp.NewMux("empty", "v1", quiet())) },
	} {
		t.Run(name, func(t *testing.T) {
			var mux *mcp.Mux
			newMux := func(*testing.T) mcp.Handler {
				mux = mcp.NewMux("m", "v1", quiet())
				prepare(mux)
				return mux
			}
			mcptest.RunNew(t, newMux, func(t *testing.T, c *mcp.Conn) {
				caps := c.Server().Capabilities
				if caps.Tools == nil || caps.Prompts == nil || caps.Resources == nil || caps.Completions == nil {
					t.Errorf("declared %+v", caps)
				}
				testEmptyLists(t, c)
				testUnknownNames(t, c)
				everything := mcp.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true}
				_, changes := listen(t, c, everything)
				mux.Tool("first", says("1"))
				next(t, changes, mcp.NotificationToolsListChanged)
				mux.Prompt("first", promptSays(""))
				next(t, changes, mcp.NotificationPromptsListChanged)
				mux.Resource("r:first", reads(""))
				next(t, changes, mcp.NotificationResourcesListChanged)
				if got := mustCall(t, c, "first", ""); got != "1" {
					t.Errorf("got %q", got)
				}
			})
		})
	}
}

func testEmptyLists(t *testing.T, c *mcp.Conn) {
	t.Helper()
	for tool, err := range c.Tools(t.Context(), nil) {
		t.Errorf("tools: %v, %v", tool, err)
	}
	for prompt, err := range c.Prompts(t.Context(), nil) {
		t.Errorf("prompts: %v, %v", prompt, err)
	}
	for resource, err := range c.Resources(t.Context(), nil) {
		t.Errorf("resources: %v, %v", resource, err)
	}
	for template, err := range c.ResourceTemplates(t.Context(), nil) {
		t.Errorf("templates: %v, %v", template, err)
	}
}

func testUnknownNames(t *testing.T, c *mcp.Conn) {
	t.Helper()
	ctx := t.Context()
	_, err := c.CallTool(ctx, tool("later_x", ""))
	wantCode(t, err, mcp.CodeInvalidParams)
	_, err = c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "later_x"})
	wantCode(t, err, mcp.CodeInvalidParams)
	_, err = c.ReadResource(ctx, &mcp.ReadResourceParams{URI: "mount:later_:x:x"})
	if code := mcp.CodeOf(err); code != mcp.CodeInvalidParams && code != -32002 { // of the older revisions
		t.Errorf("got %v", err)
	}
}

// What was offered once is not taken back, and a mux that has one kind of items from the
// start offers no other, so that hosts do not ask for lists that nothing will be in.
func TestFindingU13OffersGrow(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	if caps := offeredBy(t, mux); caps.Tools == nil || caps.Prompts == nil || caps.Resources == nil {
		t.Errorf("an empty mux offers %+v", caps)
	}
	mux.Tool("t", says(""))
	if caps := offeredBy(t, mux); caps.Prompts == nil || caps.Resources == nil {
		t.Errorf("after the first tool it offers %+v", caps)
	}
	tools := mcp.NewMux("tools", "v1", quiet())
	tools.Tool("t", says(""))
	if caps := offeredBy(t, tools); caps.Tools == nil || caps.Prompts != nil || caps.Resources != nil || caps.Completions != nil {
		t.Errorf("a mux with a tool offers %+v", caps)
	}
	outer := mcp.NewMux("outer", "v1", quiet())
	outer.Mount("tools_", tools)
	if caps := offeredBy(t, outer); caps.Tools == nil || caps.Prompts != nil || caps.Resources != nil {
		t.Errorf("with a mux of tools mounted it offers %+v", caps)
	}
	tools.Resource("r:{x}", reads(""))
	if caps := offeredBy(t, outer); caps.Resources == nil || caps.Completions == nil {
		t.Errorf("with a mux of tools and resources mounted it offers %+v", caps)
	}
	later := quiet()
	later.Capabilities = &mcp.ServerCapabilities{Tools: &mcp.ListCapability{}}
	if caps := offeredBy(t, mcp.NewMux("later", "v1", later)); caps.Tools == nil || caps.Tools.ListChanged || caps.Prompts != nil {
		t.Errorf("a mux that is to get tools offers %+v", caps)
	}
}

func offeredBy(t *testing.T, mux *mcp.Mux) *mcp.ServerCapabilities {
	t.Helper()
	res, _, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodDiscover, nil))
	if err != nil {
		t.Fatal(err)
	}
	return res.(*mcp.DiscoverResult).Capabilities
}
