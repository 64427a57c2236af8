// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// A farm is a server with tools that run in the background.
type farm struct {
	mux     *mcp.Mux
	manager *tasks.Manager
	steps   atomic.Int64  // number of steps that were run
	begun   chan struct{} // receives a value when a handler has begun
	gate    chan struct{} // lets a render continue
}

type scene struct {
	Steps int `json:"steps,omitempty"`
}

type codec struct {
	Codec string `json:"codec" jsonschema:"enum=av1,enum=h265"`
}

var quick = tasks.Options{PollInterval: 20 * time.Millisecond, Lease: 300 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}

func newFarm(t testing.TB, shared store.Store, opts *tasks.BackgroundOptions) *farm {
	t.Helper()
	o := quick
	o.Store = shared
	return newFarmWith(t, o, opts)
}

func newFarmWith(t testing.TB, o tasks.Options, opts *tasks.BackgroundOptions) *farm {
	t.Helper()
	f := &farm{mux: mcp.NewMux("farm", "1", nil), manager: tasks.New("farm", &o), begun: make(chan struct{}, 100), gate: make(chan struct{})}
	f.manager.Register(f.mux)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := f.manager.Shutdown(ctx); err != nil {
			t.Error("Shutdown:", err)
		}
	})
	background := f.mux.With(f.manager.Background(opts))
	background.Tool("render", mcp.ToolFunc(f.render, nil))
	background.Tool("ask", mcp.ToolFunc(f.ask, nil))
	background.Tool("fail", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", errors.New("no film") }, nil))
	background.Tool("break", mcp.WithDescription(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, mcp.Errorf(-32050, "the farm is on fire")
	}), &mcp.Tool{}))
	background.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		f.begun <- struct{}{}
		select {
		case <-f.gate:
			return "waited", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}, nil))
	return f
}

// render has steps that must not be run twice.
func (f *farm) render(ctx context.Context, in scene) (string, error) {
	for i := range in.Steps {
		_, err := mcp.Once(ctx, fmt.Sprint("step ", i), func(context.Context) (int64, error) { return f.steps.Add(1), nil })
		if err != nil {
			return "", err
		}
		mcp.Progress(ctx, float64(i+1), float64(in.Steps), "rendering")
	}
	return fmt.Sprint(in.Steps, " steps"), nil
}

// ask asks two questions in one request, and then one more.
func (f *farm) ask(ctx context.Context, _ struct{}) (string, error) {
	if _, err := mcp.Once(ctx, "step", func(context.Context) (int64, error) { return f.steps.Add(1), nil }); err != nil {
		return "", err
	}
	var video, audio codec
	if err := mcp.Ask(ctx, mcp.ElicitQuestion("video", "Which codec for video?", &video), mcp.ElicitQuestion("audio", "And for audio?", &audio)); err != nil {
		return "", err
	}
	sure, err := mcp.Elicit[struct {
		Sure bool `json:"sure"`
	}](ctx, "sure", "Sure?")
	if err != nil {
		return "", err
	}
	return fmt.Sprint(video.Codec, " ", audio.Codec, " ", sure.Sure), nil
}

// options returns the options of a client that supports tasks and answers questions.
func options() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		Extensions: []*mcp.ClientExtension{tasks.Client()},
		Elicit: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			content := `{"codec":"av1"}`
			if strings.HasPrefix(p.Message, "Sure") {
				content = `{"sure":true}`
			}
			return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: json.RawMessage(content)}, nil
		},
	}
}

// In every revision, an ordinary call returns the result of a tool that runs in the
// background.
func TestDrivenToItsEnd(t *testing.T) {
	everywhere(t, func(t *testing.T, path mcptest.Path, version string) {
		f := newFarm(t, nil, nil)
		opts := options()
		opts.Version = version
		c := mcptest.Dial(t, path.Serve(t, f.mux), opts)
		ctx := t.Context()
		if got, err := mcp.Call[string](ctx, c, "render", scene{Steps: 5}); got != "5 steps" || err != nil || f.steps.Load() != 5 {
			t.Errorf("render: %q, %v after %d steps", got, err, f.steps.Load())
		}
		if got, err := mcp.Call[string](ctx, c, "ask", nil); got != "av1 av1 true" || err != nil || f.steps.Load() != 6 {
			t.Errorf("ask: %q, %v after %d steps", got, err, f.steps.Load())
		}
		var failed *mcp.ToolError
		if _, err := mcp.Call[string](ctx, c, "fail", nil); !errors.As(err, &failed) || !strings.Contains(err.Error(), "no film") {
			t.Error("fail:", err)
		}
		if _, err := mcp.Call[string](ctx, c, "break", nil); mcp.CodeOf(err) != -32050 || !strings.Contains(err.Error(), "on fire") {
			t.Error("break:", err)
		}
	})
}

// everywhere runs a test over every transport and both eras.
func everywhere(t *testing.T, test func(t *testing.T, path mcptest.Path, version string)) {
	for _, path := range mcptest.Paths() {
		for _, version := range path.Versions() {
			t.Run(path.Name+"/"+version, func(t *testing.T) { test(t, path, version) })
		}
	}
}
