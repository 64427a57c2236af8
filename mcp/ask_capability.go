// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"

	"github.com/go-psi/psi/internal/jsonscan"
)

// checkInputRequired validates the questions of a handler that returns an [InputRequired]
// itself: it needs a question or a state, and the client must support all questions.
func checkInputRequired(req *Request, r *InputRequired) (Result, error) {
	if len(r.InputRequests) == 0 && r.RequestState == nil {
		return nil, Errorf(CodeInternalError, "a handler asked for input without a question or a state")
	}
	if err := checkQuestions(req, r.InputRequests); err != nil {
		return nil, err
	}
	asked := *r
	asked.ResultType = ResultInputRequired
	return &asked, nil
}

func checkQuestions(req *Request, questions map[string]InputRequest) error {
	for _, key := range sortedKeys(questions) {
		q := questions[key]
		if err := checkCapability(req, q); err != nil {
			return err
		}
		if q.Params != nil && (!jsonscan.IsObject(q.Params) || jsonscan.Valid(q.Params, 0) != nil) {
			return Errorf(CodeInternalError, "the params of the question %q are not a JSON object", key)
		}
	}
	return nil
}

// checkCapability returns an error that names the capability that the client lacks for r.
func checkCapability(req *Request, r InputRequest) error {
	caps := req.ClientCapabilities()
	var missing *ClientCapabilities
	switch r.Method {
	case MethodElicit:
		missing = missingForElicit(caps, r.Params)
	case MethodCreateMessage:
		missing = missingForSampling(caps, r.Params)
	case MethodListRoots:
		if caps.Roots == nil {
			missing = &ClientCapabilities{Roots: &RootsCapability{}}
		}
	default:
		return Errorf(CodeInternalError, "a client cannot be asked %q", r.Method)
	}
	if missing != nil {
		return newMissingCapabilityError(missing)
	}
	return nil
}

func missingForElicit(caps *ClientCapabilities, params json.RawMessage) *ClientCapabilities {
	var p struct {
		Mode string `json:"mode"`
	}
	_ = unmarshal(params, &p)
	switch {
	case p.Mode == "url" && !caps.Elicitation.AllowsURL():
		return &ClientCapabilities{Elicitation: &ElicitationCapability{URL: &struct{}{}}}
	case p.Mode != "url" && !caps.Elicitation.AllowsForm():
		return &ClientCapabilities{Elicitation: &ElicitationCapability{Form: &struct{}{}}}
	}
	return nil
}

func missingForSampling(caps *ClientCapabilities, params json.RawMessage) *ClientCapabilities {
	var p struct {
		Tools          json.RawMessage `json:"tools"`
		ToolChoice     json.RawMessage `json:"toolChoice"`
		IncludeContext string          `json:"includeContext"`
	}
	_ = unmarshal(params, &p)
	needTools := p.Tools != nil || p.ToolChoice != nil
	needContext := p.IncludeContext != "" && p.IncludeContext != "none"
	if s := caps.Sampling; s != nil && (!needTools || s.Tools != nil) && (!needContext || s.Context != nil) {
		return nil
	}
	need := &SamplingCapability{}
	if needTools {
		need.Tools = &struct{}{}
	}
	if needContext {
		need.Context = &struct{}{}
	}
	return &ClientCapabilities{Sampling: need}
}

// isRetry reports whether the request carries answers or state.
func (r *Request) isRetry() bool {
	return r.params.inputResponses() != nil || r.params.requestState() != nil
}
