// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"reflect"
	"slices"
)

// A Prompt describes a prompt.
type Prompt struct {
	Name        string            `json:"name"` // set by [Mux.Prompt]
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description,omitempty"`
	Arguments   []*PromptArgument `json:"arguments,omitempty"` // nil: [PromptFunc] infers them
	Icons       []Icon            `json:"icons,omitempty"`
	Meta        Meta              `json:"_meta,omitempty"`
	Extra       Extra             `json:",inline,embed"`

	// Completers suggest values for arguments, by name. Arguments with an enum are completed
	// without one. Middleware of [Mux.With] applies to completers as it does to the prompt,
	// but checks made by the prompt's function do not.
	Completers map[string]Completer `json:"-"`
}

// A PromptArgument describes an argument of a prompt.
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitzero"`
	Extra       Extra  `json:",inline,embed"`
}

// GetPromptParams are the params of prompts/get.
type GetPromptParams struct {
	Name      string            `json:"name"`
	Arguments map[string]string `json:"arguments,omitempty"`
	Resume
	Meta  Meta  `json:"_meta,omitempty"`
	Extra Extra `json:",inline,embed"`
}

// GetPromptResult is the result of prompts/get.
type GetPromptResult struct {
	ResultBase
	Description string           `json:"description,omitempty"`
	Messages    []*PromptMessage `json:"messages"`
}

// A PromptMessage is one message of a prompt.
type PromptMessage struct {
	Role    Role
	Content Content
	Extra   Extra
}

// UserMessage returns a message with the user role.
func UserMessage(c Content) *PromptMessage { return &PromptMessage{Role: RoleUser, Content: c} }

// AssistantMessage returns a message with the assistant role.
func AssistantMessage(c Content) *PromptMessage {
	return &PromptMessage{Role: RoleAssistant, Content: c}
}

type wirePromptMessage struct {
	Role    Role      `json:"role"`
	Content wireBlock `json:"content"`
	Extra   Extra     `json:",inline,embed"`
}

// MarshalJSON implements json.Marshaler.
func (m PromptMessage) MarshalJSON() ([]byte, error) {
	return marshal(wirePromptMessage{m.Role, wireBlock{m.Content}, m.Extra})
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *PromptMessage) UnmarshalJSON(data []byte) error {
	var w wirePromptMessage
	if err := unmarshal(data, &w); err != nil {
		return err
	}
	if w.Content.block == nil {
		return errors.New("mcp: a message has no content")
	}
	*m = PromptMessage{w.Role, w.Content.block, w.Extra}
	return nil
}

func (*PromptMessage) wire() any { return new(wirePromptMessage) }

// ListPromptsResult is the result of prompts/list. The prompts are shared; copy a prompt
// before modifying it.
type ListPromptsResult struct {
	ResultBase
	Cacheable
	Page
	Prompts []*Prompt `json:"prompts"`
}

// PromptFunc returns a prompt handler that calls fn. It panics if fn is nil, if the arguments
// of a prompt cannot be decoded into In, or if Out is none of the types below.
//
// In is a struct of strings, numbers and booleans, or a map of strings. The arguments of
// the prompt are inferred from it unless p.Arguments is set. Enums are completed.
//
// Out is a string, which is sent as one user message, a [*PromptMessage], a slice of
// [*PromptMessage], or a [*GetPromptResult]. An error returned by fn is the error of the
// request.
//
// A nil p means the zero Prompt.
func PromptFunc[In, Out any](fn func(ctx context.Context, in In) (Out, error), p *Prompt) Handler {
	mustBeFunc("PromptFunc", fn == nil)
	f := &promptFunc[In, Out]{fn: fn}
	if p != nil {
		f.prompt = *p
	}
	var err error
	if f.in, err = newTextInput(reflect.TypeFor[In]()); err != nil {
		panic(registrationErrorf("PromptFunc at %s: arguments: %w", callSite(), err))
	}
	if f.prompt.Arguments == nil {
		f.prompt.Arguments = f.in.arguments()
	}
	switch any(*new(Out)).(type) {
	case string, *PromptMessage, []*PromptMessage, *GetPromptResult:
	default:
		panic(registrationErrorf("PromptFunc at %s: a prompt cannot return %v", callSite(), reflect.TypeFor[Out]()))
	}
	return f
}

type promptFunc[In, Out any] struct {
	fn     func(context.Context, In) (Out, error)
	prompt Prompt
	in     *textInput
}

func (f *promptFunc[In, Out]) Describe() Description { return &f.prompt }

func (f *promptFunc[In, Out]) enumValues() map[string][]string { return f.in.enumValues() }

func (f *promptFunc[In, Out]) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	var p GetPromptParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	var in In
	if err := f.in.decode(ctx, "params.arguments", p.Arguments, &in); err != nil {
		return nil, err
	}
	out, err := f.fn(ctx, in)
	if err != nil {
		return nil, err
	}
	return f.result(out)
}

func (f *promptFunc[In, Out]) result(out Out) (Result, error) {
	res := &GetPromptResult{Description: f.prompt.Description}
	switch out := any(out).(type) {
	case string:
		res.Messages = []*PromptMessage{UserMessage(Text(out))}
	case *PromptMessage:
		res.Messages = []*PromptMessage{out}
	case []*PromptMessage:
		res.Messages = out
	case *GetPromptResult:
		res = out
	}
	if res == nil || slices.Contains(res.Messages, nil) {
		return nil, Errorf(CodeInternalError, "the prompt returned neither a result nor an error")
	}
	return res, nil
}

func (in *textInput) arguments() []*PromptArgument {
	var args []*PromptArgument
	for _, name := range in.names {
		f := in.fields[name]
		args = append(args, &PromptArgument{
			Name: name, Title: f.Title, Description: f.Description,
			Required: slices.Contains(in.required, name),
		})
	}
	return args
}
