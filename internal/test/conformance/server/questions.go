// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-psi/psi/mcp"
)

// addQuestions adds the tools that ask one question and continue with the answer.
func addQuestions(mux *mcp.Mux) {
	mux.Tool("test_sampling", mcp.ToolFunc(sampling, about("Has the client's model answer a prompt.")))
	mux.Tool("test_elicitation", mcp.ToolFunc(eliciting, about("Asks the user who they are.")))
	mux.Tool("test_streaming_elicitation", mcp.ToolFunc(confirming, about("Asks the user for a confirmation.")))
	mux.Tool("test_input_required_result_elicitation", mcp.ToolFunc(greeting, about("Asks for a name and greets.")))
	mux.Tool("test_input_required_result_sampling", mcp.ToolFunc(capital, about("Asks the model for a capital.")))
	mux.Tool("test_input_required_result_list_roots", mcp.ToolFunc(listingRoots, about("Asks where the client works.")))
}

type promptIn struct {
	Prompt string `json:"prompt" jsonschema:"description=what to ask the model"`
}

func sampling(ctx context.Context, in promptIn) (string, error) {
	reply, err := sample(ctx, "prompt", in.Prompt)
	return "LLM response: " + reply, err
}

// sample asks the client's model to continue a conversation of one message.
func sample(ctx context.Context, key, prompt string) (string, error) {
	result, err := mcp.Sample(ctx, key, ask(prompt))
	if err != nil {
		return "", err
	}
	return textOf(result)
}

func ask(prompt string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{
		Messages:  []*mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text(prompt)}}},
		MaxTokens: 100,
	}
}

func textOf(result *mcp.CreateMessageResult) (string, error) {
	for _, block := range result.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			return text.Text, nil
		}
	}
	return "", errors.New("the model answered without a text")
}

type messageIn struct {
	Message string `json:"message" jsonschema:"description=what to ask the user"`
}

type account struct {
	Username string `json:"username" jsonschema:"description=the name you go by"`
	Email    string `json:"email" jsonschema:"description=where you can be reached"`
}

func eliciting(ctx context.Context, in messageIn) (string, error) {
	user, err := mcp.Elicit[account](ctx, "user", in.Message)
	return described(user, err)
}

// described describes the outcome of an elicitation to the model.
func described(answer any, err error) (string, error) {
	switch {
	case errors.Is(err, mcp.ErrDeclined):
		return "The user declined to answer.", nil
	case errors.Is(err, mcp.ErrCancelled):
		return "The user closed the question.", nil
	case err != nil:
		return "", err
	}
	return fmt.Sprintf("The user answered: %+v", answer), nil
}

type confirmation struct {
	OK bool `json:"ok" jsonschema:"description=whether to go on"`
}

func confirming(ctx context.Context, _ none) (string, error) {
	answer, err := mcp.Elicit[confirmation](ctx, "confirm", "Shall the tool go on?")
	return described(answer, err)
}

type person struct {
	Name string `json:"name" jsonschema:"description=what to call you"`
}

func greeting(ctx context.Context, _ none) (string, error) {
	user, err := mcp.Elicit[person](ctx, "user_name", "What is your name?")
	if err != nil {
		return "", err
	}
	return "Hello, " + user.Name + "!", nil
}

func capital(ctx context.Context, _ none) (string, error) {
	return sample(ctx, "capital_question", "What is the capital of France?")
}

func listingRoots(ctx context.Context, _ none) (string, error) {
	roots, err := mcp.Roots(ctx, "client_roots")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("The client works in %d places.", len(roots)), nil
}
