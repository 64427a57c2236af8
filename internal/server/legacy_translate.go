// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// A translation converts results of the core to the form of an older revision. It omits
// what the revision does not have.
type translation struct{ rev revision.Revision }

// appendResponse appends a response to dst.
func (t translation) appendResponse(dst []byte, id mcp.ID, res mcp.Result, err error) []byte {
	if err != nil {
		return core.AppendError(dst, id, t.wireError(core.AsError(err)))
	}
	whole := append(transport.AppendHead(dst, id), `,"result":`...)
	whole, err = t.appendResult(whole, res)
	if err != nil {
		return core.AppendError(dst, id, mcp.Errorf(mcp.CodeInternalError, "the result could not be encoded: %w", err))
	}
	return append(whole, '}')
}

func (t translation) appendResult(dst []byte, res mcp.Result) (whole []byte, err error) {
	defer func() {
		if recover() != nil {
			err = errPanicked
		}
	}()
	if kind := core.Base(res).ResultType; kind != "" && kind != mcp.ResultComplete {
		return nil, fmt.Errorf("a client of %s knows no results of the type %q", t.rev, kind)
	}
	if err := core.CheckResult(res); err != nil { // including what this revision omits
		return nil, err
	}
	res = t.project(res)
	dst = append(dst, '{')
	if meta := core.WithoutKey(core.Base(res).Meta, mcp.MetaServerInfo); len(meta) > 0 {
		if dst, err = core.AppendMeta(append(jsonscan.AppendKey(dst, "_meta"), '{'), meta); err != nil {
			return nil, err
		}
		dst = append(dst, '}')
	}
	return core.AppendBody(dst, res, int(t.rev), t.tool, foreignMembers(res))
}

// foreignMembers returns the members that only results of the newest revision have. A server
// behind a gateway may add them to any result. Results of other methods may use the names for
// members of their own.
func foreignMembers(res mcp.Result) []string {
	switch res.(type) {
	case *mcp.CallToolResult, *mcp.GetPromptResult, *mcp.ReadResourceResult, *mcp.CompleteResult, *mcp.ListToolsResult,
		*mcp.ListPromptsResult, *mcp.ListResourcesResult, *mcp.ListResourceTemplatesResult:
		return []string{"ttlMs", "cacheScope", "inputRequests", "requestState"}
	}
	return nil
}

// errPanicked is the error for a result whose encoding panics because of an invalid nil.
// The text of the panic is not sent to the peer.
var errPanicked = errors.New("encoding it panicked")

// codeResourceNotFound is the code for missing resources. The newest revision uses the code
// for invalid params instead.
const codeResourceNotFound = -32002

func (translation) wireError(e *mcp.Error) *mcp.Error {
	if e.Code != mcp.CodeInvalidParams || !core.IsResourceNotFound(e) {
		return e
	}
	mapped := *e
	mapped.Code = codeResourceNotFound
	return &mapped
}

// project returns a result in the form of the revision. Results are shared, so it copies
// what it changes.
func (t translation) project(res mcp.Result) mcp.Result {
	switch r := res.(type) {
	case *mcp.CallToolResult:
		// since 2025-06-18, no member or type of content was added
		if t.rev >= revision.R202506 && (r.StructuredContent == nil || jsonscan.IsObject(r.StructuredContent)) {
			return r
		}
		c := *r
		c.Content = t.contents(r.Content)
		if t.rev < revision.R202506 || !jsonscan.IsObject(r.StructuredContent) {
			c.StructuredContent = nil
		}
		return &c
	case *mcp.GetPromptResult:
		c := *r
		c.Messages = t.messages(r.Messages)
		return &c
	case *mcp.ListPromptsResult:
		c := *r
		c.Prompts = projectAll(r.Prompts, t.prompt)
		return &c
	case *mcp.ListResourcesResult:
		c := *r
		c.Resources = projectAll(r.Resources, t.resource)
		return &c
	case *mcp.ListResourceTemplatesResult:
		c := *r
		c.ResourceTemplates = projectAll(r.ResourceTemplates, t.template)
		return &c
	}
	return res
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

// tool returns a tool in the form of the revision.
func (t translation) tool(tool *mcp.Tool) *mcp.Tool {
	c := *tool
	if t.rev < revision.R202503 {
		c.Annotations = nil
	}
	if t.rev < revision.R202506 {
		c.Title, c.OutputSchema, c.Meta = "", nil, nil
	}
	if c.OutputSchema != nil && core.RootType(c.OutputSchema) != "object" {
		c.OutputSchema = nil // these revisions allow only objects
	}
	if t.rev < revision.R202511 {
		c.Icons = nil
	}
	return &c
}

func (t translation) prompt(p mcp.Prompt) *mcp.Prompt {
	if t.rev < revision.R202506 {
		p.Title, p.Meta = "", nil
		p.Arguments = projectAll(p.Arguments, func(a mcp.PromptArgument) *mcp.PromptArgument {
			a.Title = ""
			return &a
		})
	}
	if t.rev < revision.R202511 {
		p.Icons = nil
	}
	return &p
}

func (t translation) resource(r mcp.Resource) *mcp.Resource {
	if t.rev < revision.R202506 {
		r.Title, r.Meta = "", nil
	}
	if t.rev < revision.R202511 {
		r.Icons = nil
	}
	return &r
}

func (t translation) template(r mcp.ResourceTemplate) *mcp.ResourceTemplate {
	if t.rev < revision.R202506 {
		r.Title, r.Meta = "", nil
	}
	if t.rev < revision.R202511 {
		r.Icons = nil
	}
	return &r
}

func (t translation) messages(list []*mcp.PromptMessage) []*mcp.PromptMessage {
	return projectAll(list, func(m mcp.PromptMessage) *mcp.PromptMessage {
		m.Content = t.content(m.Content)
		return &m
	})
}

func (t translation) contents(list mcp.Contents) mcp.Contents {
	if t.rev >= revision.R202506 { // no type of content was added since
		return list
	}
	projected := make(mcp.Contents, len(list))
	for i, c := range list {
		projected[i] = t.content(c)
	}
	return projected
}

// content replaces a block that the revision does not have with text.
func (t translation) content(c mcp.Content) mcp.Content {
	switch c := c.(type) {
	case *mcp.AudioContent:
		if t.rev < revision.R202503 {
			return mcp.Text(fmt.Sprintf("[audio, %s, %d bytes]", c.MIMEType, len(c.Data)))
		}
	case *mcp.ResourceLink:
		if t.rev < revision.R202506 {
			return mcp.Text(c.URI)
		}
	}
	return c
}

// capabilities returns server capabilities in the form of the revision. The tasks extension
// does not exist in any older revision: tools that run in the background are ordinary tools.
func (t translation) capabilities(caps *mcp.ServerCapabilities) *mcp.ServerCapabilities {
	if caps == nil {
		return &mcp.ServerCapabilities{}
	}
	c := *caps
	c.Extensions = maps.Clone(caps.Extensions)
	delete(c.Extensions, tasking.Extension)
	if t.rev < revision.R202503 {
		c.Completions = nil
	}
	return &c
}

// implementation returns an identity in the form of the revision.
func (t translation) implementation(i mcp.Implementation) mcp.Implementation {
	if t.rev < revision.R202506 {
		i.Title = ""
	}
	if t.rev < revision.R202511 {
		i.Description, i.WebsiteURL, i.Icons = "", "", nil
	}
	return i
}

// clientCapabilities returns the declared capabilities that exist in the revision.
func (t translation) clientCapabilities(declared json.RawMessage) json.RawMessage {
	if declared == nil {
		return declared
	}
	var c mcp.ClientCapabilities
	if strictjson.Unmarshal(declared, &c) != nil {
		return declared
	}
	if t.rev >= revision.R202511 && !c.HasExtension(tasking.Extension) {
		return declared
	}
	delete(c.Extensions, tasking.Extension) // does not exist in these revisions
	if t.rev >= revision.R202511 {
		return strictjson.MustMarshal(&c)
	}
	// Before 2025-06-18 there is no elicitation, but a client that declares it understands it.
	if c.Elicitation != nil {
		c.Elicitation = &mcp.ElicitationCapability{Form: &struct{}{}}
	}
	if c.Sampling != nil {
		c.Sampling = &mcp.SamplingCapability{Context: c.Sampling.Context}
	}
	return strictjson.MustMarshal(&c)
}

// question returns a question in the form of the revision, or an error if the revision does
// not support it.
func (t translation) question(q mcp.InputRequest, id string) (mcp.InputRequest, error) {
	switch {
	case q.Method == mcp.MethodCreateMessage && t.rev < revision.R202511:
		return q, t.canSample(q)
	case q.Method != mcp.MethodElicit:
		return q, nil
	}
	var p mcp.ElicitParams
	if strictjson.Unmarshal(q.Params, &p) != nil {
		return q, nil //nolint:nilerr // the client may say what is wrong with it
	}
	switch {
	case t.rev < revision.R202511:
		form, list := withoutLists(p.RequestedSchema)
		if list != "" {
			return q, t.cannotAsk(fmt.Sprintf("for a list, and the form has one: %q", list))
		}
		p.Mode, p.RequestedSchema = "", form
	case p.Mode == "url":
		p.ElicitationID = id
	}
	q.Params = strictjson.MustMarshal(&p)
	return q, nil
}

func (t translation) cannotAsk(what string) error {
	return mcp.Errorf(mcp.CodeInvalidRequest, "a client of %s cannot be asked %s", t.rev, what)
}

// canSample returns an error unless each message has exactly one block, as revisions before
// 2025-11-25 require, of a type that the revision has. Text in the place of a block, as in
// results, would be another question.
func (t translation) canSample(q mcp.InputRequest) error {
	var p mcp.CreateMessageParams
	if strictjson.Unmarshal(q.Params, &p) != nil {
		return nil //nolint:nilerr // the client may say what is wrong with it
	}
	for _, m := range p.Messages {
		if m == nil {
			continue
		}
		if len(m.Content) != 1 {
			return t.cannotAsk("with several blocks in a message")
		}
		if _, ok := m.Content[0].(*mcp.AudioContent); ok && t.rev < revision.R202503 {
			return t.cannotAsk("with audio")
		}
	}
	return nil
}

// withoutLists returns the schema of a form without the fields for multiple choices, which
// revisions before 2025-11-25 do not support. If such a field is required, or the form has no
// other fields, it returns the name of the field. The handler sees a field that was left
// empty, which it must expect anyway. Failing was rejected, because one optional field would
// cost the whole question.
func withoutLists(schema json.RawMessage) (_ json.RawMessage, list string) {
	var form struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if strictjson.Unmarshal(schema, &form) != nil {
		return schema, ""
	}
	var lists []string
	for _, name := range slices.Sorted(maps.Keys(form.Properties)) {
		if form.Properties[name].Type == "array" {
			lists = append(lists, name)
		}
	}
	for _, name := range lists {
		if slices.Contains(form.Required, name) || len(lists) == len(form.Properties) {
			return nil, name
		}
	}
	if len(lists) == 0 {
		return schema, ""
	}
	properties := jsonscan.AppendMembers([]byte(`{"properties":{`), jsonscan.Member(schema, "properties"), lists...)
	return jsonscan.AppendMembers(properties, schema, "properties"), ""
}
