// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "encoding/json"

// A Prompt describes a prompt.
type Prompt struct {
	Name        string            `json:"name"` // left empty, the name it is registered under
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description,omitempty"`
	Arguments   []*PromptArgument `json:"arguments,omitempty"` // nil: [PromptFunc] infers them
	Icons       []Icon            `json:"icons,omitempty"`
	Meta        Meta              `json:"_meta,omitempty"`
	Extra       Extra             `json:",embed"`

	// Completers suggest values, by name of the argument. Arguments that are
	// enums complete without one.
	Completers map[string]Completer `json:"-"`
}

// A PromptArgument describes an argument of a prompt.
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitzero"`
	Extra       Extra  `json:",embed"`
}

// GetPromptParams are the params of prompts/get.
type GetPromptParams struct {
	Name      string            `json:"name"`
	Arguments map[string]string `json:"arguments,omitempty"`
	Retry
	Meta  Meta  `json:"_meta,omitempty"`
	Extra Extra `json:",embed"`
}

// GetPromptResult answers prompts/get.
type GetPromptResult struct {
	ResultBase
	Description string           `json:"description,omitempty"`
	Messages    []*PromptMessage `json:"messages"`
}

// A PromptMessage is one message of a prompt.
type PromptMessage struct {
	Role    Role
	Content Content
	Extra   Extra
}

// UserMessage is a message of the user.
func UserMessage(c Content) *PromptMessage { return &PromptMessage{Role: RoleUser, Content: c} }

// AssistantMessage is a message of the assistant.
func AssistantMessage(c Content) *PromptMessage {
	return &PromptMessage{Role: RoleAssistant, Content: c}
}

type wirePromptMessage struct {
	Role    Role            `json:"role"`
	Content json.RawMessage `json:"content"`
	Extra   Extra           `json:",embed"`
}

// MarshalJSON implements json.Marshaler.
func (m *PromptMessage) MarshalJSON() ([]byte, error) {
	content, err := appendContent(nil, m.Content)
	if err != nil {
		return nil, err
	}
	return marshal(wirePromptMessage{m.Role, content, m.Extra})
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *PromptMessage) UnmarshalJSON(data []byte) error {
	var w wirePromptMessage
	if err := unmarshal(data, &w); err != nil {
		return err
	}
	content, err := decodeContent(w.Content)
	if err != nil {
		return err
	}
	*m = PromptMessage{w.Role, content, w.Extra}
	return nil
}

// ListPromptsResult answers prompts/list. The prompts are shared: to change
// one, make a copy of it.
type ListPromptsResult struct {
	ResultBase
	Cacheable
	Page
	Prompts []*Prompt `json:"prompts"`
}
