// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"fmt"

	"github.com/go-psi/psi/mcp"
)

// addRounds adds the tools that keep state between questions, ask several questions, or ask
// in several rounds.
func addRounds(mux *mcp.Mux) {
	mux.Tool("test_input_required_result_request_state", mcp.ToolFunc(remembering, about("Remembers something while it asks.")))
	mux.Tool("test_input_required_result_tampered_state", mcp.ToolFunc(remembering, about("Remembers something that nobody may change.")))
	mux.Tool("test_input_required_result_multiple_inputs", mcp.ToolFunc(askingAll, about("Asks the user, the model and the client at once.")))
	mux.Tool("test_input_required_result_multi_round", mcp.ToolFunc(askingTwice, about("Asks, and asks again.")))
}

// remembering computes its offer only once, although it runs again after each answer.
func remembering(ctx context.Context, _ none) (string, error) {
	offer, err := mcp.Once(ctx, "offer", func(context.Context) (string, error) { return "state-ok", nil })
	if err != nil {
		return "", err
	}
	answer, err := mcp.Elicit[confirmation](ctx, "confirm", "Do you accept the offer?")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: accepted is %t", offer, answer.OK), nil
}

func askingAll(ctx context.Context, _ none) (string, error) {
	var (
		user    person
		opinion mcp.CreateMessageResult
		roots   []mcp.Root
	)
	err := mcp.Ask(ctx,
		mcp.ElicitQuestion("user_name", "What is your name?", &user),
		mcp.SampleQuestion("greeting", ask("Say hello."), &opinion),
		mcp.RootsQuestion("client_roots", &roots))
	if err != nil {
		return "", err
	}
	hello, err := textOf(&opinion)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s says %q in %d places.", user.Name, hello, len(roots)), nil
}

type colour struct {
	Color string `json:"color" jsonschema:"description=the one you like best"`
}

func askingTwice(ctx context.Context, _ none) (string, error) {
	user, err := mcp.Elicit[person](ctx, "step1", "What is your name?")
	if err != nil {
		return "", err
	}
	favourite, err := mcp.Elicit[colour](ctx, "step2", fmt.Sprintf("Which colour do you like, %s?", user.Name))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s likes %s.", user.Name, favourite.Color), nil
}
