// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// denying is middleware of a program that refuses all but lists.
func denying(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		return nil, mcp.Errorf(403, "denied: %s", req.Method)
	})
}

// A handler in middleware that NewMiddleware made is registered as if the middleware had
// been given to With: it is listed with its schema and can ask, and the middleware is around
// completion as well.
func TestFindingU17WrappedHandlersStayDescribed(t *testing.T) {
	type in struct {
		Style string `json:"style,omitempty" jsonschema:"enum=short,enum=long"`
	}
	passing := mcp.NewMiddleware(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) { return next.ServeMCP(ctx, req) })
	})
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", passing(passing(mcp.ToolFunc(func(ctx context.Context, in in) (string, error) {
		_, err := mcp.Elicit[agreed](ctx, "k", "Sure?")
		return in.Style, err
	}, &mcp.Tool{Title: "Title"}))))
	mux.Prompt("p", mcp.Chain(mcp.PromptFunc(func(_ context.Context, in in) (string, error) { return in.Style, nil }, nil), mcp.NewMiddleware(denying)))
	client := &mcptest.Client{Options: mcp.ClientOptions{Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return mcptest.Accept(agreed{true}), nil
	}}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		list, err := c.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 1 || list.Tools[0].Title != "Title" || !strings.Contains(string(list.Tools[0].InputSchema), `"short"`) {
			t.Errorf("the tools are %+v, %v", list, err)
		}
		if got := mustCall(t, c, "t", `{"style":"long"}`); got != "long" {
			t.Errorf("the tool answers %q", got)
		}
		prompts, err := c.ListPrompts(t.Context(), nil)
		if err != nil || len(prompts.Prompts) != 1 {
			t.Errorf("the prompts are %+v, %v", prompts, err)
		}
		_, err = c.Complete(t.Context(), &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "p"}, Argument: mcp.CompleteArgument{Name: "style"}})
		wantCode(t, err, 403)
	})
}

// agreed is a form.
type agreed struct {
	Yes bool `json:"yes"`
}

// A plain function around a handler hides it. The log says so, and what to do.
func TestFindingU17HiddenHandlersAreReported(t *testing.T) {
	var log bytes.Buffer
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	mux.Tool("t", denying(says("")))
	if got := log.String(); !strings.Contains(got, "not listed") || !strings.Contains(got, "finding_wrapped_test.go:") || !strings.Contains(got, "Mux.With") {
		t.Errorf("the log has %q", got)
	}
	log.Reset()
	mux.Tool("v", struct{ mcp.Handler }{says("")})
	if got := log.String(); !strings.Contains(got, "not listed") || !strings.Contains(got, "Chain") {
		t.Errorf("of a type that hides a handler the log has %q", got)
	}
	log.Reset()
	mux.With(denying).Tool("u", says(""))
	mux.Tool("hidden", mcp.Describe(denying(nil), nil))
	if log.Len() > 0 {
		t.Errorf("of a tool with a description the log has %q", &log)
	}
}

// Chain does not hide what plain functions wrap.
func TestFindingU17ChainKeepsTheDescription(t *testing.T) {
	var order []string
	noting := func(name string) mcp.Middleware {
		return func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				order = append(order, name)
				return next.ServeMCP(ctx, req)
			})
		}
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", mcp.Chain(mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Elicit[agreed](ctx, "k", "Sure?")
		return "done", err
	}, &mcp.Tool{Title: "Title"}), noting("outer"), noting("inner")))
	client := &mcptest.Client{Options: mcp.ClientOptions{Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return mcptest.Accept(agreed{true}), nil
	}}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		list, err := c.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 1 || list.Tools[0].Title != "Title" {
			t.Errorf("the tools are %+v, %v", list, err)
		}
		order = nil
		if got := mustCall(t, c, "t", `{}`); got != "done" || !slices.Equal(order, []string{"outer", "inner", "outer", "inner"}) {
			t.Errorf("the tool answers %q, after %q", got, order)
		}
	})
}

// The capability that a client lacks is named.
func TestFindingU19MissingCapabilitiesAreNamed(t *testing.T) {
	for want, ask := range map[string]func(ctx context.Context) error{
		"elicitation.form": func(ctx context.Context) error { _, err := mcp.Elicit[agreed](ctx, "k", "?"); return err },
		"elicitation.url":  func(ctx context.Context) error { return mcp.ElicitURL(ctx, "k", "?", "https://a.example") },
		"roots":            func(ctx context.Context) error { _, err := mcp.Roots(ctx, "k"); return err },
		"sampling": func(ctx context.Context) error {
			_, err := mcp.Sample(ctx, "k", &mcp.CreateMessageParams{MaxTokens: 1})
			return err
		},
		"sampling.context": func(ctx context.Context) error {
			_, err := mcp.Sample(ctx, "k", &mcp.CreateMessageParams{MaxTokens: 1, IncludeContext: "thisServer"})
			return err
		},
		"sampling.tools": func(ctx context.Context) error {
			_, err := mcp.Sample(ctx, "k", &mcp.CreateMessageParams{MaxTokens: 1, ToolChoice: &mcp.ToolChoice{Mode: "auto"}})
			return err
		},
	} {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("t", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) { return "", ask(ctx) }, nil))
		_, err := connect(t, mux, &mcp.ClientOptions{Version: mcp.LatestVersion}).CallTool(t.Context(), tool("t", ""))
		if wantCode(t, err, mcp.CodeMissingCapability); !strings.Contains(err.Error(), "needs: "+want+" (code") {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// A prompt or resource that returns another error with the text of that of Ask is reported,
// as a tool is.
func TestFindingU6TheErrorIsFlattened(t *testing.T) {
	var log bytes.Buffer
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	mux.Prompt("p", mcp.PromptFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Elicit[agreed](ctx, "sure", "Sure?")
		return "", errors.New("asking: " + err.Error())
	}, nil))
	client := &mcptest.Client{Options: mcp.ClientOptions{Version: mcp.LatestVersion, Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return mcptest.Accept(agreed{true}), nil
	}}}
	_, _ = client.Connect(t, mux).GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"})
	if got := log.String(); !strings.Contains(got, "name=p") || !strings.Contains(got, "sure") {
		t.Errorf("the log has %q", got)
	}
}
