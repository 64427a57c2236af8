// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/uritemplate"
)

// maxCompletions is the maximum number of values of a completion
// (server/utilities/completion).
const maxCompletions = 100

// A Completer suggests values for an argument, best match first. If there are more than
// 100, only the first 100 and the total number are sent.
type Completer func(ctx context.Context, p *CompleteParams) ([]string, error)

// CompleteFrom returns a Completer that suggests the values that begin with the typed
// text, ignoring case.
func CompleteFrom(values ...string) Completer {
	return func(_ context.Context, p *CompleteParams) ([]string, error) {
		typed := strings.ToLower(p.Argument.Value)
		var found []string
		for _, v := range values {
			if strings.HasPrefix(strings.ToLower(v), typed) {
				found = append(found, v)
			}
		}
		return found, nil
	}
}

// An enumLister is a handler that knows the allowed values of some arguments.
type enumLister interface{ enumValues() map[string][]string }

func (g *registry) complete(ctx context.Context, req *Request) (Result, error) {
	var p CompleteParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	if g.features()&featureCompletions == 0 {
		return nil, NewMethodNotFoundError(req.Method)
	}
	s := g.load()
	if p.Argument.Name == "" {
		return nil, Errorf(CodeInvalidParams, "params.argument.name is missing")
	}
	kind, name := "prompt", p.Ref.Name
	e := s.prompts.find(name)
	switch p.Ref.Type {
	case "ref/prompt":
	case "ref/resource":
		kind, name = "resource", uritemplate.NormalPattern(p.Ref.URI)
		e = s.completable(name)
	default:
		return nil, Errorf(CodeInvalidParams, `params.ref.type is %q: expected "ref/prompt" or "ref/resource"`, p.Ref.Type)
	}
	if e != nil {
		return e.handler.ServeMCP(contextWithRequest(ctx, req), req)
	}
	if m := s.mountOf(kind, name); m != nil {
		return m.complete(ctx, req, &p, kind, name)
	}
	return nil, NewUnknownNameError(Kind(kind), name) // in normal form, as if middleware had hidden it
}

// completable returns the entry for uri, the normal form of a template or a URI.
func (s *snapshot) completable(uri string) *entry {
	e := s.templates.find(uri)
	if e == nil && !uritemplate.IsTemplate(uri) {
		e, _ = s.resource(uri)
	}
	return e
}

func (e *entry) complete(ctx context.Context, req *Request) (Result, error) {
	p := new(CompleteParams)
	if err := req.Decode(p); err != nil {
		return nil, err
	}
	completer := e.completer(p.Argument.Name)
	if completer == nil {
		return &CompleteResult{Completion: Completion{Values: []string{}}}, nil
	}
	values, err := completer(ctx, p)
	if err != nil {
		return nil, err
	}
	c := Completion{Values: values}
	if total := len(values); total > maxCompletions {
		c = Completion{Values: values[:maxCompletions], Total: &total, HasMore: true}
	}
	return &CompleteResult{Completion: c}, nil
}

func (e *entry) completer(argument string) Completer {
	var completers map[string]Completer
	switch {
	case e.prompt != nil:
		completers = e.prompt.Completers
	case e.resource != nil:
		completers = e.resource.Completers
	}
	if c := completers[argument]; c != nil {
		return c
	}
	if values, ok := e.enums[argument]; ok {
		return CompleteFrom(values...)
	}
	return nil
}

// completionOf returns the params of a completion with the name in the reference replaced.
// It removes members that a mounted server could mistake for those in p.
func completionOf(req *Request, p *CompleteParams, name string) (map[string]json.RawMessage, error) {
	params, err := exactMembers(req.Params(), "ref", "argument", "context")
	if err != nil {
		return nil, err
	}
	member, stray := "name", "uri"
	if p.Ref.Type == "ref/resource" {
		member, stray = stray, member
	}
	ref, err := exactMembers(params["ref"], "type", member, stray)
	if err != nil {
		return nil, err
	}
	ref[member] = mustMarshal(name)
	delete(ref, stray)
	params["ref"] = mustMarshal(ref)
	argument, err := exactMembers(params["argument"], "name", "value")
	if err != nil {
		return nil, err
	}
	params["argument"] = mustMarshal(argument)
	if p.Context == nil {
		return params, nil
	}
	chosen, err := exactMembers(params["context"], "arguments")
	params["context"] = mustMarshal(chosen)
	return params, err
}

// exactMembers returns the members of an object without those that differ from one of
// names only by case. A mounted server that ignores case would confuse them.
func exactMembers(object json.RawMessage, names ...string) (members map[string]json.RawMessage, err error) {
	if err := unmarshal(object, &members); err != nil {
		return nil, Errorf(CodeInvalidParams, "%s", decodeProblem("params", err))
	}
	maps.DeleteFunc(members, func(member string, _ json.RawMessage) bool {
		return slices.ContainsFunc(names, func(name string) bool { return member != name && strings.EqualFold(member, name) })
	})
	return members, nil
}

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

// A CompleteArgument is the argument to complete. Value is the text typed so far.
type CompleteArgument struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// CompleteContext holds the values of arguments that have already been chosen.
type CompleteContext struct {
	Arguments map[string]string `json:"arguments,omitempty"`
}

// CompleteResult is the result of completion/complete.
type CompleteResult struct {
	ResultBase
	Completion Completion `json:"completion"`
}

// A Completion is a list of at most 100 suggestions, best match first.
type Completion struct {
	Values  []string `json:"values"`
	Total   *int     `json:"total,omitzero"`
	HasMore bool     `json:"hasMore,omitzero"`
}
