// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/recording"
)

// A lockedBuffer is a buffer that a recorder writes to while a test reads it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

type name struct {
	Name string `json:"name"`
}

// newMux returns a server that does a bit of everything: it answers, fails, asks, reports
// progress, logs, and paginates lists.
func newMux() *mcp.Mux {
	mux := mcp.NewMux("everything", "v1", &mcp.MuxOptions{PageSize: 2})
	mux.Tool("greet", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 2, "asking")
		in, err := mcp.Elicit[name](ctx, "who", "Who are you?")
		if err != nil {
			return "", err
		}
		mcp.ClientLogger(ctx).Info("greeting", "name", in.Name)
		return "Hello, " + in.Name + "!", nil
	}, nil))
	mux.Tool("echo", mcp.ToolFunc(func(_ context.Context, in map[string]any) (map[string]any, error) { return in, nil }, nil))
	mux.Tool("fail", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", errors.New("no luck") }, nil))
	mux.Resource("note://one", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "first", nil }, nil))
	return mux
}

// talk holds a conversation with newMux and returns its outcome.
func talk(ctx context.Context, c *mcp.Conn) (outcome string) {
	var b strings.Builder
	for tool, err := range c.Tools(ctx, nil) {
		if err != nil {
			fmt.Fprintln(&b, "tools:", err)
			break
		}
		fmt.Fprintln(&b, "tool:", tool.Name)
	}
	progress := 0
	got, err := mcp.Call[string](mcp.WithProgress(ctx, func(*mcp.ProgressParams) { progress++ }), c, "greet", nil)
	fmt.Fprintln(&b, got, err)
	echo, err := mcp.Call[map[string]any](ctx, c, "echo", map[string]any{"password": "hunter2", "text": "visible"})
	fmt.Fprintln(&b, len(echo), echo["text"], err)
	_, err = mcp.Call[string](ctx, c, "fail", nil)
	fmt.Fprintln(&b, err)
	res, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: "note://one"})
	if err == nil {
		fmt.Fprintln(&b, res.Contents[0].Text)
	}
	_, err = c.ReadResource(ctx, &mcp.ReadResourceParams{URI: "note://two"})
	fmt.Fprintln(&b, mcp.CodeOf(err))
	return b.String()
}

// ada returns the options of a client that answers questions and requests log messages.
func ada(version string) mcp.ClientOptions {
	return mcp.ClientOptions{
		Version: version, LogLevel: mcp.LoggingLevelDebug, Log: func(context.Context, *mcp.Conn, *mcp.LoggingMessageParams) {},
		Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return mcptest.Accept(name{"Ada"}), nil
		},
	}
}

// everyPath calls test for every era on every path. If the version is empty, the client
// probes.
func everyPath(t *testing.T, test func(t *testing.T, p mcptest.Path, version string)) {
	for _, p := range mcptest.Paths() {
		for _, version := range append(p.Versions(), "") {
			t.Run(p.Name+"/"+version, func(t *testing.T) { test(t, p, version) })
		}
	}
}

// record records a conversation and also returns its outcome.
func record(t *testing.T, p mcptest.Path, version string) (recorded, outcome string) {
	t.Helper()
	var file lockedBuffer
	opts := ada(version)
	c, err := mcp.NewClient("ada", "v1", &opts).Connect(t.Context(), mcptest.Record(p.Serve(t, newMux()), &file))
	if err != nil {
		t.Fatal(err)
	}
	outcome = talk(t.Context(), c)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return file.String(), outcome
}

func read(t *testing.T, recorded string) *recording.Recording {
	t.Helper()
	rec, err := recording.Read(strings.NewReader(recorded))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// A recorded conversation can be replayed without the server.
func TestReplayAsServer(t *testing.T) {
	for _, anyOrder := range []bool{false, true} {
		everyPath(t, func(t *testing.T, p mcptest.Path, version string) {
			recorded, want := record(t, p, version)
			if strings.Contains(recorded, "hunter2") || !strings.Contains(recorded, "visible") {
				t.Errorf("the recording is\n%s", recorded)
			}
			replay := mcptest.Replay(t, strings.NewReader(recorded), &recording.ReplayOptions{AnyOrder: anyOrder})
			opts := ada(version)
			c, err := mcp.NewClient("ada", "v1", &opts).Connect(t.Context(), replay.Transport())
			if err != nil {
				t.Fatalf("%v\n%s", err, recorded)
			}
			defer c.Close()
			if got := talk(t.Context(), c); got != want {
				t.Errorf("the replay comes to\n%s, not to\n%s\n%s", got, want, recorded)
			}
		})
	}
}

// A recorded conversation can be replayed without the client.
func TestReplayAsClient(t *testing.T) {
	everyPath(t, func(t *testing.T, p mcptest.Path, version string) {
		recorded, _ := record(t, p, version)
		replay := mcptest.Replay(t, strings.NewReader(recorded), nil)
		if err := replay.Drive(t.Context(), p.Serve(t, newMux())); err != nil {
			t.Errorf("%v\n%s", err, recorded)
		}
	})
}

// Two recordings of the same conversation compare as equal, and a difference is reported
// with its path.
func TestCompare(t *testing.T) {
	everyPath(t, func(t *testing.T, p mcptest.Path, version string) {
		a, _ := record(t, p, version)
		b, _ := record(t, p, version)
		if err := recording.Compare(read(t, a), read(t, b), nil); err != nil {
			t.Errorf("%v\n%s\n%s", err, a, b)
		}
		other := strings.Replace(b, "first", "second", 1)
		err := recording.Compare(read(t, a), read(t, other), nil)
		d, ok := errors.AsType[*recording.DifferenceError](err)
		if !ok || d.Path != "message.result.contents[0].text" || d.Want != `"first"` || d.Got != `"second"` {
			t.Errorf("got %v", err)
		}
	})
}
