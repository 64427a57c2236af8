// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"fmt"

	"github.com/go-psi/psi/mcp"
)

func addPrompts(mux *mcp.Mux) {
	mux.Prompt("test_simple_prompt", mcp.PromptFunc(simplePrompt, &mcp.Prompt{Description: "One message without arguments."}))
	mux.Prompt("test_prompt_with_arguments", mcp.PromptFunc(promptWithArguments, &mcp.Prompt{
		Description: "One message made of two arguments.",
		Completers: map[string]mcp.Completer{
			"arg1": mcp.CompleteFrom("testValue1", "testOther1"),
			"arg2": mcp.CompleteFrom("testValue2", "testOther2"),
		},
	}))
	mux.Prompt("test_prompt_with_embedded_resource", mcp.PromptFunc(promptWithResource, &mcp.Prompt{Description: "A message that carries a resource."}))
	mux.Prompt("test_prompt_with_image", mcp.PromptFunc(promptWithImage, &mcp.Prompt{Description: "A message that is a picture."}))
	mux.Prompt("test_input_required_result_prompt", mcp.PromptFunc(promptWithQuestion, &mcp.Prompt{Description: "A message about what the user is asked for."}))
}

func simplePrompt(context.Context, none) (string, error) {
	return "This is a simple prompt for testing.", nil
}

type twoArguments struct {
	Arg1 string `json:"arg1" jsonschema:"description=first test argument"`
	Arg2 string `json:"arg2" jsonschema:"description=second test argument"`
}

func promptWithArguments(_ context.Context, in twoArguments) (string, error) {
	return fmt.Sprintf("Prompt with arguments: arg1=%q, arg2=%q", in.Arg1, in.Arg2), nil
}

type resourceArgument struct {
	ResourceURI string `json:"resourceUri" jsonschema:"description=URI of the resource to embed"`
}

func promptWithResource(_ context.Context, in resourceArgument) ([]*mcp.PromptMessage, error) {
	return []*mcp.PromptMessage{
		mcp.UserMessage(embedded(in.ResourceURI, "This is an embedded resource.")),
		mcp.UserMessage(mcp.Text("Please go through the resource above.")),
	}, nil
}

func promptWithImage(context.Context, none) ([]*mcp.PromptMessage, error) {
	return []*mcp.PromptMessage{
		mcp.UserMessage(redDot()),
		mcp.UserMessage(mcp.Text("Please say what is in the picture above.")),
	}, nil
}

type topic struct {
	Context string `json:"context" jsonschema:"description=what the prompt shall be about"`
}

func promptWithQuestion(ctx context.Context, _ none) (string, error) {
	answer, err := mcp.Elicit[topic](ctx, "user_context", "What shall the prompt be about?")
	if err != nil {
		return "", err
	}
	return "Please tell me about " + answer.Context + ".", nil
}
