// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
)

// legacyEra is the wire of the four revisions that begin with initialize. It
// leaves out what a revision does not know.
type legacyEra struct{ rev revision }

func (e legacyEra) appendResult(dst []byte, _ *Request, res Result) ([]byte, error) {
	if kind := res.base().ResultType; kind != "" && kind != ResultComplete {
		return nil, fmt.Errorf("a client of %s knows no results of the type %q", e.rev, kind)
	}
	res = e.project(res)
	dst = append(dst, '{')
	if meta := withoutKey(res.base().Meta, MetaServerInfo); len(meta) > 0 {
		var err error
		if dst, err = appendMeta(append(appendKey(dst, "_meta"), '{'), meta); err != nil {
			return nil, err
		}
		dst = append(dst, '}')
	}
	return appendBody(dst, res, e.rev)
}

func withoutKey(m Meta, key string) Meta {
	if _, ok := m[key]; !ok {
		return m
	}
	m = maps.Clone(m)
	delete(m, key)
	return m
}

func (legacyEra) wireError(e *Error) *Error {
	if e.Code != CodeInvalidParams || !isResourceNotFound(e) {
		return e
	}
	mapped := *e
	mapped.Code = CodeLegacyResourceNotFound
	return &mapped
}

// project is a result as the revision knows it. Results are shared, so what
// changes is copied.
func (e legacyEra) project(res Result) Result {
	switch r := res.(type) {
	case *CallToolResult:
		if e.rev >= rev2025June && (r.StructuredContent == nil || isObject(r.StructuredContent)) {
			return r
		}
		c := *r
		c.Content = e.contents(r.Content)
		if e.rev < rev2025June || !isObject(r.StructuredContent) {
			c.StructuredContent = nil
		}
		return &c
	case *GetPromptResult:
		c := *r
		c.Messages = e.messages(r.Messages)
		return &c
	case *ListPromptsResult:
		c := *r
		c.Prompts = projectAll(r.Prompts, e.prompt)
		return &c
	case *ListResourcesResult:
		c := *r
		c.Resources = projectAll(r.Resources, e.resource)
		return &c
	case *ListResourceTemplatesResult:
		c := *r
		c.ResourceTemplates = projectAll(r.ResourceTemplates, e.template)
		return &c
	}
	return res
}

// isObject reports whether JSON is an object, by its first byte.
func isObject(raw []byte) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}

func projectAll[D any](list []*D, project func(D) *D) []*D {
	projected := make([]*D, 0, len(list))
	for _, d := range list {
		if d != nil {
			projected = append(projected, project(*d))
		}
	}
	return projected
}

// toolFor is a tool as a revision knows it.
func toolFor(t *Tool, rev revision) *Tool {
	if rev.modern() {
		return t
	}
	c := *t
	if rev < rev2025March {
		c.Annotations = nil
	}
	if rev < rev2025June {
		c.Title, c.OutputSchema, c.Meta = "", nil, nil
	}
	if c.OutputSchema != nil && rootType(c.OutputSchema) != "object" {
		c.OutputSchema = nil // these revisions have objects only
	}
	if rev < rev2025November {
		c.Icons = nil
	}
	return &c
}

func (e legacyEra) prompt(p Prompt) *Prompt {
	if e.rev < rev2025June {
		p.Title, p.Meta = "", nil
		p.Arguments = projectAll(p.Arguments, func(a PromptArgument) *PromptArgument {
			a.Title = ""
			return &a
		})
	}
	if e.rev < rev2025November {
		p.Icons = nil
	}
	return &p
}

func (e legacyEra) resource(r Resource) *Resource {
	if e.rev < rev2025June {
		r.Title, r.Meta = "", nil
	}
	if e.rev < rev2025November {
		r.Icons = nil
	}
	return &r
}

func (e legacyEra) template(t ResourceTemplate) *ResourceTemplate {
	if e.rev < rev2025June {
		t.Title, t.Meta = "", nil
	}
	if e.rev < rev2025November {
		t.Icons = nil
	}
	return &t
}

func (e legacyEra) messages(list []*PromptMessage) []*PromptMessage {
	return projectAll(list, func(m PromptMessage) *PromptMessage {
		m.Content = e.content(m.Content)
		return &m
	})
}

func (e legacyEra) contents(list Contents) Contents {
	if e.rev >= rev2025June {
		return list
	}
	projected := make(Contents, len(list))
	for i, c := range list {
		projected[i] = e.content(c)
	}
	return projected
}

// content tells in words what an older client has no block for.
func (e legacyEra) content(c Content) Content {
	switch c := c.(type) {
	case *AudioContent:
		if e.rev < rev2025March {
			return Text(fmt.Sprintf("[audio, %s, %d bytes]", c.MIMEType, len(c.Data)))
		}
	case *ResourceLink:
		if e.rev < rev2025June {
			return Text(c.URI)
		}
	}
	return c
}

// capabilities are those of a server as the revision knows them.
func (e legacyEra) capabilities(caps *ServerCapabilities) *ServerCapabilities {
	if caps == nil {
		return &ServerCapabilities{}
	}
	c := *caps
	if e.rev < rev2025March {
		c.Completions = nil
	}
	return &c
}

// implementation is an identity as the revision knows it.
func (e legacyEra) implementation(i Implementation) Implementation {
	if e.rev < rev2025June {
		i.Title = ""
	}
	if e.rev < rev2025November {
		i.Description, i.WebsiteURL, i.Icons = "", "", nil
	}
	return i
}

// clientCapabilities are those of what a client declared that its revision has words
// for.
func (e legacyEra) clientCapabilities(declared json.RawMessage) json.RawMessage {
	if e.rev >= rev2025November || declared == nil {
		return declared
	}
	var c ClientCapabilities
	if unmarshal(declared, &c) != nil {
		return declared
	}
	if c.Elicitation != nil { // also before 2025-06-18, which has no questions: whoever declares them understands them
		c.Elicitation = &ElicitationCapability{Form: &struct{}{}}
	}
	if c.Sampling != nil {
		c.Sampling = &SamplingCapability{Context: c.Sampling.Context}
	}
	return mustMarshal(&c)
}

// question is a question as the revision asks it, or why it cannot.
func (e legacyEra) question(q InputRequest, id string) (InputRequest, error) {
	switch {
	case q.Method == MethodCreateMessage && e.rev < rev2025November:
		return q, e.singleBlocks(q)
	case q.Method != MethodElicit:
		return q, nil
	}
	var p ElicitParams
	if unmarshal(q.Params, &p) != nil {
		return q, nil //nolint:nilerr // the client may say what is wrong with it
	}
	switch {
	case e.rev < rev2025November && asksForLists(p.RequestedSchema):
		return q, e.cannotAsk("for lists")
	case e.rev < rev2025November:
		p.Mode = ""
	case p.Mode == "url":
		p.ElicitationID = id
	}
	q.Params = mustMarshal(&p)
	return q, nil
}

func (e legacyEra) cannotAsk(what string) error {
	return Errorf(CodeInvalidRequest, "a client of %s cannot be asked %s", e.rev, what)
}

// singleBlocks reports messages of several blocks, which revisions before 2025-11-25
// do not have.
func (e legacyEra) singleBlocks(q InputRequest) error {
	var p CreateMessageParams
	if unmarshal(q.Params, &p) != nil {
		return nil //nolint:nilerr // the client may say what is wrong with it
	}
	for _, m := range p.Messages {
		if m != nil && len(m.Content) != 1 {
			return e.cannotAsk("with several blocks in a message")
		}
	}
	return nil
}

// asksForLists reports whether a form has a field of several choices, which revisions
// before 2025-11-25 do not have.
func asksForLists(schema json.RawMessage) bool {
	var form struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	if unmarshal(schema, &form) != nil {
		return false
	}
	for _, field := range form.Properties {
		if field.Type == "array" {
			return true
		}
	}
	return false
}

// batches reports whether the revision joins messages to arrays.
func (e legacyEra) batches() bool { return e.rev == rev2025March }

// resumes reports whether streams begin with an event that has nothing but an id.
func (e legacyEra) resumes() bool { return e.rev == rev2025November }
