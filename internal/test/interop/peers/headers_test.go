// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

const mirroredSchema = `{"type":"object","properties":{
	"text":{"type":"string","x-mcp-header":"Text"},
	"count":{"type":"integer","x-mcp-header":"Count"},
	"sure":{"type":"boolean","x-mcp-header":"Sure"},
	"inner":{"type":"object","properties":{"text":{"type":"string","x-mcp-header":"Inner-Text"}}}
}}`

// mirrored lists arguments that are mirrored in headers. Some of them must be encoded for
// that.
var mirrored = []map[string]any{
	{}, {"text": "plain", "count": 42.0, "sure": true, "inner": map[string]any{"text": "deep"}},
	{"text": ""}, {"text": " spaces "}, {"text": "tab\there"}, {"text": "line\nbreak"}, {"text": "caf\u00e9 \u2615 \U0001f600"},
	{"text": "=?base64?cGxhaW4=?="}, {"text": "=?base64?"}, {"text": "\"quoted\", and; so on"}, {"text": "null"}, {"text": "\x7f\x01"},
	{"count": -1.0}, {"count": 0.0}, {"count": 9007199254740991.0}, {"sure": false}, {"inner": map[string]any{}},
	{"inner": map[string]any{"text": "\u00fc"}},
}

// The official TypeScript SDK mirrors arguments and names in headers, and psi decodes the
// same values.
func TestMirroredByTypeScript(t *testing.T) {
	mux := mcp.NewMux("echo", "v1", &mcp.MuxOptions{Logger: logger(t)})
	mux.Tool("echo", mcp.ToolFunc(func(_ context.Context, in map[string]any) (map[string]any, error) { return in, nil },
		&mcp.Tool{InputSchema: []byte(mirroredSchema)}))
	for _, name := range []string{"plain", "caf\u00e9 \u2615", " spaces ", "=?base64?eA==?="} {
		mux.Prompt(name, mcp.PromptFunc(func(context.Context, struct{}) (string, error) { return name, nil }, nil))
	}
	for _, uri := range []string{"echo://plain", "echo://caf%C3%A9", "echo://a?b=c&d=e"} {
		mux.Resource(uri, mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return uri, nil }, nil))
	}
	values, err := json.Marshal(mirrored)
	if err != nil {
		t.Fatal(err)
	}
	url := serve(t, mcphttp.NewHandler(mux, &mcphttp.Options{Logger: logger(t)}))
	if out, err := node(t, "headers.mjs", "send", url, string(values)).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// psi mirrors arguments and names in headers, and the official TypeScript SDK decodes the
// same values.
func TestMirroredToTypeScript(t *testing.T) {
	cmd := node(t, "headers.mjs", "receive")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	client := mcp.NewClient("psi", "v1", &mcp.ClientOptions{Version: mcp.LatestVersion, Logger: logger(t)})
	c, err := client.Connect(limited(t), mcphttp.NewTransport(<-start(t, cmd), nil))
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	defer c.Close()
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil || tool.Name != "echo" {
			t.Fatalf("%+v, %v", tool, err)
		}
	}
	for _, args := range mirrored {
		if got, err := mcp.Call[map[string]any](t.Context(), c, "echo", args); err != nil || !reflect.DeepEqual(got, args) {
			t.Errorf("%q: got %q, %v", args, got, err)
		}
	}
	for prompt, err := range c.Prompts(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompt.Name})
		if err != nil || res.Messages[0].Content.(*mcp.TextContent).Text != prompt.Name {
			t.Errorf("%q: %+v, %v", prompt.Name, res, err)
		}
	}
	for _, uri := range []string{"echo://plain/x", "echo://caf%C3%A9/x", "echo://a/b?c=d&e=f"} {
		res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || res.Contents[0].Text != uri {
			t.Errorf("%s: %+v, %v", uri, res, err)
		}
	}
}
