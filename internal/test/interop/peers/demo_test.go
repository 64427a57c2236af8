// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/go-psi/psi/mcp"
)

// listed returns the names that each server of this package provides. The servers
// "everything" and the quickstart are exceptions. Tools have no arguments unless stated
// otherwise.
//
//	add       structured content: the sum of a and b
//	ask       asks for the user's name with a form
//	count     reports progress for as many steps as its argument says
//	fail      fails
//	grow      adds or replaces a tool named "grown"
//	log       logs at level info
//	roots     asks for the client's roots
//	sample    asks the client's model to continue
//	show      returns content of every kind
//	stopped   returns once a wait was cancelled
//	touch     updates demo://readme
//	visit     asks the user to visit a URL
//	wait      waits until it is cancelled
//	waits     returns once a wait has started
//	greet     a prompt with a completable argument "name"
//	demo://readme
//	demo://item/{id}, with completable id
func listed() []string {
	return []string{
		"add", "ask", "count", "demo://item/{id}", "demo://readme", "fail", "greet", "grow", "log", "roots",
		"sample", "show", "stopped", "touch", "visit", "wait", "waits",
	}
}

const (
	nameSchema = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	whoAreYou  = "Who are you?"
	visitURL   = "https://example.com/visit"
)

var errBroken = errors.New("out of order")

type addIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

type addOut struct {
	Sum int `json:"sum"`
}

type countIn struct {
	Steps int `json:"steps"`
}

type nameForm struct {
	Name string `json:"name"`
}

type itemIn struct {
	ID string `json:"id"`
}

// itemText returns the text of a resource of the demo.
func itemText(uri string) string {
	if id, ok := strings.CutPrefix(uri, "demo://item/"); ok {
		return "item " + id
	}
	return "read me"
}

// suggest returns completions for the arguments of the demo.
func suggest(argument, value string) (found []string) {
	all := map[string][]string{"name": {"Ada", "Alan", "Grace"}, "id": {"10", "11", "20"}}
	for _, s := range all[argument] {
		if strings.HasPrefix(s, value) {
			found = append(found, s)
		}
	}
	return found
}

// A gate implements the tools wait, waits and stopped.
type gate struct{ began, ended chan bool }

func newGate() *gate { return &gate{make(chan bool, 100), make(chan bool, 100)} }

func (g *gate) wait(ctx context.Context) error {
	g.began <- true
	select {
	case <-ctx.Done():
		g.ended <- true
		return ctx.Err()
	case <-time.After(featureLimit):
		return errors.New("never cancelled")
	}
}

func pass(ctx context.Context, c <-chan bool) error {
	ctx, cancel := context.WithTimeout(ctx, featureLimit/2)
	defer cancel()
	_, err := take(ctx, c)
	return err
}

type none = struct{}

func textTool[In any](mux *mcp.Mux, name string, fn func(ctx context.Context, in In) (string, error)) {
	mux.Tool(name, mcp.ToolFunc(fn, &mcp.Tool{}))
}

// newMux returns psi's server.
func newMux() *mcp.Mux {
	mux := mcp.NewMux("psi", "v1", &mcp.MuxOptions{Logger: slog.New(slog.DiscardHandler)})
	mux.Tool("add", mcp.ToolFunc(func(_ context.Context, in addIn) (addOut, error) { return addOut{in.A + in.B}, nil }, &mcp.Tool{}))
	mux.Tool("show", mcp.ToolFunc(func(context.Context, none) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			mcp.Text("all"),
			&mcp.ImageContent{Data: []byte("image"), MIMEType: "image/png"},
			&mcp.AudioContent{Data: []byte("audio"), MIMEType: "audio/wav"},
			&mcp.ResourceLink{Resource: mcp.Resource{URI: "demo://readme", Name: "readme"}},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "demo://blob", Blob: []byte("blob")}},
		}}, nil
	}, &mcp.Tool{}))
	addAsking(mux)
	addTelling(mux)
	gate := newGate()
	textTool(mux, "wait", func(ctx context.Context, _ none) (string, error) { return "", gate.wait(ctx) })
	textTool(mux, "waits", func(ctx context.Context, _ none) (string, error) { return "", pass(ctx, gate.began) })
	textTool(mux, "stopped", func(ctx context.Context, _ none) (string, error) { return "", pass(ctx, gate.ended) })
	textTool(mux, "fail", func(context.Context, none) (string, error) { return "", errBroken })

	complete := func(_ context.Context, p *mcp.CompleteParams) ([]string, error) {
		return suggest(p.Argument.Name, p.Argument.Value), nil
	}
	mux.Prompt("greet", mcp.PromptFunc(func(_ context.Context, in nameForm) (string, error) { return "Greet " + in.Name, nil },
		&mcp.Prompt{Completers: map[string]mcp.Completer{"name": complete}}))
	mux.Resource("demo://readme", mcp.ResourceFunc(func(context.Context, none) (string, error) { return "read me", nil },
		&mcp.Resource{Name: "readme", MIMEType: "text/plain"}))
	mux.Resource("demo://item/{id}", mcp.ResourceFunc(func(_ context.Context, in itemIn) (string, error) { return "item " + in.ID, nil },
		&mcp.Resource{Name: "item", MIMEType: "text/plain", Completers: map[string]mcp.Completer{"id": complete}}))
	return mux
}

// addAsking adds the tools that send requests to the client.
func addAsking(mux *mcp.Mux) {
	textTool(mux, "ask", func(ctx context.Context, _ none) (string, error) {
		form, err := mcp.Elicit[nameForm](ctx, "name", whoAreYou)
		return "hello " + form.Name, err
	})
	textTool(mux, "visit", func(ctx context.Context, _ none) (string, error) {
		return "visited", mcp.ElicitURL(ctx, "visit", "Go there", visitURL)
	})
	textTool(mux, "sample", func(ctx context.Context, _ none) (string, error) {
		res, err := mcp.Sample(ctx, "sample", &mcp.CreateMessageParams{
			Messages:  []*mcp.SamplingMessage{{Role: "user", Content: mcp.SamplingContent{mcp.Text("ping")}}},
			MaxTokens: 10,
		})
		if err != nil {
			return "", err
		}
		return "model: " + textOf(res.Content), nil
	})
	textTool(mux, "roots", func(ctx context.Context, _ none) (string, error) {
		roots, err := mcp.Roots(ctx, "roots")
		if err != nil || len(roots) != 1 {
			return "", fmt.Errorf("%d roots, %w", len(roots), err)
		}
		return roots[0].URI, nil
	})
}

// addTelling adds the tools that send notifications to the client.
func addTelling(mux *mcp.Mux) {
	textTool(mux, "count", func(ctx context.Context, in countIn) (string, error) {
		for i := range in.Steps {
			mcp.Progress(ctx, float64(i+1), float64(in.Steps), fmt.Sprint("step ", i+1))
		}
		return "counted", nil
	})
	textTool(mux, "log", func(ctx context.Context, _ none) (string, error) {
		mcp.ClientLogger(ctx).InfoContext(ctx, "logged")
		return "", nil
	})
	textTool(mux, "grow", func(context.Context, none) (string, error) {
		mux.RemoveTool("grown")
		textTool(mux, "grown", func(context.Context, none) (string, error) { return "", nil })
		return "grown", nil
	})
	textTool(mux, "touch", func(context.Context, none) (string, error) {
		mux.ResourceUpdated("demo://readme")
		return "touched", nil
	})
}

func textOf(content []mcp.Content) string {
	for _, c := range content {
		if text, ok := c.(*mcp.TextContent); ok {
			return text.Text
		}
	}
	return ""
}
