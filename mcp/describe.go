// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/uritemplate"
	"github.com/go-psi/psi/jsonschema"
)

// isToolName reports whether the specification recommends a name (server/tools).
func isToolName(name string) bool {
	return name != "" && len(name) <= 128 && strings.Trim(name, alphanumeric+"_.-") == ""
}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// describeTool is the tool as it is listed, nil if the handler does not describe
// itself, and the arguments that are mirrored in headers.
func (m *Mux) describeTool(e *entry) (*Tool, []paramHeader) {
	given, ok := e.described.(*Tool)
	if e.described != nil && !ok {
		panic(fmt.Sprintf("mcp: tool %q at %s describes itself as a %T", e.name, e.site, e.described))
	}
	if !isToolName(e.name) {
		m.opts.Logger.Warn("mcp: tool name is not one that every client accepts", "tool", e.name, "registered", e.site, "want", "1 to 128 letters, digits, _, . and -")
	}
	if given == nil {
		return nil, nil
	}
	t := *given
	t.Name = e.name
	if t.InputSchema == nil {
		t.InputSchema = []byte(`{"type":"object"}`)
	}
	checkSchema(e, "InputSchema", t.InputSchema)
	if t.OutputSchema != nil {
		checkSchema(e, "OutputSchema", t.OutputSchema)
	}
	if rootType(t.InputSchema) != "object" {
		panic(fmt.Sprintf(`mcp: tool %q at %s: the root of InputSchema must have "type":"object"`, e.name, e.site))
	}
	headers, err := paramHeaders(t.InputSchema)
	if err != nil {
		panic(fmt.Sprintf("mcp: tool %q at %s: %v", e.name, e.site, err))
	}
	m.lint(e, t.InputSchema)
	t.encodings = newToolEncodings(&t)
	return &t, headers
}

func checkSchema(e *entry, field string, schema []byte) {
	if err := jsonscan.Valid(schema, 0); err != nil {
		panic(fmt.Sprintf("mcp: tool %q at %s: %s is not JSON: %v", e.name, e.site, field, err))
	}
	if kind := strings.TrimLeft(string(schema), " \t\r\n"); kind[0] != '{' {
		panic(fmt.Sprintf("mcp: tool %q at %s: %s must be an object", e.name, e.site, field))
	}
	if e.compiled {
		return
	}
	if _, err := jsonschema.Compile(schema, nil); err != nil {
		panic(fmt.Sprintf("mcp: tool %q at %s: %s is no schema: %v", e.name, e.site, field, err))
	}
}

func (m *Mux) lint(e *entry, schema []byte) {
	for _, f := range jsonschema.Lint(schema, jsonschema.Portable) {
		m.opts.Logger.Warn("mcp: a model provider may refuse this tool's schema", "tool", e.name, "registered", e.site, "profile", f.Profile, "at", f.Pointer, "finding", f.Message)
	}
}

func rootType(schema []byte) string {
	raw := memberOf(bytes.TrimLeft(schema, " \t\r\n"), "type")
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return string(jsonscan.Unquote(raw))
}

func describePrompt(e *entry) *Prompt {
	given, ok := e.described.(*Prompt)
	switch {
	case e.described == nil:
		return nil
	case !ok:
		panic(fmt.Sprintf("mcp: prompt %q at %s describes itself as a %T", e.name, e.site, e.described))
	}
	p := *given
	p.Name = e.name
	return &p
}

func (e *entry) parseTemplate() {
	if !uritemplate.IsTemplate(e.name) {
		return
	}
	t, err := uritemplate.Parse(e.name)
	if err != nil {
		panic(fmt.Sprintf("mcp: resource template %q at %s: %v", e.name, e.site, err))
	}
	e.template = t
}

// templateChecker is a handler of resources that does not go with every pattern;
// t is nil if the pattern is a URI.
type templateChecker interface {
	checkTemplate(t *uritemplate.Template) error
}

func (e *entry) checkTemplate(h Handler) {
	c, ok := h.(templateChecker)
	if !ok {
		return
	}
	if err := c.checkTemplate(e.template); err != nil {
		panic(fmt.Sprintf("mcp: resource %q at %s: %v", e.name, e.site, err))
	}
}

// describeResource also fills in what is listed for a template.
func describeResource(e *entry) *Resource {
	given, ok := e.described.(*Resource)
	switch {
	case e.described == nil:
		return nil
	case !ok:
		panic(fmt.Sprintf("mcp: resource %q at %s describes itself as a %T", e.name, e.site, e.described))
	}
	r := *given
	r.URI = e.name
	if r.Name == "" {
		r.Name = e.name
	}
	if e.template != nil {
		e.listed = r.template()
	}
	return &r
}
