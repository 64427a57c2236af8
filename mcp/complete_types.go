// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

// CompleteParams are the params of completion/complete.
type CompleteParams struct {
	Ref      CompleteRef      `json:"ref"`
	Argument CompleteArgument `json:"argument"`
	Context  *CompleteContext `json:"context,omitzero"`
	Meta     Meta             `json:"_meta,omitempty"`
}

// A CompleteRef names a prompt ("ref/prompt") or a resource template
// ("ref/resource").
type CompleteRef struct {
	Type  string `json:"type"`
	Name  string `json:"name,omitempty"` // of the prompt
	Title string `json:"title,omitempty"`
	URI   string `json:"uri,omitempty"` // of the template
}

// A CompleteArgument is the argument to complete and what was typed of it.
type CompleteArgument struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// CompleteContext holds the arguments that were chosen before.
type CompleteContext struct {
	Arguments map[string]string `json:"arguments,omitempty"`
}

// CompleteResult answers completion/complete.
type CompleteResult struct {
	ResultBase
	Completion Completion `json:"completion"`
}

// A Completion is a list of suggestions, the best first, at most 100.
type Completion struct {
	Values  []string `json:"values"`
	Total   *int     `json:"total,omitzero"`
	HasMore bool     `json:"hasMore,omitzero"`
}
