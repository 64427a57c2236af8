// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"fmt"
	"reflect"
	"slices"
)

// PromptFunc makes the handler of a prompt from a function. It panics if In is a
// type that a prompt's arguments cannot fill.
//
// In is a struct of strings, numbers and booleans, or a map of strings. The
// prompt's arguments are inferred from it unless p has some; fields that are
// enums complete by themselves.
//
// Out is a string, which makes one message of the user, one or several
// [*PromptMessage], or [*GetPromptResult]. An error is the error of the request.
//
// A nil p means the zero Prompt.
func PromptFunc[In, Out any](fn func(ctx context.Context, in In) (Out, error), p *Prompt) Handler {
	f := &promptFunc[In, Out]{fn: fn}
	if p != nil {
		f.prompt = *p
	}
	var err error
	if f.in, err = newTextInput(reflect.TypeFor[In]()); err != nil {
		panic(fmt.Sprintf("mcp: PromptFunc at %s: arguments: %v", callSite(), err))
	}
	if f.prompt.Arguments == nil {
		f.prompt.Arguments = f.in.arguments()
	}
	switch any(*new(Out)).(type) {
	case string, *PromptMessage, []*PromptMessage, *GetPromptResult:
	default:
		panic(fmt.Sprintf("mcp: PromptFunc at %s: a prompt cannot return %v", callSite(), reflect.TypeFor[Out]()))
	}
	return f
}

type promptFunc[In, Out any] struct {
	fn     func(context.Context, In) (Out, error)
	prompt Prompt
	in     *textInput
}

func (f *promptFunc[In, Out]) Describe() Description { return &f.prompt }

func (f *promptFunc[In, Out]) enums() map[string][]string { return f.in.enums() }

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
