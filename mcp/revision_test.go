// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// since lists members of listed items with the revision that added them. Those of the first
// revision are present in all.
var since = []struct {
	method, list, member, revision string
}{
	{mcp.MethodListTools, "tools", "annotations", "2025-03-26"},
	{mcp.MethodListTools, "tools", "title", "2025-06-18"},
	{mcp.MethodListTools, "tools", "outputSchema", "2025-06-18"},
	{mcp.MethodListTools, "tools", "_meta", "2025-06-18"},
	{mcp.MethodListTools, "tools", "icons", "2025-11-25"},
	{mcp.MethodListPrompts, "prompts", "title", "2025-06-18"},
	{mcp.MethodListPrompts, "prompts", "_meta", "2025-06-18"},
	{mcp.MethodListPrompts, "prompts", "icons", "2025-11-25"},
	{mcp.MethodListResources, "resources", "title", "2025-06-18"},
	{mcp.MethodListResources, "resources", "_meta", "2025-06-18"},
	{mcp.MethodListResources, "resources", "icons", "2025-11-25"},
	{mcp.MethodListResourceTemplates, "resourceTemplates", "title", "2025-06-18"},
	{mcp.MethodListResourceTemplates, "resourceTemplates", "_meta", "2025-06-18"},
	{mcp.MethodListResourceTemplates, "resourceTemplates", "icons", "2025-11-25"},
	{mcp.MethodListTools, "tools", "inputSchema", "2024-11-05"},
	{mcp.MethodListPrompts, "prompts", "arguments", "2024-11-05"},
	{mcp.MethodListResources, "resources", "mimeType", "2024-11-05"},
	{mcp.MethodListResourceTemplates, "resourceTemplates", "mimeType", "2024-11-05"},
}

// described returns a mux whose items have every possible member.
func described() *mcp.Mux {
	icons, meta := []mcp.Icon{{Src: "https://example.com/icon.png"}}, mcp.Meta{"example.com/x": json.RawMessage(`1`)}
	mux := mcp.NewMux("described", "v1", quiet())
	mux.Tool("t", mcp.WithDescription(says(""), &mcp.Tool{
		Title: "T", Meta: meta, Icons: icons, Annotations: &mcp.ToolAnnotations{Title: "T"},
		InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object"}`),
	}))
	mux.Prompt("p", mcp.WithDescription(promptSays(""), &mcp.Prompt{Title: "P", Meta: meta, Icons: icons, Arguments: []*mcp.PromptArgument{{Name: "a", Title: "A"}}}))
	mux.Resource("test://r", mcp.WithDescription(reads(""), &mcp.Resource{Title: "R", Meta: meta, Icons: icons, MIMEType: "text/plain"}))
	mux.Resource("test://r/{x}", mcp.WithDescription(unasked, &mcp.Resource{Title: "R", Meta: meta, Icons: icons, MIMEType: "text/plain"}))
	return mux
}

// eraOf returns the wireEra of a revision.
func eraOf(version string) wireEra {
	if slices.Contains(mcp.ModernVersions(), version) {
		return eras[0]
	}
	era := eras[1]
	era.open = slices.Clone(era.open)
	era.open[0] = strings.Replace(era.open[0], "2025-11-25", version, 1)
	return era
}

// A client gets exactly the members that its revision has.
func TestListedMembersByRevision(t *testing.T) {
	for _, version := range slices.Concat(mcp.LegacyVersions(), mcp.ModernVersions()) {
		t.Run(version, func(t *testing.T) {
			p := newPeer(t, described(), eraOf(version))
			for i, c := range since {
				p.send(eraOf(version).request(fmt.Sprint(i+1), c.method, ""))
				var result map[string]json.RawMessage
				var items []map[string]json.RawMessage
				if err := json.Unmarshal(p.read().Result, &result); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(result[c.list], &items); err != nil || len(items) != 1 {
					t.Fatalf("%s: %s, %v", c.method, result[c.list], err)
				}
				if _, has := items[0][c.member]; has != (version >= c.revision) {
					t.Errorf("%s has %s: %t", c.list, c.member, has)
				}
			}
		})
	}
}

// The titles of prompt arguments were added together with those of prompts.
func TestPromptArgumentsByRevision(t *testing.T) {
	for _, version := range mcp.LegacyVersions() {
		p := newPeer(t, described(), eraOf(version))
		p.send(eraOf(version).request("1", mcp.MethodListPrompts, ""))
		if got := string(p.read().Result); strings.Contains(got, `"title":"A"`) != (version >= "2025-06-18") || !strings.Contains(got, `"name":"a"`) {
			t.Errorf("%s: %s", version, got)
		}
	}
}

// Content unknown to a revision becomes text, in tool and prompt results.
func TestContentByRevision(t *testing.T) {
	blocks := mcp.Contents{
		mcp.Text("x"),
		&mcp.AudioContent{MIMEType: "audio/wav", Data: []byte("sound")},
		&mcp.ResourceLink{Resource: mcp.Resource{URI: "test://r", Name: "r"}},
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.CallToolResult{Content: blocks, StructuredContent: json.RawMessage(`{}`)}, nil
	}))
	mux.Prompt("p", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		res := &mcp.GetPromptResult{}
		for _, b := range blocks {
			res.Messages = append(res.Messages, &mcp.PromptMessage{Role: mcp.RoleUser, Content: b})
		}
		return res, nil
	}))
	for _, version := range slices.Concat(mcp.LegacyVersions(), mcp.ModernVersions()) {
		p := newPeer(t, mux, eraOf(version))
		for i, method := range []string{mcp.MethodCallTool, mcp.MethodGetPrompt} {
			p.send(eraOf(version).request(fmt.Sprint(i+1), method, `"name":"`+[]string{"t", "p"}[i]+`"`))
			got := string(p.read().Result)
			for kind, revision := range map[string]string{"text": "2024-11-05", "audio": "2025-03-26", "resource_link": "2025-06-18"} {
				if strings.Contains(got, `"type":"`+kind+`"`) != (version >= revision) {
					t.Errorf("%s of %s: %s", method, version, got)
				}
			}
			if i == 0 && strings.Contains(got, `"structuredContent"`) != (version >= "2025-06-18") {
				t.Errorf("%s: %s", version, got)
			}
		}
	}
}

// unasked is a handler that is listed but not called.
var unasked = mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, nil })

// The handshake contains the server information that the revision has.
func TestInitializeByRevision(t *testing.T) {
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{
		Title: "T", Description: "D", WebsiteURL: "https://example.com/", Icons: []mcp.Icon{{Src: "https://example.com/icon.png"}}, Logger: quiet().Logger,
	})
	mux.Prompt("p", mcp.WithDescription(promptSays(""), &mcp.Prompt{Completers: map[string]mcp.Completer{"a": mcp.CompleteFrom("x")}, Arguments: []*mcp.PromptArgument{{Name: "a"}}}))
	for _, version := range mcp.LegacyVersions() {
		p := newPeer(t, mux, wireEra{})
		p.send(eraOf(version).open[0])
		got := string(p.read().Result)
		for member, revision := range map[string]string{
			`"name":"m"`: "2024-11-05", `"completions":{}`: "2025-03-26", `"title":"T"`: "2025-06-18",
			`"description":"D"`: "2025-11-25", `"websiteUrl":`: "2025-11-25", `"icons":`: "2025-11-25",
		} {
			if strings.Contains(got, member) != (version >= revision) {
				t.Errorf("%s has %s: %t", version, member, version < revision)
			}
		}
	}
}

// Structured content that is not an object is omitted in revisions that allow only objects.
func TestStructuredContentByRevision(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("list", mcp.ToolFunc(func(context.Context, none) ([]int, error) { return []int{1, 2}, nil }, nil))
	for version, want := range map[string]string{
		mcp.LatestVersion: "[1,2]", "2025-11-25": "", "2025-06-18": "", "2025-03-26": "",
	} {
		c := (&mcptest.Client{Options: mcp.ClientOptions{Version: version}}).Connect(t, mux)
		res, err := c.CallTool(t.Context(), tool("list", ""))
		if err != nil || string(res.StructuredContent) != want || textOf(res) != "[1,2]" {
			t.Errorf("%s: got %+v, %v", version, res, err)
		}
	}
}

// A batch may have up to a hundred messages.
func TestBatchLimit(t *testing.T) {
	march := wireEra{"march", []string{strings.Replace(eras[1].open[0], "2025-11-25", "2025-03-26", 1), eras[1].open[1]}, eras[1].meta}
	p := newPeer(t, hello(), march)
	batch := func(n int) string {
		pings := make([]string, n)
		for i := range pings {
			pings[i] = march.request(fmt.Sprint(i+1), "ping", "")
		}
		return "[" + strings.Join(pings, ",") + "]"
	}
	p.send(batch(100))
	if items, err := transport.SplitBatch([]byte(p.receive())); err != nil || len(items) != 100 {
		t.Errorf("got %d answers, %v", len(items), err)
	}
	p.send(batch(101))
	if got := p.read(); got.Error == nil || got.Error.Code != mcp.CodeInvalidRequest || !strings.Contains(got.Error.Message, "limit of 100") {
		t.Errorf("got %s, %v", got.Result, got.Error)
	}
}
