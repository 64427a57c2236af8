// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"fmt"

	"github.com/go-psi/psi/mcp"
)

// addCapabilities adds the tools that depend on the client's capabilities.
func addCapabilities(mux *mcp.Mux) {
	mux.Tool("test_missing_capability", mcp.ToolFunc(needingSampling, about("Cannot do without the client's model.")))
	mux.Tool("test_input_required_result_capabilities", mcp.ToolFunc(askingWhatItCan, about("Asks whom it can.")))
}

// needingSampling relies on Sample to reject clients without sampling.
func needingSampling(ctx context.Context, _ none) (string, error) {
	return sample(ctx, "question", "Are you there?")
}

// askingWhatItCan sends every kind of question that the client's capabilities allow.
func askingWhatItCan(ctx context.Context, _ none) (string, error) {
	caps := mcp.RequestFromContext(ctx).ClientCapabilities()
	var questions []mcp.Question
	if caps.Elicitation.AllowsForm() {
		questions = append(questions, mcp.ElicitQuestion("user_name", "What is your name?", new(person)))
	}
	if caps.Sampling != nil {
		questions = append(questions, mcp.SampleQuestion("greeting", ask("Say hello."), new(mcp.CreateMessageResult)))
	}
	if caps.Roots != nil {
		questions = append(questions, mcp.RootsQuestion("client_roots", new([]mcp.Root)))
	}
	if err := mcp.Ask(ctx, questions...); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d questions were answered.", len(questions)), nil
}
