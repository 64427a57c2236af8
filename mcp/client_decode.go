// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-psi/psi/internal/jsonscan"
)

// newResult returns the result struct for a method. For unknown methods it returns an
// EmptyResult, which holds the members of the result in Extra.
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

// decodeResult decodes the result of a request. A result of an unknown type may belong to
// an extension (basic/index). Unless one of the extensions has a type for it, it is decoded
// as an EmptyResult with its members in Extra. It returns the parts of the result that were
// left out because they could not be read; see [pruner].
func decodeResult(method string, raw json.RawMessage, extensions ...*ClientExtension) (Result, omissions, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, omissions{}, errors.New("the result is not an object")
	}
	var kind string
	if member := jsonscan.Member(raw, "resultType"); member != nil {
		if member[0] != '"' {
			return nil, omissions{}, errors.New("the member resultType is not a string")
		}
		kind = jsonscan.Text(member, ResultComplete)
	}
	if res, left := decodeExtension(method, kind, raw, extensions); res != nil {
		return res, left, nil
	}
	res := newResult(method)
	switch kind {
	case "", ResultComplete:
	case ResultInputRequired:
		if !mayAsk(method) {
			return nil, omissions{}, fmt.Errorf("a server must not ask about %s", method)
		}
		res = new(InputRequired)
	default:
		res = new(EmptyResult)
	}
	left, err := unmarshalPruned(raw, res)
	if err != nil {
		return nil, omissions{}, fmt.Errorf("the result: %w", err)
	}
	return dropUnusable(res, &left), left, nil
}

// decodeExtension decodes a result of an extension. It returns nil if no extension has a
// type for the result or the result does not fit it; decodeResult then decodes it without
// the extension, in an EmptyResult if its type is unknown.
func decodeExtension(method, kind string, raw json.RawMessage, extensions []*ClientExtension) (Result, omissions) {
	for _, x := range extensions {
		if x.NewResult == nil {
			continue
		}
		if res := x.NewResult(method, kind); res != nil {
			if left, err := unmarshalPruned(raw, res); err == nil {
				return res, left
			}
		}
	}
	return nil, omissions{}
}

// mayAsk reports whether a server may ask questions about a request with the given method
// (basic/patterns/mrtr).
func mayAsk(method string) bool {
	return method == MethodCallTool || method == MethodGetPrompt || method == MethodReadResource
}

// dropUnusable removes from the lists of a result the nulls that some servers send, and items
// without the member by which they are called, read or shown to a model.
func dropUnusable(res Result, left *omissions) Result {
	switch r := res.(type) {
	case *ListToolsResult:
		r.Tools = usable(r.Tools, "/tools", left, func(i int, t *Tool) string { return checkTool(i, t, left) })
	case *ListPromptsResult:
		r.Prompts = usable(r.Prompts, "/prompts", left, func(_ int, p *Prompt) string {
			p.Arguments = withoutNil(p.Arguments)
			return missing("name", p.Name)
		})
	case *ListResourcesResult:
		r.Resources = usable(r.Resources, "/resources", left, func(_ int, r *Resource) string { return missing("uri", r.URI) })
	case *ListResourceTemplatesResult:
		r.ResourceTemplates = usable(r.ResourceTemplates, "/resourceTemplates", left, func(_ int, t *ResourceTemplate) string {
			return missing("uriTemplate", t.URITemplate)
		})
	case *ReadResourceResult:
		r.Contents = withoutNil(r.Contents)
	case *GetPromptResult:
		r.Messages = withoutNil(r.Messages)
	}
	return res
}

// checkTool returns why a tool cannot be used, or "". A null schema is an absent one. An output
// schema that is not an object validates nothing.
func checkTool(i int, t *Tool, left *omissions) string {
	if string(t.InputSchema) == "null" {
		t.InputSchema = nil
	}
	switch isNull := string(t.OutputSchema) == "null"; {
	case isNull || t.OutputSchema == nil:
		t.OutputSchema = nil
	case !jsonscan.IsObject(t.OutputSchema):
		left.add(fmt.Sprintf("/tools/%d/outputSchema must be an object", i))
		t.OutputSchema = nil
	}
	if t.InputSchema != nil && !jsonscan.IsObject(t.InputSchema) {
		return "/inputSchema must be an object"
	}
	return missing("name", t.Name)
}

func missing(member, value string) string {
	if value == "" {
		return "/" + member + " is missing"
	}
	return ""
}

// usable returns the items of a list for which check returns "". Nulls are dropped silently.
func usable[D any](list []*D, path string, left *omissions, check func(i int, d *D) string) []*D {
	kept := list[:0]
	for i, d := range list {
		if d == nil {
			continue
		}
		if why := check(i, d); why != "" {
			left.add(fmt.Sprintf("%s/%d%s", path, i, why))
			continue
		}
		kept = append(kept, d)
	}
	return kept
}

func withoutNil[D any](list []*D) []*D {
	return slices.DeleteFunc(list, func(d *D) bool { return d == nil })
}
