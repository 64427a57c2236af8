// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/recording"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// A recordingFile is an in-memory file that can be read while a recorder writes to it.
type recordingFile struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (f *recordingFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.buf.Write(p)
}

func (f *recordingFile) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.buf.String()
}

// secretOfEverything is in the environment of the reference server, which has a tool that
// returns its environment.
const secretOfEverything = "hunter2hunter2"

// secretEverything returns a stdio transport to the reference server with secrets in its
// environment.
func secretEverything(t *testing.T) transport.Transport {
	cmd := node(t, everythingFile)
	cmd.Env = append(os.Environ(), "AWS_SECRET_ACCESS_KEY="+secretOfEverything, "DATABASE_URL=postgres://ada:"+secretOfEverything+"@db/notes")
	return mcpstdio.NewCommand(cmd, &mcpstdio.CommandOptions{Logger: logger(t)})
}

// talkToEverything holds a conversation with the reference server in which both sides send
// requests. It returns the outcome as text.
func talkToEverything(t *testing.T, to transport.Transport, withEnvironment bool) string {
	t.Helper()
	opts := psiOptions(newTold())
	opts.Logger = logger(t)
	ctx := limited(t)
	conn, err := mcp.NewClient("psi", "v1", opts).Connect(ctx, to)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var b strings.Builder
	note := func(what string, v any, err error) {
		raw, _ := json.Marshal(v) //nolint:errchkjson // results can be encoded
		fmt.Fprintf(&b, "%s: %s %v\n", what, raw, err)
	}
	c := &psiClient{Conn: conn}
	names, err := c.names(ctx)
	note("names", names, err)
	call := func(ctx context.Context, tool string, args any) {
		params := &mcp.CallToolParams{Name: tool}
		if args != nil {
			params.Arguments, _ = json.Marshal(args) //nolint:errchkjson // it can be encoded
		}
		res, err := conn.CallTool(ctx, params)
		note(tool, res, err)
	}
	call(ctx, "echo", map[string]any{"message": "grüß dich\n🎉"})
	call(ctx, "get-sum", map[string]any{"a": 2, "b": 3})
	call(ctx, "get-sum", map[string]any{"a": "two"})
	call(ctx, "get-tiny-image", nil)
	call(ctx, "get-structured-content", map[string]any{"location": "Chicago"})
	if withEnvironment {
		call(ctx, "get-env", nil)
	}
	call(ctx, "trigger-elicitation-request", nil)
	call(ctx, "trigger-sampling-request", map[string]any{"prompt": "ping"})
	progress := make(chan float64, 100)
	progressing := mcp.WithProgress(ctx, func(p *mcp.ProgressParams) { put(progress, p.Progress) })
	call(progressing, "trigger-long-running-operation", map[string]any{"duration": 0.2, "steps": 2})
	for range 2 {
		done, err := take(ctx, progress)
		note("progress", done, err)
	}
	prompt, err := conn.GetPrompt(ctx, &mcp.GetPromptParams{Name: "args-prompt", Arguments: map[string]string{"city": "Rome"}})
	note("prompt", prompt, err)
	document, err := conn.ReadResource(ctx, &mcp.ReadResourceParams{URI: "demo://resource/static/document/features.md"})
	note("document", document, err)
	call(ctx, "no-such-tool", nil)
	return b.String()
}

// A conversation with a published server can be recorded and replayed offline, without the
// server or without the client.
func TestRecording(t *testing.T) {
	http := func(t *testing.T) transport.Transport {
		return mcphttp.NewTransport(everything(t, "streamableHttp")+"/mcp", nil)
	}
	for name, open := range map[string]func(t *testing.T) transport.Transport{"stdio": secretEverything, "http": http} {
		t.Run(name, func(t *testing.T) {
			var file recordingFile
			withEnvironment := name == "stdio" // over HTTP, it contains a random port
			live := talkToEverything(t, mcptest.Record(open(t), &file), withEnvironment)
			recorded := file.String()
			t.Logf("%d lines, %d bytes", strings.Count(recorded, "\n"), len(recorded))
			if strings.Contains(recorded, secretOfEverything) {
				t.Error("the recording has a secret")
			}

			for _, anyOrder := range []bool{false, true} {
				replay := mcptest.Replay(t, strings.NewReader(recorded), &recording.ReplayOptions{AnyOrder: anyOrder})
				got := talkToEverything(t, replay.Transport(), withEnvironment)
				if withoutEnvironment(got) != withoutEnvironment(live) {
					t.Errorf("the replay (any order: %v) comes to\n%s, not to\n%s", anyOrder, got, live)
				}
			}
			if err := mcptest.Replay(t, strings.NewReader(recorded), nil).Drive(limited(t), open(t)); err != nil {
				t.Errorf("the server: %v", err)
			}
		})
	}
}

// withoutEnvironment returns an outcome without the result of the tool that returns
// secrets.
func withoutEnvironment(outcome string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(outcome, "\n"), func(line string) bool { return strings.HasPrefix(line, "get-env:") }), "\n")
}
