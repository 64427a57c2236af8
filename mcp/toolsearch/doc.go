// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package toolsearch lets a model search the tools of a server instead of reading all of them,
// which costs tokens and makes it choose worse if there are hundreds. Lists show two tools,
// search_tools and call_tool, and those that are pinned. All other tools stay callable, by
// call_tool and under their own names:
//
//	mux.Use(toolsearch.New(&toolsearch.Options{Pinned: []string{"help"}}))
//	mux.Use(middleware.Visible(mayUse), middleware.Audit(record, nil))
//	mux.Mount("github_", github)
//
// Put it outermost. What is inside, from authorization to the tool, sees a call under the real
// name, as if the client had made it: validation, questions, progress and tasks work as without
// toolsearch. What is outside sees search_tools and call_tool. A host that asks its user before
// each call shows call_tool with the name and the arguments of the tool, but does not know its
// annotations.
//
// A search reads the list that the inner handler gives to the caller, so a tool that the caller
// may not see is not found, and changes of the list are seen at once. For servers that
// are slow to list, put Cache of package middleware into the client of their connections.
//
// This package is a tool, as docs/stability.md defines it.
package toolsearch
