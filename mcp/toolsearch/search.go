// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package toolsearch

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

// A search is bounded, because servers decide how many tools they list and how long the
// definitions are.
const (
	maxTools       = 100_000  // that are searched
	maxToolBytes   = 64 << 20 // of their definitions
	maxResultBytes = 64 << 10 // of the definitions that are found
	maxNameBytes   = 256      // of a name in a result
)

// query are the arguments of search_tools. Limit has room for all tools of a small server.
type query struct {
	Query string `json:"query" jsonschema:"minLength=1,maxLength=1000,description=What the tool should do, in a few words"`
	Limit int    `json:"limit,omitempty" jsonschema:"minimum=1,maximum=20,default=5,description=The maximum number of tools to return"`
}

// found is the result of search_tools.
type found struct {
	Tools   []json.RawMessage `json:"tools"`
	Omitted []string          `json:"omitted,omitempty"`
	Hint    string            `json:"hint,omitempty"`
}

func searchTools() *mcp.Tool {
	return &mcp.Tool{
		Title: "Search for tools",
		Description: "Search the tools of this server, most of which are not listed. Returns the definitions of the tools that match best. " +
			"Call one of them with " + callTool + ".",
		OutputSchema: json.RawMessage(`{"type":"object","required":["tools"],"properties":{` +
			`"tools":{"type":"array","items":{"type":"object"},"description":"Definitions of tools, the best match first"},` +
			`"omitted":{"type":"array","items":{"type":"string"},"description":"Names of tools whose definitions did not fit; search for one of them alone"},` +
			`"hint":{"type":"string"}}}`),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true), OpenWorldHint: new(false)},
	}
}

// find is search_tools.
func (s *searcher) find(ctx context.Context, in query) (found, error) {
	var tools []*mcp.Tool
	size := 0
	for t, err := range core.Tools(ctx, s.next, mcp.RequestFromContext(ctx)) {
		if mcp.CodeOf(err) == mcp.CodeMethodNotFound {
			break // the server has no tools
		}
		if err != nil {
			return found{}, err
		}
		if size += len(t.Name) + len(t.Description) + len(t.InputSchema) + len(t.OutputSchema); size > maxToolBytes || len(tools) == maxTools {
			break
		}
		if !isOwn(t.Name) {
			tools = append(tools, t)
		}
	}
	ranked, err := s.opts.Rank(ctx, in.Query, tools)
	if err != nil {
		return found{}, err
	}
	return definitions(first(in.Limit, ranked, tools), len(tools))
}

// definitions returns the definitions of tools, as many as fit.
func definitions(tools []*mcp.Tool, searched int) (found, error) {
	out, size := found{Tools: []json.RawMessage{}}, 0
	for _, t := range tools {
		definition := *t
		definition.Icons = nil // they are for people
		raw, err := strictjson.Marshal(&definition)
		if err != nil {
			return found{}, mcp.Errorf(mcp.CodeInternalError, "a tool could not be encoded: %w", err)
		}
		if size+len(raw) > maxResultBytes {
			out.Omitted = append(out.Omitted, t.Name[:min(len(t.Name), maxNameBytes)])
			continue
		}
		size += len(raw)
		out.Tools = append(out.Tools, raw)
	}
	switch {
	case searched == 0:
		out.Hint = "There are no tools."
	case len(tools) == 0:
		out.Hint = "No tool matches. Use other or fewer words: what the tool does, or what it is about."
	}
	return out, nil
}

// first returns up to n of the tools in ranked. It leaves out what is not in tools, so that a
// Ranker cannot add to what the caller sees, and what is there twice.
func first(n int, ranked, tools []*mcp.Tool) []*mcp.Tool {
	var kept []*mcp.Tool
	for _, t := range ranked {
		if len(kept) == n {
			break
		}
		if slices.Contains(tools, t) && !slices.Contains(kept, t) {
			kept = append(kept, t)
		}
	}
	return kept
}
