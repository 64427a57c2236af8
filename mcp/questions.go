// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
)

// Elicit asks the user to fill in a form whose fields are those of T, a struct
// of strings, numbers, booleans, enums and lists of enums. With the answer it
// returns the filled-in T; see [Ask] for what happens before. A refusal is
// [ErrDeclined] or [ErrCancelled].
func Elicit[T any](ctx context.Context, key, message string) (T, error) {
	var answer T
	err := Ask(ctx, Form(key, message, &answer))
	return answer, err
}

// ElicitURL asks the user to visit a URL, which is for what must not pass
// through the client, such as secrets. Nil means that the user agreed to go
// there, not that anything was done there.
func ElicitURL(ctx context.Context, key, message, url string) error {
	return Ask(ctx, Link(key, message, url))
}

// Sample asks the client's model to continue a conversation.
func Sample(ctx context.Context, key string, params *CreateMessageParams) (*CreateMessageResult, error) {
	result := new(CreateMessageResult)
	if err := Ask(ctx, Sampling(key, params, result)); err != nil {
		return nil, err
	}
	return result, nil
}

// Roots asks the client for the places in the file system it works in.
func Roots(ctx context.Context, key string) ([]Root, error) {
	var roots []Root
	err := Ask(ctx, RootsQuestion(key, &roots))
	return roots, err
}

// Form is the question of [Elicit]; the answer goes to dst.
func Form[T any](key, message string, dst *T) Question {
	return &formQuestion{key: key, message: message, form: formFor[T], dst: dst}
}

// FormSchema is a form whose schema is given, for fields that are known only at
// run time. The answer goes to dst as an object.
func FormSchema(key, message string, schema json.RawMessage, dst *json.RawMessage) Question {
	return &formQuestion{key: key, message: message, dst: dst,
		form: func() (*form, error) { return newForm(schema) }}
}

// Link is the question of [ElicitURL].
func Link(key, message, url string) Question { return &linkQuestion{key, message, url} }

// Sampling is the question of [Sample]; the answer goes to dst.
func Sampling(key string, params *CreateMessageParams, dst *CreateMessageResult) Question {
	return &samplingQuestion{key, params, dst}
}

// RootsQuestion is the question of [Roots]; the answer goes to dst.
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
		return InputRequest{}, fmt.Errorf("mcp: question %q: %w", q.key, err)
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
	if err := f.compiled.Validate(context.Background(), answer.Content); err != nil { // forms are flat
		return Errorf(CodeInvalidParams, "the answer to %q does not fit the form: %w", q.key, err)
	}
	return decodeAnswer(q.key, answer.Content, q.dst)
}

type linkQuestion struct{ key, message, url string }

func (q *linkQuestion) questionKey() string { return q.key }

func (q *linkQuestion) inputRequest() (InputRequest, error) {
	if u, err := url.Parse(q.url); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return InputRequest{}, fmt.Errorf("mcp: question %q: %.100q is not the URL of a page, https or http", q.key, q.url)
	}
	return inputRequest(MethodElicit, &ElicitParams{Mode: "url", Message: q.message, URL: q.url})
}

func (q *linkQuestion) accept(raw json.RawMessage) error {
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
	if err := checkConversation(q.params.Messages); err != nil {
		return InputRequest{}, fmt.Errorf("mcp: question %q: %w", q.key, err)
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
		return InputRequest{}, fmt.Errorf("mcp: params of %s: %w", method, err)
	}
	return InputRequest{Method: method, Params: raw}, nil
}

// acceptElicit makes an error of a refusal.
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
