// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/go-psi/psi/internal/jsonscan"
)

// Elicit asks the user to fill in a form with the fields of T, a struct of strings,
// numbers, booleans, enums and lists of enums, and returns the completed T. Until the user
// has answered, it returns an error that the handler must return; see [Ask]. If the user
// declines or cancels, the error is [ErrDeclined] or [ErrCancelled].
func Elicit[T any](ctx context.Context, key, message string) (T, error) {
	var answer T
	err := Ask(ctx, ElicitQuestion(key, message, &answer))
	return answer, err
}

// ElicitURL asks the user to visit a URL. Use it for input that must not pass through the
// client, such as secrets. A nil error means that the user agreed to open the URL, not that
// anything was done there.
func ElicitURL(ctx context.Context, key, message, url string) error {
	return Ask(ctx, ElicitURLQuestion(key, message, url))
}

// Sample asks the client's model to continue a conversation.
//
// Deprecated: the specification has deprecated sampling. Call the API of a model provider instead. It works
// while a supported revision has sampling.
func Sample(ctx context.Context, key string, params *CreateMessageParams) (*CreateMessageResult, error) {
	result := new(CreateMessageResult)
	if err := Ask(ctx, SampleQuestion(key, params, result)); err != nil {
		return nil, err
	}
	return result, nil
}

// Roots asks the client for its roots, the directories and files that a server may work in.
//
// Deprecated: the specification has deprecated roots. Take directories as arguments of tools or as URIs of
// resources, or from the configuration of the server. It works while a supported revision has
// roots.
func Roots(ctx context.Context, key string) ([]Root, error) {
	var roots []Root
	err := Ask(ctx, RootsQuestion(key, &roots))
	return roots, err
}

// ElicitQuestion returns the question that [Elicit] asks. The answer is stored in dst.
func ElicitQuestion[T any](key, message string, dst *T) Question {
	return &formQuestion{key: key, message: message, form: formFor[T], dst: dst}
}

// ElicitSchemaQuestion returns a question for a form with the given schema. Use it if the
// fields are known only at run time. The answer, a JSON object, is stored in dst.
func ElicitSchemaQuestion(key, message string, schema json.RawMessage, dst *json.RawMessage) Question {
	return &formQuestion{key: key, message: message, dst: dst,
		form: func() (*form, error) { return newForm(schema) }}
}

// ElicitURLQuestion returns the question that [ElicitURL] asks.
func ElicitURLQuestion(key, message, url string) Question { return &urlQuestion{key, message, url} }

// SampleQuestion returns the question that [Sample] asks. The answer is stored in dst.
//
// Deprecated: the specification has deprecated sampling. Call the API of a model provider instead. It works
// while a supported revision has sampling.
func SampleQuestion(key string, params *CreateMessageParams, dst *CreateMessageResult) Question {
	return &samplingQuestion{key, params, dst}
}

// RootsQuestion returns the question that [Roots] asks. The answer is stored in dst.
//
// Deprecated: the specification has deprecated roots. Take directories as arguments of tools or as URIs of
// resources, or from the configuration of the server. It works while a supported revision has
// roots.
func RootsQuestion(key string, dst *[]Root) Question { return &rootsQuestion{key, dst} }

type formQuestion struct {
	key, message string
	form         func() (*form, error)
	dst          any
}

func (q *formQuestion) questionKey() string { return q.key }

func (q *formQuestion) inputRequest() (InputRequest, error) {
	f, err := q.form()
	if err != nil {
		return InputRequest{}, fmt.Errorf("question %q: %w", q.key, err)
	}
	return inputRequest(MethodElicit, &ElicitParams{Mode: "form", Message: q.message, RequestedSchema: f.schema})
}

func (q *formQuestion) accept(raw json.RawMessage) error {
	answer, err := acceptElicit(q.key, raw)
	if err != nil {
		return err
	}
	if answer.Content == nil {
		answer.Content = json.RawMessage("{}")
	}
	f, err := q.form()
	if err != nil {
		return err
	}
	filled := f.compiled.WithDefaults(answer.Content)
	if err := f.compiled.Validate(context.Background(), filled); err != nil { // forms are flat
		return Errorf(CodeInvalidParams, "the answer to %q does not fit the form: %w", q.key, err)
	}
	return decodeAnswer(q.key, filled, q.dst)
}

type urlQuestion struct{ key, message, url string }

func (q *urlQuestion) questionKey() string { return q.key }

func (q *urlQuestion) inputRequest() (InputRequest, error) {
	if u, err := url.Parse(q.url); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return InputRequest{}, fmt.Errorf("question %q: %.100q is not the URL of a page, https or http", q.key, q.url)
	}
	return inputRequest(MethodElicit, &ElicitParams{Mode: "url", Message: q.message, URL: q.url})
}

func (q *urlQuestion) accept(raw json.RawMessage) error {
	_, err := acceptElicit(q.key, raw)
	return err
}

type samplingQuestion struct {
	key    string
	params *CreateMessageParams
	dst    *CreateMessageResult
}

func (q *samplingQuestion) questionKey() string { return q.key }

func (q *samplingQuestion) inputRequest() (InputRequest, error) {
	if q.params == nil {
		return InputRequest{}, fmt.Errorf("question %q: the params are nil", q.key)
	}
	if err := checkConversation(q.params.Messages); err != nil {
		return InputRequest{}, fmt.Errorf("question %q: %w", q.key, err)
	}
	return inputRequest(MethodCreateMessage, q.params)
}

func (q *samplingQuestion) accept(raw json.RawMessage) error { return decodeAnswer(q.key, raw, q.dst) }

type rootsQuestion struct {
	key string
	dst *[]Root
}

func (q *rootsQuestion) questionKey() string { return q.key }

func (q *rootsQuestion) inputRequest() (InputRequest, error) {
	return InputRequest{Method: MethodListRoots, Params: json.RawMessage("{}")}, nil
}

func (q *rootsQuestion) accept(raw json.RawMessage) error {
	var result ListRootsResult
	if err := decodeAnswer(q.key, raw, &result); err != nil {
		return err
	}
	*q.dst = result.Roots
	return nil
}

func inputRequest(method string, params any) (InputRequest, error) {
	raw, err := marshal(params)
	if err != nil {
		return InputRequest{}, fmt.Errorf("params of %s: %w", method, err)
	}
	return InputRequest{Method: method, Params: raw}, nil
}

// acceptElicit returns the decoded answer, or ErrDeclined or ErrCancelled if the user did
// not accept.
func acceptElicit(key string, raw json.RawMessage) (*ElicitResult, error) {
	answer := new(ElicitResult)
	if err := decodeAnswer(key, raw, answer); err != nil {
		return nil, err
	}
	switch answer.Action {
	case ActionAccept:
		return answer, nil
	case ActionDecline:
		return nil, ErrDeclined
	case ActionCancel:
		return nil, ErrCancelled
	}
	return nil, Errorf(CodeInvalidParams, "the answer to %q must have an action of accept, decline or cancel", key)
}

func decodeAnswer(key string, raw json.RawMessage, dst any) error {
	if err := decode(raw, dst); err != nil {
		return &Error{Code: CodeInvalidParams, Message: decodeProblem(fmt.Sprintf("the answer to %q", key), err), Cause: err}
	}
	return nil
}

// InputRequired is the result of a request about which the server needs answers from the
// client (basic/patterns/mrtr). The client answers the questions and sends the request
// again with the answers and the state. In the legacy era, the questions are sent as
// requests to the client, and the handler is called again with the answers.
type InputRequired struct {
	ResultBase
	InputRequests map[string]InputRequest `json:"inputRequests,omitempty"`
	RequestState  *string                 `json:"requestState,omitzero"` // nil means none; "" is a state

	abandon func() // tells an older server that no answers will come; nil if nothing waits for them
}

// An InputRequest is a question: an elicitation/create, sampling/createMessage or
// roots/list request.
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

// ElicitResult is the result of elicitation/create.
type ElicitResult struct {
	ResultBase
	Action  string          `json:"action"`           // accept, decline or cancel
	Content json.RawMessage `json:"content,omitzero"` // an object, if accepted in form mode
}

// AcceptElicit returns the result of a user who has accepted a form, with the values of its
// fields: content must encode as a JSON object, or be nil for a URL. It is for the functions of
// [ClientOptions].
func AcceptElicit(content any) (*ElicitResult, error) {
	res := &ElicitResult{Action: ActionAccept}
	if content == nil {
		return res, nil
	}
	raw, err := marshalValue(content)
	if err == nil && !jsonscan.IsObject(raw) {
		err = errors.New("it must be an object")
	}
	if err != nil {
		return nil, fmt.Errorf("mcp: the content of the form: %w", err)
	}
	res.Content = raw
	return res, nil
}

// DeclineElicit returns the result of a user who has declined to answer.
func DeclineElicit() *ElicitResult { return &ElicitResult{Action: ActionDecline} }

// The actions of an [ElicitResult].
const (
	ActionAccept  = "accept"
	ActionDecline = "decline"
	ActionCancel  = "cancel"
)

// CreateMessageParams are the params of sampling/createMessage.
//
// Deprecated: the specification has deprecated sampling. Call the API of a model provider instead. It works
// while a supported revision has sampling.
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

// A SamplingMessage is one message of a conversation. A single block is encoded as an
// object, which every revision understands.
//
// Deprecated: the specification has deprecated sampling. Call the API of a model provider instead. It works
// while a supported revision has sampling.
type SamplingMessage struct {
	Role    Role            `json:"role"`
	Content SamplingContent `json:"content"`
	Meta    Meta            `json:"_meta,omitempty"`
}

// SamplingContent is one or more blocks of content.
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

// ModelPreferences are a server's preferences for the model to sample.
type ModelPreferences struct {
	Hints                []ModelHint `json:"hints,omitempty"`
	CostPriority         *float64    `json:"costPriority,omitzero"`
	SpeedPriority        *float64    `json:"speedPriority,omitzero"`
	IntelligencePriority *float64    `json:"intelligencePriority,omitzero"`
}

// A ModelHint is all or part of the name of a model.
type ModelHint struct {
	Name string `json:"name,omitempty"`
}

// ToolChoice controls whether the model may, must or must not use tools.
type ToolChoice struct {
	Mode string `json:"mode,omitempty"` // auto, required or none
}

// CreateMessageResult is the result of sampling/createMessage.
//
// Deprecated: the specification has deprecated sampling. Call the API of a model provider instead. It works
// while a supported revision has sampling.
type CreateMessageResult struct {
	ResultBase
	Role       Role            `json:"role"`
	Content    SamplingContent `json:"content"`
	Model      string          `json:"model"`
	StopReason string          `json:"stopReason,omitempty"`
}

// ListRootsResult is the result of roots/list.
type ListRootsResult struct {
	ResultBase
	Roots []Root `json:"roots"`
}

// A Root is a directory or file that a client allows a server to work in.
type Root struct {
	URI  string `json:"uri"` // file://…
	Name string `json:"name,omitempty"`
	Meta Meta   `json:"_meta,omitempty"`
}

// checkConversation validates the tool uses and results in a conversation
// (client/sampling): each use must have one result, in the next message, which must be a
// user message that contains only results.
func checkConversation(messages []*SamplingMessage) error {
	var open map[string]bool // tool uses without a result so far
	for i, m := range messages {
		if m == nil {
			return fmt.Errorf("message %d is nil", i)
		}
		uses, results := toolBlocks(m.Content)
		if len(results) > 0 && (m.Role != RoleUser || len(results) != len(m.Content)) {
			return fmt.Errorf("message %d: tool results must be in user messages, with nothing else", i)
		}
		for _, id := range results {
			if !open[id] {
				return fmt.Errorf("message %d: there is no tool use %q in the previous message", i, id)
			}
			delete(open, id)
		}
		for id := range open {
			return fmt.Errorf("message %d: the tool use %q has no result", i, id)
		}
		open = uses
	}
	for id := range open {
		return fmt.Errorf("the tool use %q has no result", id)
	}
	return nil
}

// toolBlocks returns the IDs of the tool uses in a message, and the tool use IDs of its
// tool results.
func toolBlocks(content SamplingContent) (uses map[string]bool, results []string) {
	for _, block := range content {
		switch b := block.(type) {
		case *ToolUseContent:
			if uses == nil {
				uses = map[string]bool{}
			}
			uses[b.ID] = true
		case *ToolResultContent:
			results = append(results, b.ToolUseID)
		}
	}
	return uses, results
}
