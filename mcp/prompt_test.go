// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

type essay struct {
	Topic  string `json:"topic" jsonschema:"description=what it is about"`
	Length int    `json:"length,omitempty" jsonschema:"default=100"`
	Tone   string `json:"tone,omitempty" jsonschema:"enum=dry,enum=droll"`
	Draft  bool   `json:"draft,omitempty"`
}

func TestPrompts(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Prompt("essay", mcp.PromptFunc(func(_ context.Context, in essay) (string, error) {
		return fmt.Sprintf("%s %d %s %t", in.Topic, in.Length, in.Tone, in.Draft), nil
	}, &mcp.Prompt{Description: "Write an essay."}))
	mux.Prompt("talk", mcp.PromptFunc(func(context.Context, map[string]string) ([]*mcp.PromptMessage, error) {
		return []*mcp.PromptMessage{mcp.UserMessage(mcp.Text("a")), mcp.AssistantMessage(mcp.Text("b"))}, nil
	}, nil))
	mux.Prompt("fails", mcp.PromptFunc(func(context.Context, none) (string, error) { return "", errors.New("no") }, nil))
	mux.Prompt("neither", mcp.PromptFunc(func(context.Context, none) (*mcp.GetPromptResult, error) { return nil, nil }, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		res, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "essay", Arguments: map[string]string{"topic": "5", "draft": "true"}})
		if err != nil || res.Description != "Write an essay." || res.Messages[0].Role != mcp.RoleUser {
			t.Fatalf("got %+v, %v", res, err)
		}
		if got := res.Messages[0].Content.(*mcp.TextContent).Text; got != "5 100  true" {
			t.Errorf("got %q", got)
		}
		res, err = c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "talk", Arguments: map[string]string{"anything": "goes"}})
		if err != nil || len(res.Messages) != 2 || res.Messages[1].Role != mcp.RoleAssistant {
			t.Errorf("got %+v, %v", res, err)
		}
		for name, code := range map[string]int{"fails": mcp.CodeInternalError, "neither": mcp.CodeInternalError} {
			_, err = c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name})
			wantCode(t, err, code)
		}
		for _, args := range []map[string]string{{}, {"topic": "x", "length": "long"}, {"topic": "x", "tone": "loud"}, {"topic": "x", "colour": "red"}} {
			_, err = c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "essay", Arguments: args})
			wantCode(t, err, mcp.CodeInvalidParams)
		}
	})
}

// Hosts send "" for an optional argument that their user has skipped. If that is no value of
// the argument, it counts as absent, so that defaults apply; a required one stays invalid.
func TestFindingR29EmptyPromptArguments(t *testing.T) {
	type in struct {
		Count    int        `json:"count"`
		Length   int        `json:"length,omitempty" jsonschema:"default=100"`
		Tone     string     `json:"tone,omitempty" jsonschema:"enum=dry,enum=droll"`
		Draft    *bool      `json:"draft,omitempty"`
		Deadline *time.Time `json:"deadline,omitempty"`
		Title    *string    `json:"title,omitempty"`
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Prompt("p", mcp.PromptFunc(func(_ context.Context, in in) (string, error) {
		return fmt.Sprintf("%d %d %q %t %t %q", in.Count, in.Length, in.Tone, in.Draft == nil, in.Deadline == nil, *in.Title), nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		args := map[string]string{"count": "1", "length": "", "tone": "", "draft": "", "deadline": "", "title": ""}
		res, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p", Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Messages[0].Content.(*mcp.TextContent).Text; got != `1 100 "" true true ""` {
			t.Errorf("got %s", got)
		}
		args["count"] = ""
		_, err = c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p", Arguments: args})
		wantCode(t, err, mcp.CodeInvalidParams)
	})
}

// Enum values can be numbers, which clients see as text.
func TestPromptEnumOfNumbers(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Prompt("verse", mcp.PromptFunc(func(_ context.Context, in struct {
		Lines int `json:"lines" jsonschema:"enum=4,enum=14"`
	}) (string, error) {
		return fmt.Sprint(in.Lines), nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		ref := mcp.CompleteRef{Type: "ref/prompt", Name: "verse"}
		values, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteArgument{Name: "lines", Value: "1"}})
		if err != nil || !slices.Equal(values.Completion.Values, []string{"14"}) {
			t.Errorf("got %+v, %v", values, err)
		}
		res, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "verse", Arguments: map[string]string{"lines": "14"}})
		if err != nil || res.Messages[0].Content.(*mcp.TextContent).Text != "14" {
			t.Errorf("got %+v, %v", res, err)
		}
		_, err = c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "verse", Arguments: map[string]string{"lines": "5"}})
		wantCode(t, err, mcp.CodeInvalidParams)
	})
}

// A pointer is an optional argument, with or without omitempty.
func TestPromptPointers(t *testing.T) {
	type stanza struct {
		Title *string `json:"title"`
		Lines *int    `json:"lines"`
		Metre *string `json:"metre" jsonschema:"enum=iambic,enum=dactylic"`
		Rhyme *bool   `json:"rhyme,omitempty"`
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Prompt("stanza", mcp.PromptFunc(func(_ context.Context, in stanza) (string, error) {
		text, err := json.Marshal(in)
		return string(text), err
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for want, arguments := range map[string]map[string]string{
			`{"title":null,"lines":null,"metre":null}`:                    nil,
			`{"title":"null","lines":4,"metre":"iambic","rhyme":true}`:    {"title": "null", "lines": "4", "metre": "iambic", "rhyme": "true"},
			`{"title":"4","lines":null,"metre":"dactylic","rhyme":false}`: {"title": "4", "metre": "dactylic", "rhyme": "false"},
		} {
			res, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "stanza", Arguments: arguments})
			if err != nil || res.Messages[0].Content.(*mcp.TextContent).Text != want {
				t.Errorf("%v: got %+v, %v", arguments, res, err)
			}
		}
		_, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "stanza", Arguments: map[string]string{"metre": "free"}})
		wantCode(t, err, mcp.CodeInvalidParams)
		values, err := c.Complete(t.Context(), &mcp.CompleteParams{
			Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "stanza"}, Argument: mcp.CompleteArgument{Name: "metre", Value: "i"},
		})
		if err != nil || !slices.Equal(values.Completion.Values, []string{"iambic"}) {
			t.Errorf("got %+v, %v", values, err)
		}
	})
}

func TestPromptArguments(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Prompt("essay", mcp.PromptFunc(func(context.Context, essay) (string, error) { return "", nil }, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for p, err := range c.Prompts(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			var args []string
			for _, a := range p.Arguments {
				args = append(args, fmt.Sprintf("%s:%t", a.Name, a.Required))
			}
			if want := []string{"topic:true", "length:false", "tone:false", "draft:false"}; p.Name != "essay" || !slices.Equal(args, want) {
				t.Errorf("prompt %s has arguments %q", p.Name, args)
			}
			if p.Arguments[0].Description != "what it is about" {
				t.Errorf("described as %q", p.Arguments[0].Description)
			}
		}
	})
}

func TestPromptFuncPanics(t *testing.T) {
	wantPanic(t, func() {
		mcp.PromptFunc(func(context.Context, struct{ A []int }) (string, error) { return "", nil }, nil)
	}, "prompt_test.go:", `"A"`)
	wantPanic(t, func() {
		mcp.PromptFunc(func(context.Context, none) (int, error) { return 0, nil }, nil)
	}, "prompt_test.go:", "int")
	wantPanic(t, func() { mcp.PromptFunc[none, string](nil, nil) }, "prompt_test.go:", "the function is nil")
}

func TestCompletion(t *testing.T) {
	many := make([]string, 250)
	for i := range many {
		many[i] = fmt.Sprintf("v%03d", i)
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Prompt("essay", mcp.PromptFunc(func(context.Context, essay) (string, error) { return "", nil }, &mcp.Prompt{
		Completers: map[string]mcp.Completer{
			"topic": func(_ context.Context, p *mcp.CompleteParams) ([]string, error) {
				if p.Context != nil && p.Context.Arguments["tone"] == "dry" {
					return []string{"tax"}, nil
				}
				return []string{"love", "war"}, nil
			},
			"length": mcp.CompleteFrom(many...),
			"draft":  func(context.Context, *mcp.CompleteParams) ([]string, error) { return nil, errors.New("no") },
		},
	}))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		complete := func(argument, typed string, chosen map[string]string) (*mcp.CompleteResult, error) {
			p := &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "essay"}, Argument: mcp.CompleteArgument{Name: argument, Value: typed}}
			if chosen != nil {
				p.Context = &mcp.CompleteContext{Arguments: chosen}
			}
			return c.Complete(t.Context(), p)
		}
		for _, test := range []struct {
			argument, typed string
			chosen          map[string]string
			want            string
		}{
			{"topic", "", nil, "love war"},
			{"topic", "", map[string]string{"tone": "dry"}, "tax"},
			{"tone", "D", nil, "dry droll"},
			{"tone", "dro", nil, "droll"},
			{"unheard", "", nil, ""},
		} {
			res, err := complete(test.argument, test.typed, test.chosen)
			if err != nil || strings.Join(res.Completion.Values, " ") != test.want {
				t.Errorf("%+v: got %+v, %v", test, res, err)
			}
		}
		res, err := complete("length", "v", nil)
		if err != nil || len(res.Completion.Values) != 100 || !res.Completion.HasMore || *res.Completion.Total != 250 {
			t.Errorf("got %+v, %v", res, err)
		}
		res, err = complete("length", "v0", nil) // as many as fit
		if err != nil || len(res.Completion.Values) != 100 || res.Completion.HasMore || res.Completion.Total != nil {
			t.Errorf("got %+v, %v", res, err)
		}
		_, err = complete("draft", "", nil)
		wantCode(t, err, mcp.CodeInternalError)
		_, err = c.Complete(t.Context(), &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/tool", Name: "essay"}})
		wantCode(t, err, mcp.CodeInvalidParams)
	})
}

// All problems with the arguments are reported in a single line.
func TestPromptProblemsInOneLine(t *testing.T) {
	type in struct {
		N    int    `json:"n"`
		Tone string `json:"tone" jsonschema:"enum=kind,enum=strict"`
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Prompt("p", mcp.PromptFunc(func(context.Context, in) (string, error) { return "", nil }, nil))
	_, err := connect(t, mux, nil).GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p", Arguments: map[string]string{"n": "x", "tone": "rude"}})
	const want = `params.arguments: /n: expected integer, got string "x"; /tone: expected one of the allowed values, got string "rude"; allowed: "kind", "strict"`
	if e, ok := errors.AsType[*mcp.Error](err); !ok || e.Message != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
