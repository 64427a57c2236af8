// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

type ticketIn struct {
	Title string `json:"title"`
}

type sure struct {
	Sure bool `json:"sure"`
}

// yes is a user who agrees to everything.
var yes = &mcptest.Client{Options: mcp.ClientOptions{
	Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return mcptest.Accept(sure{true}), nil
	},
}}

// TestOnce opens one ticket, although the handler runs twice.
func TestOnce(t *testing.T) {
	opened, runs := 0, 0
	openTicket := func(context.Context, string) (int, error) { opened++; return opened, nil }
	mux := mcp.NewMux("tickets", "v1.0.0", nil)
	mux.Tool("open", mcp.ToolFunc(func(ctx context.Context, in ticketIn) (string, error) {
		runs++
		ticket, err := mcp.Once(ctx, "ticket", func(ctx context.Context) (int, error) { return openTicket(ctx, in.Title) })
		if err != nil {
			return "", err
		}
		_, err = mcp.Elicit[sure](ctx, "notify", "Notify the team?")
		return strings.Repeat("#", ticket), err
	}, nil))
	got, err := mcp.Call[string](t.Context(), yes.Connect(t, mux), "open", ticketIn{"Broken"})
	if err != nil || got != "#" || runs != 2 || opened != 1 {
		t.Errorf("got %q, %v, after %d runs with %d tickets", got, err, runs, opened)
	}
}

func canElicit(ctx context.Context) bool {
	caps := mcp.RequestFromContext(ctx).ClientCapabilities()
	return caps != nil && caps.Elicitation.AllowsForm()
}

// TestCannotAsk has a client that cannot be asked, and one that can.
func TestCannotAsk(t *testing.T) {
	mux := mcp.NewMux("files", "v1.0.0", nil)
	mux.Tool("delete", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		if !canElicit(ctx) {
			return "Nothing was deleted: ask the user, and call delete_confirmed if they agree.", nil
		}
		_, err := mcp.Elicit[sure](ctx, "sure", "Delete it?")
		return "deleted", err
	}, nil))
	for want, client := range map[string]*mcptest.Client{"Nothing was deleted": {}, "deleted": yes} {
		client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
			if got, err := mcp.Call[string](t.Context(), c, "delete", nil); err != nil || !strings.HasPrefix(got, want) {
				t.Errorf("got %q, %v; want %q", got, err, want)
			}
		})
	}
}

// TestMistakes checks the texts that the page quotes.
func TestMistakes(t *testing.T) {
	var logged strings.Builder
	mux := mcp.NewMux("mistakes", "v1.0.0", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	mux.Tool("swallow", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		if _, err := mcp.Elicit[sure](ctx, "sure", "Sure?"); err != nil {
			return "no answer", nil //nolint:nilerr // this is the mistake
		}
		return "answered", nil
	}, nil))
	mux.Tool("twice", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		if _, err := mcp.Elicit[sure](ctx, "confirm", "Delete it?"); err != nil {
			return "", err
		}
		_, err := mcp.Elicit[sure](ctx, "confirm", "Really?")
		return "", err
	}, nil))
	n := 0
	mux.Tool("changing", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		n++
		_, err := mcp.Elicit[sure](ctx, "sure", strings.Repeat("Sure? ", min(n, 2)))
		return "", err
	}, nil))

	conn := yes.Connect(t, mux)
	if got, err := mcp.Call[string](t.Context(), conn, "swallow", nil); err != nil || got != "no answer" {
		t.Errorf("swallow: %q, %v", got, err)
	}
	if _, err := mcp.Call[string](t.Context(), conn, "twice", nil); err != nil {
		t.Errorf("twice: %v", err)
	}
	if _, err := mcp.Call[string](t.Context(), conn, "changing", nil); err != nil {
		t.Errorf("changing: %v", err)
	}
	for _, want := range []string{"a handler asked and did not return the error of Ask", "a question has changed since it was answered"} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("%q was not logged, but %s", want, &logged)
		}
	}
	plain := mcptest.Connect(t, mux)
	if _, err := mcp.Call[string](t.Context(), plain, "twice", nil); err == nil || !strings.Contains(err.Error(), "the client did not declare a capability") {
		t.Errorf("a client that cannot be asked: %v", err)
	}
}
