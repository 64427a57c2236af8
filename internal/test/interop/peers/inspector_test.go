// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
	"github.com/go-psi/psi/mcphttp"
)

// inspect runs the MCP Inspector's CLI and returns its output.
func inspect(t *testing.T, args ...string) string {
	t.Helper()
	cmd := node(t, "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js", append([]string{"--cli"}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%q: %v\n%s%s", args, err, out, &stderr)
	}
	return string(out)
}

// The MCP Inspector accepts the schemas of psi as portable and its skills as conforming,
// and uses its tools, prompts, resources and pages.
func TestInspector(t *testing.T) {
	catalog, _ := entries(t, skillDirectory(t))
	mux := newMux()
	catalog.Register(mux)
	mux.Resource("ui://demo/page", apps.Page(fstest.MapFS{"page.html": {Data: []byte("<!doctype html>")}}, "page.html", nil))
	mux.Tool("page", mcp.ToolFunc(func(context.Context, none) (string, error) { return "shown", nil }, apps.Tool(&mcp.Tool{}, "ui://demo/page")))
	url := serve(t, mcphttp.NewHandler(mux, &mcphttp.Options{Logger: logger(t)}))
	for _, c := range []struct {
		args string
		want []string
	}{
		{"--method tools/list --strict", listed()[:1]},
		{"--method tools/call --tool-name add --tool-arg a=2 b=3", []string{`"sum": 5`}},
		{"--method prompts/get --prompt-name greet --prompt-args name=Ada", []string{"Greet Ada"}},
		{"--method resources/read --uri demo://item/10", []string{"item 10"}},
		{"--method tools/list --app-info --advertise-apps", []string{`"resourceUri":"ui://demo/page"`}},
		{"--method skills/list --verify --require-digests", []string{`"name":"refunds"`, `"name":"letters"`, `"name":"billing"`}},
	} {
		for _, era := range []string{"legacy", "modern"} {
			got := inspect(t, append(strings.Fields(c.args), "--transport", "http", "--protocol-era", era, url)...)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s, %s: %s lacks %s", c.args, era, got, want)
				}
			}
		}
	}
}
