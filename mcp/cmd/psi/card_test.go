// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/lint"
	"github.com/go-psi/psi/mcp"
)

// kitchenCard is a card that a registry accepts.
const kitchenCard = `{
  "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
  "name": "io.github.ada/kitchen",
  "description": "Adds numbers.",
  "version": "1.2.0",
  "packages": [{"registryType": "oci", "identifier": "ghcr.io/ada/kitchen:1.2.0", "transport": {"type": "stdio"}}]
}
`

// card writes what the server says and what the flags add.
func TestCard(t *testing.T) {
	url := serve(t, newIntroduced(mcp.Implementation{
		Name: "kitchen", Title: "The kitchen", Version: "v1.2.0", Description: "Adds <numbers>.", WebsiteURL: "https://example.org/kitchen",
		Icons: []mcp.Icon{{Src: "data:image/png;base64,AA=="}, {Src: "https://example.org/kitchen.svg", MIMEType: "image/svg+xml", Sizes: []string{"any"}, Theme: "dark"}},
	}))
	got := psi(t, "", "card", url, "-name", "org.example/kitchen", "-repository", "https://github.com/ada/kitchen",
		"-package", "npm:@ada/kitchen@1.1.0", "-package", "pypi:kitchen", "-package", "oci:ghcr.io/ada/kitchen:1.2.0",
		"-package", "mcpb:https://github.com/ada/kitchen/releases/download/v1.2.0/kitchen.mcpb#sha256="+strings.Repeat("0a", 32),
		"-env", "LEVEL=info", "-remote", "https://example.org/mcp", "-header", "X-Api-Key: hush", "-header", "Accept-Language: en")
	const want = `{
  "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
  "name": "org.example/kitchen",
  "title": "The kitchen",
  "description": "Adds <numbers>.",
  "version": "1.2.0",
  "websiteUrl": "https://example.org/kitchen",
  "icons": [{"src": "https://example.org/kitchen.svg", "mimeType": "image/svg+xml", "sizes": ["any"], "theme": "dark"}],
  "repository": {"url": "https://github.com/ada/kitchen", "source": "github"},
  "packages": [
    {"registryType": "npm", "identifier": "@ada/kitchen", "version": "1.1.0", "transport": {"type": "stdio"}, %[1]s},
    {"registryType": "pypi", "identifier": "kitchen", "version": "1.2.0", "transport": {"type": "stdio"}, %[1]s},
    {"registryType": "oci", "identifier": "ghcr.io/ada/kitchen:1.2.0", "transport": {"type": "stdio"}, %[1]s},
    {"registryType": "mcpb", "identifier": "https://github.com/ada/kitchen/releases/download/v1.2.0/kitchen.mcpb", "fileSha256": "%[2]s",
      "transport": {"type": "stdio"}, %[1]s}
  ],
  "remotes": [{"type": "streamable-http", "url": "https://example.org/mcp",
    "headers": [{"name": "Accept-Language", "isRequired": true}, {"name": "X-Api-Key", "isRequired": true, "isSecret": true}]}]
}`
	wanted := fmt.Sprintf(want, `"environmentVariables": [{"name": "LEVEL", "default": "info"}]`, strings.Repeat("0a", 32))
	if got.code != exitOK || compact(t, got.out) != compact(t, wanted) {
		t.Errorf("exit code %d, wrote:\n%s%swant:\n%s", got.code, got.out, got.errOut, wanted)
	}
}

func compact(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// newIntroduced returns a server that says this of itself.
func newIntroduced(info mcp.Implementation) *mcp.Mux {
	return mcp.NewMux(info.Name, info.Version, &mcp.MuxOptions{Title: info.Title, Description: info.Description, WebsiteURL: info.WebsiteURL, Icons: info.Icons})
}

// What a registry would refuse is not written, and what could be a secret is not published.
func TestCardMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	url := serve(t, newIntroduced(mcp.Implementation{Name: "kitchen", Version: "v1.2.0"}))
	named := "-name io.github.ada/kitchen -description numbers "
	for args, want := range map[string]string{
		"-description numbers":                    "which name in the registry? give -name, such as io.github.ada/kitchen",
		"-name io.github.ada/kitchen":             "give -description",
		named + "-package ghcr.io/ada/kitchen":    "is not TYPE:NAME",
		named + "-package https://example.org/x":  "is not TYPE:NAME",
		named + "-package oci:":                   "is not TYPE:NAME",
		named + "-env A":                          "give a -package",
		named + "-package npm:a -env =x":          "-env wants NAME",
		named + "-package npm:a -env API_KEY=abc": "error: server.json at /packages/0/environmentVariables/0: the secret of API_KEY would be published",
		named + "-remote http://example.org/mcp":  "error: server.json at /remotes/0/url: the address of a remote does not begin with https://",
		named + "-repository https://example.org": `warning: server.json at /repository/source: the official registry does not know "example"`,
		named + "-repository :":                   "-repository \":\" is not a URL",
		named + "more":                            `what is "more"?`,
	} {
		got := psi(t, "", append([]string{"card", "-o", "card.json", url}, strings.Fields(args)...)...)
		wantCode := exitUsage
		if strings.HasPrefix(want, "warning") {
			wantCode = exitOK
		}
		if got.code != wantCode || !strings.Contains(got.errOut, want) || got.out != "" {
			t.Errorf("%s: exit code %d, wrote %q and %q, want %s", args, got.code, got.out, got.errOut, want)
		}
		if _, err := os.Stat("card.json"); (err == nil) != (wantCode == exitOK) {
			t.Errorf("%s: %v", args, err)
		}
		_ = os.Remove("card.json")
	}
}

// A card is checked alone, or against the server that it describes.
func TestCardCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "server.json", kitchenCard)
	same, other := serve(t, newIntroduced(mcp.Implementation{Name: "kitchen", Version: "v1.2.0"})), serve(t, newIntroduced(mcp.Implementation{Name: "kitchen", Version: "v1.3.0"}))
	for _, args := range [][]string{{}, {same}} {
		if got := psi(t, "", append([]string{"card", "-check", "server.json"}, args...)...); got.code != exitOK || got.out != "0 errors, 0 warnings, 0 notes\n" {
			t.Errorf("%q: exit code %d, wrote %q and %q", args, got.code, got.out, got.errOut)
		}
	}
	got := psi(t, "", "card", "-json", "-check", "server.json", other)
	var found []lint.Finding
	if err := json.Unmarshal([]byte(got.out), &found); err != nil {
		t.Fatal(err, got)
	}
	if got.code != exitFailed || len(found) != 1 || found[0].Pointer != "/version" || found[0].Message != `it says "1.2.0", and the server "v1.3.0"` {
		t.Errorf("exit code %d, found %+v", got.code, found)
	}
	writeFile(t, "bad.json", strings.Replace(kitchenCard, "ada/kitchen:", "OWNER/kitchen\x1b:", 1))
	if got := psi(t, "", "card", "-check", "bad.json", "http://127.0.0.1:1/never"); got.code != exitFailed || !strings.HasPrefix(got.out, "error: bad.json: ") || strings.Contains(got.out, "\x1b") {
		t.Errorf("exit code %d, wrote %q and %q", got.code, got.out, got.errOut)
	}
	if got := psi(t, "", "card", "-check", "none.json"); got.code != exitUsage || !strings.Contains(got.errOut, "none.json") {
		t.Errorf("exit code %d, wrote %q", got.code, got.errOut)
	}
}

// The address of a server is its remote if it is public. A query is not published unasked.
func TestCardOfAddress(t *testing.T) {
	t.Chdir(t.TempDir())
	words := []string{"-name", "io.github.ada/kitchen", "-description", "Adds numbers."}
	url := serve(t, newIntroduced(mcp.Implementation{Name: "kitchen", Version: "1.2.0"}))
	if got := psi(t, "", append([]string{"record", "r.jsonl", "card", url}, words...)...); got.code != exitOK || strings.Contains(got.out, "remotes") {
		t.Fatalf("exit code %d, wrote %q and %q", got.code, got.out, got.errOut)
	}
	for address, want := range map[string]string{
		"https://kitchen.example.org/mcp":     `"remotes":[{"type":"streamable-http","url":"https://kitchen.example.org/mcp"}]`,
		"http://kitchen.example.org/mcp":      "",
		"https://192.168.0.1/mcp":             "",
		"https://kitchen.example.org/mcp?a=b": "which may be secret",
		"https://ada:hush@example.org/mcp":    "which may be secret",
	} {
		got := psi(t, "", append([]string{"replay", "r.jsonl", "card", address}, words...)...)
		if strings.HasPrefix(want, "which") {
			if got.code != exitUsage || got.out != "" || !strings.Contains(got.errOut, want) {
				t.Errorf("%s: exit code %d, wrote %q and %q", address, got.code, got.out, got.errOut)
			}
			continue
		}
		if out := compact(t, got.out); got.code != exitOK || !strings.Contains(out, want) || strings.Contains(out, "remotes") == (want == "") {
			t.Errorf("%s: exit code %d, wrote %s and %q", address, got.code, out, got.errOut)
		}
	}
}
