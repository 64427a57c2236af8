// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/tasks"
)

// newMux makes the server: all fixtures, each file adding its own. The manager of its tasks
// is to be shut down with it.
func newMux() (*mcp.Mux, *tasks.Manager) {
	mux := mcp.NewMux("psi-conformance", "v1.0.0", &mcp.MuxOptions{
		Instructions: "Every tool, prompt and resource here exists to be tested.",
		NoLint:       true, // some schemas are strange on purpose
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

// about describes a tool whose schema is inferred.
func about(description string) *mcp.Tool { return &mcp.Tool{Description: description} }

// none are the arguments of a tool or prompt that takes none.
type none = struct{}
