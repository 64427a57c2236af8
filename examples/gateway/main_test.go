// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// isServer makes the test's program a server on standard input and output.
const isServer = "GATEWAY_TEST_SERVER=1"

func TestMain(m *testing.M) {
	if slices.Contains(os.Environ(), isServer) {
		mux := newGreeter("command")
		mux.Tool("crash", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
			os.Exit(1)
			return "", nil
		}, nil))
		if err := mcpstdio.Serve(context.Background(), mux, nil); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// newGreeter is a server that asks for a name, and reports progress.
func newGreeter(name string) *mcp.Mux {
	mux := mcp.NewMux(name, "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 2, "")
		answer, err := mcp.Elicit[struct {
			Name string `json:"name"`
		}](ctx, "who", "Who are you?")
		if err != nil {
			return "", err
		}
		mcp.Progress(ctx, 2, 2, "")
		return name + " greets " + answer.Name, nil
	}, nil))
	mux.Resource("greet://rules", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "Be kind.", nil }, nil))
	return mux
}

// startGateway serves a gateway whose servers are spoken to in version: one of its own, one
// elsewhere, a command, and further ones.
func startGateway(t *testing.T, version string, further ...upstream) (url string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), isServer)
	gw := newGateway(newGreeter("local"), slog.New(slog.DiscardHandler))
	t.Cleanup(gw.close)
	for _, server := range append(further,
		upstream{prefix: "remote_", transport: mcphttp.NewTransport(serve(t, newGreeter("remote")), nil)},
		upstream{prefix: "command_", transport: mcpstdio.NewCommand(cmd, nil)},
	) {
		gw.mount(t.Context(), newClient(version), server)
	}
	return serve(t, gw.mux)
}

func serve(t *testing.T, h mcp.Handler) (url string) {
	t.Helper()
	return mcptest.Serve(t, mcphttp.NewHandler(h, nil))
}

func connect(t *testing.T, url, version string) *mcp.Conn {
	t.Helper()
	client := mcp.NewClient("test", "v1.0.0", &mcp.ClientOptions{
		Version: version,
		Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: []byte(`{"name":"Ada"}`)}, nil
		},
	})
	conn, err := client.Connect(t.Context(), mcphttp.NewTransport(url, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Whatever the client and the servers speak, everything goes through: questions,
// progress, resources; and a server that is not there is not in the way.
func TestGateway(t *testing.T) {
	versions := []string{"2026-07-28", "2025-11-25", "2025-06-18"}
	for _, back := range versions {
		t.Run("in front of "+back, func(t *testing.T) {
			t.Parallel() // each gateway waits for the server that is not there
			url := startGateway(t, back, upstream{prefix: "gone_", transport: mcphttp.NewTransport("http://127.0.0.1:1/mcp", nil)})
			for _, front := range versions {
				t.Run(front, func(t *testing.T) {
					conn := connect(t, url, front)
					testList(t, conn)
					for _, server := range []string{"local", "remote", "command"} {
						testGreet(t, conn, server)
					}
				})
			}
		})
	}
}

func testList(t *testing.T, c *mcp.Conn) {
	var names []string
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if want := []string{"command_crash", "command_greet", "local_greet", "remote_greet"}; !slices.Equal(names, want) {
		t.Errorf("the tools are %q, want %q", names, want)
	}
}

func testGreet(t *testing.T, c *mcp.Conn, server string) {
	var told []float64
	ctx := mcp.WithProgress(t.Context(), func(p *mcp.ProgressParams) { told = append(told, p.Progress) })
	got, err := mcp.Call[string](ctx, c, server+"_greet", nil)
	if want := server + " greets Ada"; err != nil || got != want || !slices.Equal(told, []float64{1, 2}) {
		t.Errorf("%s: got %q, %v, after the progress %v", server, got, err, told)
	}
	uri := "mount:" + server + "_:greet://rules"
	r, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil || len(r.Contents) != 1 || r.Contents[0].Text != "Be kind." {
		t.Errorf("%s: %+v, %v", uri, r, err)
	}
}

// A server that dies is started again, whatever it speaks: a call waits for it, and
// clients that listen are told that its tools are back.
func TestCommandIsStartedAgain(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			conn := connect(t, startGateway(t, version), "2026-07-28")
			testList(t, conn) // it is there
			changed := make(chan mcp.Change, 100)
			_, err := conn.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(c mcp.Change) { changed <- c })
			if err != nil {
				t.Fatal(err)
			}
			if _, err := mcp.Call[string](t.Context(), conn, "command_crash", nil); err == nil {
				t.Error("the command has not crashed")
			}
			<-changed
			testGreet(t, conn, "command")
		})
	}
}

// The servers of a configuration file have its names for prefixes. Those that it disables are
// left out.
func TestUpstreams(t *testing.T) {
	path := filepath.Join(t.TempDir(), "servers.json")
	const text = `{"mcpServers": {
		"a": {"command": "x"}, "b": {"url": "https://example.com/mcp"}, "off": {"command": "x", "disabled": true},
		"my notes": {"command": "x"}
	}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := upstreams(t.Context(), path)
	if err != nil || len(got) != 3 || got[0].prefix != "a_" || got[1].prefix != "b_" || got[2].prefix != "my_notes_" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := upstreams(t.Context(), ""); err == nil {
		t.Error("no file is no error")
	}
}

// Names that make the prefixes of tools ambiguous are mistakes of the user, not of the program.
func TestAmbiguousPrefixes(t *testing.T) {
	for servers, want := range map[string]string{
		`{"local": {"command": "x"}}`:                              `"local_" and "local_"`,
		`{"a b": {"command": "x"}, "a_b": {"command": "x"}}`:       `"a_b_" and "a_b_"`,
		`{"notes": {"command": "x"}, "notes 2": {"command": "x"}}`: `"notes_" and "notes_2_"`,
	} {
		path := filepath.Join(t.TempDir(), "servers.json")
		if err := os.WriteFile(path, []byte(`{"mcpServers": `+servers+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := upstreams(t.Context(), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", servers, err, want)
		}
	}
}

// Tools that the configuration file excludes cannot be called.
func TestExcludedTools(t *testing.T) {
	path := filepath.Join(t.TempDir(), "servers.json")
	text := fmt.Sprintf(`{"mcpServers": {
		"some": {"url": %[1]q, "includeTools": ["greet"], "excludeTools": ["greet"]}, "one": {"url": %[1]q, "includeTools": ["greet"]}
	}}`, serve(t, newGreeter("remote")))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	servers, err := upstreams(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	gw := newGateway(newGreeter("local"), slog.New(slog.DiscardHandler))
	t.Cleanup(gw.close)
	for _, server := range servers {
		gw.mount(t.Context(), newClient(""), server)
	}
	conn := connect(t, serve(t, gw.mux), mcp.LatestVersion)
	if got, err := mcp.Call[string](t.Context(), conn, "one_greet", nil); err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := mcp.Call[string](t.Context(), conn, "some_greet", nil); err == nil {
		t.Errorf("called an excluded tool, which says %q", got)
	}
}

// A server that cannot be reached is logged.
func TestUnreachable(t *testing.T) {
	logged := make(logLines, 100)
	gw := newGateway(newLocal(), slog.New(slog.NewTextHandler(logged, nil)))
	gw.mount(t.Context(), newClient(""), upstream{prefix: "gone_", transport: mcphttp.NewTransport("http://127.0.0.1:1/mcp", nil)})
	if line := <-logged; !strings.Contains(line, "not connected") || !strings.Contains(line, "prefix=gone_") {
		t.Errorf("logged %q", line)
	}
	gw.close()
}

// logLines receives the lines of a log.
type logLines chan string

func (l logLines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}
