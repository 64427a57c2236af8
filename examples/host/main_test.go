// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// TestMain is also the command of the configuration: a server if HOST_TEST is set.
func TestMain(m *testing.M) {
	name := os.Getenv("HOST_TEST")
	if name == "" {
		os.Exit(m.Run())
	}
	if err := mcpstdio.Serve(context.Background(), newGreeter(name), nil); err != nil {
		os.Exit(1)
	}
}

func newGreeter(name string) *mcp.Mux {
	mux := mcp.NewMux(name, "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "I am " + name + ".", nil }, &mcp.Tool{Description: "Say who you are."}))
	mux.Tool("shout", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "\x1b[31mI AM!", nil }, &mcp.Tool{Description: "\x1b[2JShout."}))
	return mux
}

// serve serves to those who have a key.
func serve(t *testing.T, key string) (url string) {
	t.Helper()
	endpoint := mcphttp.NewHandler(newGreeter("remote"), nil)
	return mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != key {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		endpoint.ServeHTTP(w, r)
	}))
}

func writeConfig(t *testing.T, v any) (path string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"mcpServers": v, "theme": "dark"})
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "servers.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestHost has a command, a URL with a key from the environment, and a server that is down.
func TestHost(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GREETER_KEY", "secret")
	t.Setenv("GREETER_NAME", "command")
	path := writeConfig(t, map[string]any{
		"local":  map[string]any{"command": self, "env": map[string]string{"HOST_TEST": "${GREETER_NAME}"}, "includeTools": []string{"greet"}},
		"remote": map[string]any{"type": "http", "url": serve(t, "secret"), "headers": map[string]string{"X-Key": "${GREETER_KEY}"}, "excludeTools": []string{"shout"}},
		"loud":   map[string]any{"command": self, "env": map[string]string{"HOST_TEST": "loud"}},
		"down":   map[string]any{"url": "http://127.0.0.1:1/mcp"},
	})
	for words, want := range map[string]string{
		"tools":             `"local_greet": "Say who you are."` + "\n" + `"loud_greet": "Say who you are."` + "\n" + `"loud_shout": "\x1b[2JShout."` + "\n" + `"remote_greet": "Say who you are."` + "\n",
		"call loud_shout":   `"\x1b[31mI AM!"` + "\n",
		"call local_greet":  "\"I am command.\"\n",
		"call remote_greet": "\"I am remote.\"\n",
	} {
		var out strings.Builder
		if err := run(t.Context(), path, strings.Fields(words), &out); err != nil || out.String() != want {
			t.Errorf("%s: got %q, %v; want %q", words, &out, err, want)
		}
	}
	for _, name := range []string{"local_sing", "local_shout", "remote_shout"} {
		var out strings.Builder
		if err := run(t.Context(), path, []string{"call", name}, &out); err == nil || !strings.Contains(out.String(), "there is no tool") {
			t.Errorf("an unknown tool: %q, %v", &out, err)
		}
	}
}

// TestConfig has mistakes that a user makes.
func TestConfig(t *testing.T) {
	for name, test := range map[string]struct {
		servers any
		want    string
	}{
		"no servers":      {nil, `there are no servers: want them below "mcpServers"`},
		"an empty list":   {map[string]any{}, "there is no server to connect to"},
		"all disabled":    {map[string]any{"a": map[string]any{"command": "a", "disabled": true}}, "there is no server to connect to"},
		"neither":         {map[string]any{"a": map[string]any{}}, `server "a": want a command or a url`},
		"both":            {map[string]any{"a": map[string]any{"command": "a", "url": "b"}}, "want either a command or a url, not both"},
		"a wrong type":    {map[string]any{"a": map[string]any{"args": "b"}}, `server "a": args: must not be a JSON string`},
		"an unknown file": {map[string]any{"a": map[string]any{"command": "./does-not-exist"}}, "does-not-exist"},
	} {
		err := run(t.Context(), writeConfig(t, test.servers), nil, &strings.Builder{})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
