// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mistakes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"os"
	"testing/fstest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
	"github.com/go-psi/psi/mcp/config"
	"github.com/go-psi/psi/mcp/skills"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/middleware"
)

type place struct {
	City string `json:"city"`
}

// logs adapts a registration that is logged.
func logs(fn func(m *mcp.Mux)) func() error {
	return func() error {
		var log bytes.Buffer
		fn(mcp.NewMux("mistakes", "v1", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}))
		return errors.New(log.String())
	}
}

// connected adapts what a client does with a server.
func connected(opts *mcp.ClientOptions, register func(m *mcp.Mux), do func(ctx context.Context, c *mcp.Conn) error) func() error {
	return func() error {
		mux := newMux()
		register(mux)
		ctx := context.Background()
		c, err := mcp.NewClient("c", "v1", opts).Connect(ctx, mcp.InProcess(mux))
		if err != nil {
			return err
		}
		defer c.Close()
		return do(ctx, c)
	}
}

// calls adapts a call of a tool that runs fn. It returns the text of the failed tool, or the
// error.
func calls[In, Out any](args string, fn func(context.Context, In) (Out, error)) func() error {
	return connected(nil, func(m *mcp.Mux) { m.Tool("t", mcp.ToolFunc(fn, nil)) }, func(ctx context.Context, c *mcp.Conn) error {
		_, err := mcp.Call[json.RawMessage](ctx, c, "t", json.RawMessage(args))
		return err
	})
}

// decodes adapts a call whose result is decoded as an Out.
func decodes[Out any](res *mcp.CallToolResult) func() error {
	return connected(nil, func(m *mcp.Mux) {
		m.Tool("t", mcp.ToolFunc(func(context.Context, none) (*mcp.CallToolResult, error) { return res, nil }, nil))
	}, func(ctx context.Context, c *mcp.Conn) error {
		_, err := mcp.Call[Out](ctx, c, "t", nil)
		return err
	})
}

func listen(ctx context.Context, c *mcp.Conn) error {
	_, err := c.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, nil)
	return err
}

func nothing(*mcp.Mux) {}

// running are mistakes that show when a server or a client runs, or that are only logged.
var running = []mistake{
	{"a name in another case", calls(`{"City":"Rome"}`, func(context.Context, place) (string, error) { return "", nil }), []string{`did you mean "city"?`}},
	{"a number that is none", calls(`{}`, func(context.Context, none) (map[string]float64, error) {
		return map[string]float64{"x": math.NaN()}, nil
	}), []string{`marshal from Go float64 within "/x": unsupported value: NaN`}},
	{"a nil image", calls(`{}`, func(context.Context, none) (mcp.Content, error) { var c *mcp.ImageContent; return c, nil }), []string{"the result could not be encoded", "a content is nil"}},
	{"a nil result", calls(`{}`, func(context.Context, none) (*mcp.CallToolResult, error) { return nil, nil }), []string{"the tool returned neither a result nor an error"}},
	{"a form that is a string", calls(`{}`, func(ctx context.Context, _ none) (string, error) { return mcp.Elicit[string](ctx, "k", "Name?") }), []string{`a form's schema must have "type":"object" at its root`}},
	{"a question without params", calls(`{}`, func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Sample(ctx, "k", nil)
		return "", err
	}), []string{`question "k": the params are nil`}},
	{"a question outside of a handler", func() error {
		_, err := mcp.Elicit[place](context.Background(), "k", "Where?")
		return err
	}, []string{"questions can be asked only in the handlers of tools, prompts and resources of a Mux"}},
	{"output outside of its enum", calls(`{}`, func(context.Context, none) (struct {
		Size string `json:"size" jsonschema:"enum=S,enum=M"`
	}, error) {
		return struct {
			Size string `json:"size" jsonschema:"enum=S,enum=M"`
		}{"L"}, nil
	}), []string{`/size: expected one of the allowed values, got string "L"; allowed: "S", "M"; did you mean "S"?`}},
	{"a struct whose field differs in case", decodes[struct{ Sum int }](&mcp.CallToolResult{StructuredContent: []byte(`{"sum":5}`)}), []string{"mcp: the output of t: its member \"sum\" is not the field \"Sum\"", "tag the field with `json:\"sum\"`"}},
	{"a struct for text", decodes[place](mcp.TextResult("It is sunny.")), []string{"it is text, not JSON (It is sunny.): use Call[string]"}},
	{"a string for data", decodes[string](&mcp.CallToolResult{StructuredContent: []byte(`{"sum":5}`)}), []string{`it is data, not text ({"sum":5}): use Call with a type for it`}},
	{"a list for an object", decodes[[]int](&mcp.CallToolResult{StructuredContent: []byte(`{"sum":5}`)}), []string{`it is not a []int ({"sum":5}): the value itself must not be a JSON object`}},
	{"no function for changes", connected(nil, nothing, listen), []string{"mcp: Conn.Listen at", here, "the function is nil"}},
	{"a call after Close", connected(nil, nothing, func(ctx context.Context, c *mcp.Conn) error {
		_ = c.Close()
		return c.Ping(ctx)
	}), []string{"mcp: closed"}},
	{"an older version in process", connected(&mcp.ClientOptions{Version: "2025-11-25"}, nothing, listen), []string{"InProcess speaks only 2026-07-28"}},
	{"an answer without a model", connected(&mcp.ClientOptions{Sample: func(context.Context, *mcp.Conn, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
		return &mcp.CreateMessageResult{}, nil
	}}, func(m *mcp.Mux) {
		m.Tool("t", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			_, err := mcp.Sample(ctx, "k", &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text("Hi")}}}})
			return "", err
		}, nil))
	}, func(ctx context.Context, c *mcp.Conn) error {
		_, err := mcp.Call[string](ctx, c, "t", nil)
		return err
	}), []string{"the client's function returned an answer without role, content or model"}},
	{"a URL that is none", func() error {
		_, err := mcp.NewClient("c", "v1", nil).Connect(context.Background(), mcphttp.NewTransport("localhost:8080/mcp", nil))
		return err
	}, []string{`mcphttp: "localhost:8080/mcp" is not the URL of an HTTP server, such as http://`}},
	{"a variable without a value", func() error { _, err := mcp.ExpandURI("notes://{id}", none{}); return err }, []string{`the variable "id" of "notes://{id}" has no value`}},
	{"a variable of another name", func() error { _, err := mcp.ExpandURI("notes://{id}", map[string]string{"ID": "1"}); return err }, []string{`"notes://{id}" has no variable "ID"; did you mean "id"?`}},
	{"a manager registered twice", register(func(m *mcp.Mux) {
		manager := tasks.New("films", nil)
		defer func() { _ = manager.Shutdown(context.Background()) }()
		manager.Register(m)
		manager.Register(newMux())
	}), []string{"tasks: the Manager is registered already"}},
	{"a manager that is not registered", func() error {
		var log bytes.Buffer
		manager := tasks.New("films", &tasks.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		err := connected(&mcp.ClientOptions{Extensions: []*mcp.ClientExtension{tasks.Client()}}, func(m *mcp.Mux) {
			m.With(manager.Background(nil)).Tool("t", says[none](nil))
		}, func(ctx context.Context, c *mcp.Conn) error {
			_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "t"})
			return err
		})()
		return errors.Join(err, errors.New(log.String()))
	}, []string{"level=ERROR", "the Manager is not registered; call Manager.Register"}},
	{"prefixes of which one begins with the other", register(func(m *mcp.Mux) {
		m.Mount("a", newMux())
		m.Mount("a_", newMux())
	}), []string{`mcp: mount "a_" at`, here, "choose prefixes of which none begins with another"}},
	{"a page without its scheme", panics(func() { apps.Tool(nil, "https://example.com") }), []string{`apps.Tool: the page "https://example.com" is not a URI such as ui://airline/seats`}},
	{"Allow around one tool", register(func(m *mcp.Mux) { m.With(middleware.Allow(mcp.KindTool, "t")).Tool("t", says[none](nil)) }), []string{`mcp: tool "t" at`, here, "lists do not pass the middleware of a single tool"}},
	{"hints that contradict", logs(func(m *mcp.Mux) {
		m.Tool("t", says[none](&mcp.Tool{Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true), DestructiveHint: new(true)}}))
	}), []string{"its ReadOnlyHint and its DestructiveHint are both true", here}},
	{"a tag of another library", logs(func(m *mcp.Mux) {
		m.Tool("t", says[struct {
			N int `validate:"min=1"`
		}](nil))
	}), []string{"(N has validate); write jsonschema tags", here}},
	{"files that do not exist", logs(func(m *mcp.Mux) { m.Resource("file:///{+path}", mcp.FileServerFS(os.DirFS("tpyo"), nil)) }), []string{"the directory of its files does not exist", here}},
	{"an update of another URI", logs(func(m *mcp.Mux) {
		m.Resource("notes://{id}", reads[note](nil))
		m.ResourceUpdated("note://1")
	}), []string{"an updated resource matches no registration of this mux; did you mean", "notes://"}},
	{"a pattern that matches nothing", logs(func(m *mcp.Mux) {
		m.Tool("search", says[none](nil))
		m.Use(middleware.Allow(mcp.KindTool, "serach"))
		c, err := mcp.NewClient("c", "v1", nil).Connect(context.Background(), mcp.InProcess(m))
		if err == nil {
			_, _ = c.ListTools(context.Background(), nil)
			_ = c.Close()
		}
	}), []string{"middleware.Allow: the pattern matches no tool that is listed; did you mean", "search"}},
	{"a directory of skills that does not exist", func() error { _, err := skills.New(os.DirFS("tpyo"), nil); return err }, []string{"skills: stat .: no such file or directory"}},
	{"a skill in lower case", func() error {
		var log bytes.Buffer
		_, _ = skills.New(fstest.MapFS{"a/skill.md": {}}, &skills.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		return errors.New(log.String())
	}, []string{"its name is not SKILL.md", "file=a/skill.md"}},
	{"arguments in the command", func() error {
		f, err := config.Parse(".mcp.json", []byte(`{"mcpServers":{"a":{"command":"npx -y foo"}}}`))
		if err != nil {
			return err
		}
		t, err := f.Servers[0].Transport(context.Background(), nil)
		if err != nil {
			return err
		}
		_, err = mcp.NewClient("c", "v1", nil).Connect(context.Background(), t)
		return err
	}, []string{"mcpstdio: starting npx -y foo", "pass them as arguments"}},
	{"a call that takes too long", connected(&mcp.ClientOptions{CallTimeout: time.Nanosecond}, func(m *mcp.Mux) {
		m.Tool("t", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) { <-ctx.Done(); return "", nil }, nil))
	}, func(ctx context.Context, c *mcp.Conn) error {
		_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "t"})
		return err
	}), []string{"no answer to tools/call within 1ns"}},
}
