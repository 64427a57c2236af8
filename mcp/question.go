// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "encoding/json"

// InputRequired is the result of a request that cannot go on without answers
// from the client (basic/patterns/mrtr). The client answers the questions and
// sends the request again, with the answers and the state. In the legacy era
// the questions become requests to the client, and the handler is called again
// with what it answered.
type InputRequired struct {
	ResultBase
	InputRequests map[string]InputRequest `json:"inputRequests,omitempty"`
	RequestState  *string                 `json:"requestState,omitzero"` // nil means none; "" is a state
}

// An InputRequest is one question: elicitation/create, sampling/createMessage
// or roots/list.
type InputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitzero"`
}

// ElicitParams are the params of elicitation/create. Mode is "form", with a
// schema, or "url", with a URL; empty means form.
type ElicitParams struct {
	Mode            string          `json:"mode,omitempty"`
	Message         string          `json:"message"`
	RequestedSchema json.RawMessage `json:"requestedSchema,omitzero"`
	URL             string          `json:"url,omitempty"`
	ElicitationID   string          `json:"elicitationId,omitempty"` // legacy era only
	Meta            Meta            `json:"_meta,omitempty"`
}

// ElicitResult answers elicitation/create.
type ElicitResult struct {
	ResultBase
	Action  string          `json:"action"`           // accept, decline or cancel
	Content json.RawMessage `json:"content,omitzero"` // an object, if accepted in form mode
}

// The actions of an [ElicitResult].
const (
	ActionAccept  = "accept"
	ActionDecline = "decline"
	ActionCancel  = "cancel"
)

// CreateMessageParams are the params of sampling/createMessage.
type CreateMessageParams struct {
	Messages         []*SamplingMessage `json:"messages"`
	ModelPreferences *ModelPreferences  `json:"modelPreferences,omitzero"`
	SystemPrompt     string             `json:"systemPrompt,omitempty"`
	IncludeContext   string             `json:"includeContext,omitempty"`
	Temperature      *float64           `json:"temperature,omitzero"`
	MaxTokens        int64              `json:"maxTokens"`
	StopSequences    []string           `json:"stopSequences,omitempty"`
	Metadata         json.RawMessage    `json:"metadata,omitzero"`
	Tools            []*Tool            `json:"tools,omitempty"`
	ToolChoice       *ToolChoice        `json:"toolChoice,omitzero"`
	Meta             Meta               `json:"_meta,omitempty"`
}

// A SamplingMessage is one message of a conversation. A single block is sent as
// an object, as every revision understands it.
type SamplingMessage struct {
	Role    Role            `json:"role"`
	Content SamplingContent `json:"content"`
	Meta    Meta            `json:"_meta,omitempty"`
}

// SamplingContent is one block of content or several.
type SamplingContent []Content

// MarshalJSON implements json.Marshaler.
func (c SamplingContent) MarshalJSON() ([]byte, error) {
	if len(c) == 1 {
		return appendContent(nil, c[0])
	}
	return appendContents(nil, c)
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *SamplingContent) UnmarshalJSON(data []byte) error {
	return (*Contents)(c).UnmarshalJSON(data)
}

// ModelPreferences are a server's wishes for the model that samples.
type ModelPreferences struct {
	Hints                []ModelHint `json:"hints,omitempty"`
	CostPriority         *float64    `json:"costPriority,omitzero"`
	SpeedPriority        *float64    `json:"speedPriority,omitzero"`
	IntelligencePriority *float64    `json:"intelligencePriority,omitzero"`
}

// A ModelHint is a part of a model's name.
type ModelHint struct {
	Name string `json:"name,omitempty"`
}

// ToolChoice says whether the model may, must or must not use a tool.
type ToolChoice struct {
	Mode string `json:"mode,omitempty"` // auto, required or none
}

// CreateMessageResult answers sampling/createMessage.
type CreateMessageResult struct {
	ResultBase
	Role       Role            `json:"role"`
	Content    SamplingContent `json:"content"`
	Model      string          `json:"model"`
	StopReason string          `json:"stopReason,omitempty"`
}

// ListRootsResult answers roots/list.
type ListRootsResult struct {
	ResultBase
	Roots []Root `json:"roots"`
}

// A Root is a place in the file system that a client lets a server work in.
type Root struct {
	URI  string `json:"uri"` // file://…
	Name string `json:"name,omitempty"`
	Meta Meta   `json:"_meta,omitempty"`
}
