// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-psi/psi/internal/jsonscan"
)

// newResult returns the result struct of a method. Results of unknown methods are kept in
// the Extra of an EmptyResult.
func newResult(method string) Result {
	switch method {
	case MethodDiscover:
		return new(DiscoverResult)
	case MethodListTools:
		return new(ListToolsResult)
	case MethodCallTool:
		return new(CallToolResult)
	case MethodListPrompts:
		return new(ListPromptsResult)
	case MethodGetPrompt:
		return new(GetPromptResult)
	case MethodListResources:
		return new(ListResourcesResult)
	case MethodListResourceTemplates:
		return new(ListResourceTemplatesResult)
	case MethodReadResource:
		return new(ReadResourceResult)
	case MethodComplete:
		return new(CompleteResult)
	case MethodListen:
		return new(ListenResult)
	case MethodElicit:
		return new(ElicitResult)
	case MethodCreateMessage:
		return new(CreateMessageResult)
	case MethodListRoots:
		return new(ListRootsResult)
	}
	return new(EmptyResult)
}

// decodeResult decodes the result of a request. A result of an unknown type is kept in the
// Extra of an EmptyResult, because it may belong to an extension (basic/index), unless one of
// the extensions has a type for it.
func decodeResult(method string, raw json.RawMessage, extensions ...ClientExtension) (Result, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, errors.New("the result is not an object")
	}
	var kind string
	if member := jsonscan.Member(raw, "resultType"); member != nil {
		if member[0] != '"' {
			return nil, errors.New("the member resultType is not a string")
		}
		kind = jsonscan.Text(member, ResultComplete)
	}
	if res := decodeExtension(method, kind, raw, extensions); res != nil {
		return res, nil
	}
	res := newResult(method)
	switch kind {
	case "", ResultComplete:
	case ResultInputRequired:
		if !mayAsk(method) {
			return nil, fmt.Errorf("a server must not ask about %s", method)
		}
		res = new(InputRequired)
	default:
		res = new(EmptyResult)
	}
	if err := unmarshal(raw, res); err != nil {
		return nil, fmt.Errorf("%s", decodeProblem("the result", err))
	}
	return dropNulls(res), nil
}

// decodeExtension decodes a result of an extension. It returns nil if there is no type for it,
// or if it does not fit its type: the extension then finds it in an EmptyResult.
func decodeExtension(method, kind string, raw json.RawMessage, extensions []ClientExtension) Result {
	for _, x := range extensions {
		if typed, ok := x.(ExtensionResults); ok {
			if res := typed.NewResult(method, kind); res != nil && unmarshal(raw, res) == nil {
				return res
			}
		}
	}
	return nil
}

// mayAsk reports whether a server may ask the client questions about a request of the method
// (basic/patterns/mrtr).
func mayAsk(method string) bool {
	return method == MethodCallTool || method == MethodGetPrompt || method == MethodReadResource
}

// dropNulls removes nulls from the lists of a result, which some servers send.
func dropNulls(res Result) Result {
	switch r := res.(type) {
	case *ListToolsResult:
		r.Tools = withoutNil(r.Tools)
	case *ListPromptsResult:
		r.Prompts = withoutNil(r.Prompts)
		for _, p := range r.Prompts {
			p.Arguments = withoutNil(p.Arguments)
		}
	case *ListResourcesResult:
		r.Resources = withoutNil(r.Resources)
	case *ListResourceTemplatesResult:
		r.ResourceTemplates = withoutNil(r.ResourceTemplates)
	case *ReadResourceResult:
		r.Contents = withoutNil(r.Contents)
	case *GetPromptResult:
		r.Messages = withoutNil(r.Messages)
	}
	return res
}

func withoutNil[D any](list []*D) []*D {
	kept := list[:0]
	for _, d := range list {
		if d != nil {
			kept = append(kept, d)
		}
	}
	return kept
}
