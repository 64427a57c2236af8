// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/config"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// isServer is the environment variable that turns the test binary into a server.
const isServer = "CONFIG_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(isServer) == "" {
		os.Exit(m.Run())
	}
	mux := mcp.NewMux("self", "v1.0.0", nil)
	mux.Tool("process", mcp.ToolFunc(func(context.Context, struct{}) (process, error) {
		dir, err := os.Getwd()
		return process{os.Args[1:], os.Environ(), dir}, err
	}, nil))
	if err := mcpstdio.Serve(context.Background(), mux, nil); err != nil {
		os.Exit(1)
	}
}

// A process describes how a command was started.
type process struct {
	Args []string `json:"args"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
}

func connect(t *testing.T, s *config.Server, opts *config.Options) *mcp.Conn {
	t.Helper()
	transport, err := s.Transport(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return mcptest.Dial(t, transport, nil)
}

// A command is started as described by the file, with variables replaced, and gets nothing
// else from the environment of this process.
func TestCommand(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "server.env"), []byte("# settings\nexport FROM_FILE=\"a b\"\nTOKEN=overridden\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("UNRELATED_SECRET", "secret")
	t.Setenv("SHELL", "/bin/sh")
	file := parse(t, `{"mcpServers": {"self": {
		"command": "${PROGRAM}",
		"args": ["${env:ONE}", "${NONE:-two words}", "${EMPTY:-three}", "$ONE ${} ${ONE", "${workspaceFolderBasename}"],
		"env": {"`+isServer+`": true, "TOKEN": "t-${ONE}", "SHELL": null},
		"envFile": "${workspaceFolder}${/}server.env",
		"cwd": "."
	}}}`)
	opts := &config.Options{LookupEnv: vars("PROGRAM="+self, "ONE=${NONE}", "EMPTY="), Workspace: dir}
	if _, err := file.Servers[0].Transport(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "${}: there is no such variable") {
		t.Errorf("an empty variable: %v", err)
	}
	file.Servers[0].Args[3] = "$ONE ${ONE"
	got, err := mcp.Call[process](t.Context(), connect(t, file.Servers[0], opts), "process", nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"${NONE}", "two words", "three", "$ONE ${ONE", filepath.Base(dir)}; !reflect.DeepEqual(got.Args, want) {
		t.Errorf("the arguments are %q, want %q", got.Args, want)
	}
	if got.Dir != dir {
		t.Errorf("the directory is %s, want %s", got.Dir, dir)
	}
	for _, want := range []string{"FROM_FILE=a b", "TOKEN=t-${NONE}", "PATH=" + os.Getenv("PATH")} {
		if !slices.Contains(got.Env, want) {
			t.Errorf("the environment lacks %s", want)
		}
	}
	for _, pair := range got.Env {
		if strings.HasPrefix(pair, "UNRELATED_SECRET=") || strings.HasPrefix(pair, "SHELL=") {
			t.Errorf("the environment has %s", pair)
		}
	}
}

// A server at a URL receives the headers of the file, and those of the options that the
// file does not set.
func TestHeaders(t *testing.T) {
	headers := make(chan http.Header, 100)
	mux := mcp.NewMux("server", "v1.0.0", nil)
	url := mcptest.ServeFunc(t, func(string) http.Handler {
		endpoint := mcphttp.NewHandler(mux, nil)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case headers <- r.Header:
			default: // the first ones are enough
			}
			endpoint.ServeHTTP(w, r)
		})
	})
	file := parse(t, `{"mcpServers": {"a": {"url": "`+url+`", "headers": {"Authorization": "Bearer ${TOKEN}"}}}}`)
	connect(t, file.Servers[0], &config.Options{LookupEnv: vars("TOKEN=t"), HTTP: func(to string, _ *config.OAuth) (*mcphttp.TransportOptions, error) {
		if to != url {
			t.Errorf("the URL is %s, want %s", to, url)
		}
		return &mcphttp.TransportOptions{Header: http.Header{"Authorization": {"replaced"}, "X-Other": {"kept"}}}, nil
	}})
	_, err := file.Servers[0].Transport(t.Context(), &config.Options{LookupEnv: vars("TOKEN=t"), HTTP: func(string, *config.OAuth) (*mcphttp.TransportOptions, error) {
		return nil, errors.New("no login")
	}})
	if want := `config: mcp.json: server "a": no login`; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	got := <-headers
	if got.Get("Authorization") != "Bearer t" || got.Get("X-Other") != "kept" {
		t.Errorf("the headers are %v", got)
	}
}
