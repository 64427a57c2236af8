// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package lint

import (
	"fmt"
	"strings"

	"github.com/go-psi/psi/mcp"
)

// maxTools is the maximum number of tools in a request to OpenAI, from all servers together
// (github.com/anomalyco/opencode/issues/4909 has the message of its API).
const maxTools = 128

// Tools checks the tools of a server. prefix is what a host or a gateway puts before their
// names. It counts as part of the names, and may be empty. Nil tools are ignored. The
// findings are in the order of the tools. For each tool, the errors come first.
func Tools(tools []*mcp.Tool, prefix string) []Finding {
	var found []Finding
	names := newNames(prefix)
	for i, t := range tools {
		if t == nil {
			continue
		}
		it := item{KindTool, t.Name, &found}
		names.check(it, i)
		it.description(t.Description)
		it.hidden("/title", t.Title)
		it.annotations(t.Annotations)
		it.inputSchema(t.InputSchema)
		it.outputSchema(t.OutputSchema)
	}
	if len(tools) > maxTools {
		item{KindServer, "", &found}.report(Warning, "", "tool-count",
			fmt.Sprintf("there are %d tools, but a request to a model may have %d, of all servers together", len(tools), maxTools),
			"offer fewer, or several servers, or let the user choose groups of tools", "OpenAI")
	}
	return ordered(found)
}

func (it item) annotations(a *mcp.ToolAnnotations) {
	if a == nil {
		a = &mcp.ToolAnnotations{}
	}
	it.hidden("/annotations/title", a.Title)
	if a.ReadOnlyHint == nil {
		// The defaults in the specification describe the most dangerous tool.
		it.report(Note, "/annotations", "read-only-hint", "readOnlyHint is missing, so hosts take the tool for one that changes things and ask the user before each call",
			"set readOnlyHint, and destructiveHint if it is false")
		return
	}
	if *a.ReadOnlyHint && a.DestructiveHint != nil && *a.DestructiveHint {
		it.report(Warning, "/annotations/destructiveHint", "contradicting-hints", "a tool that only reads cannot be destructive",
			"remove destructiveHint, or set readOnlyHint to false")
	}
}

// Limits of descriptions, in characters.
const (
	// maxDescription was the limit of OpenAI (github.com/getsentry/sentry-mcp/issues/106)
	// until May 2025 (github.com/run-llama/llama_index/pull/18784). APIs that imitate
	// OpenAI's, and older deployments, still have it.
	maxDescription = 1024
	// maxClaudeCode is where Claude Code truncates the descriptions of tools and the
	// instructions of servers (github.com/anthropics/claude-code/issues/81268).
	maxClaudeCode = 2048
)

func (it item) description(text string) {
	it.hidden("/description", text)
	length := len([]rune(text))
	switch {
	case strings.TrimSpace(text) == "":
		it.report(Warning, "/description", "description-missing", "the tool has no description, by which models choose a tool",
			"say what the tool does, when to use it, and what it returns")
	case length > maxClaudeCode:
		it.report(Warning, "/description", "description-long", fmt.Sprintf("the description has %d characters; what follows the first %d is cut off", length, maxClaudeCode),
			"move details to the descriptions of the arguments, and what matters to the front", "Claude Code")
	case length > maxDescription:
		it.report(Warning, "/description", "description-long", fmt.Sprintf("the description has %d characters; some APIs accept %d", length, maxDescription),
			"move details to the descriptions of the arguments", "older deployments of OpenAI")
	}
}

// Instructions checks the instructions of a server.
func Instructions(text string) []Finding {
	var found []Finding
	it := item{KindServer, "", &found}
	it.hidden("/instructions", text)
	if length := len([]rune(text)); length > maxClaudeCode {
		it.report(Warning, "/instructions", "instructions-long", fmt.Sprintf("the instructions have %d characters; what follows the first %d is cut off", length, maxClaudeCode),
			"shorten them, or put what matters to the front", "Claude Code")
	}
	return ordered(found)
}
