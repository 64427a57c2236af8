// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/tasks"
)

// newMux returns the server with all fixtures; each file adds its own. The caller must shut
// down the task manager with the server.
func newMux() (*mcp.Mux, *tasks.Manager) {
	mux := mcp.NewMux("psi-conformance", "v1.0.0", &mcp.MuxOptions{
		Instructions: "Every tool, prompt and resource here exists to be tested.",
		NoLint:       true, // some schemas are unusual on purpose
	})
	addContent(mux)
	addStreaming(mux)
	addQuestions(mux)
	addForms(mux)
	addRounds(mux)
	addCapabilities(mux)
	addSchemas(mux)
	addChanges(mux)
	addPrompts(mux)
	addResources(mux)
	addSkills(mux)
	return mux, addTasks(mux)
}

// about returns a tool with a description and an inferred schema.
func about(description string) *mcp.Tool { return &mcp.Tool{Description: description} }

// none is the type of the arguments of a tool or prompt without arguments.
type none = struct{}
