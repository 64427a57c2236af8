// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/nearest"
	"github.com/go-psi/psi/internal/uritemplate"
	"github.com/go-psi/psi/jsonschema"
)

// isToolName reports whether name follows the recommendation of the specification
// (server/tools).
func isToolName(name string) bool {
	return name != "" && len(name) <= 128 && strings.Trim(name, alphanumeric+"_.-") == ""
}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// describe validates the description of an entry and sets what it is listed as.
func (m *Mux) describe(e *entry, h Handler) error {
	switch e.kind {
	case "tool":
		return m.describeTool(e, h)
	case "prompt":
		return describePrompt(e)
	case "resource":
		return describeResource(e, h)
	}
	if builtin(e.name) != nil {
		return e.errorf("it is served by the mux itself; use Tool, Prompt, Resource or a middleware")
	}
	return nil
}

// errDescribedAs returns the error for a handler whose description is of another kind.
func (e *entry) errDescribedAs() error {
	return registrationErrorf("%s %q at %s describes itself as a %T", e.kind, e.name, e.site, e.described)
}

// describeTool sets e.tool, the tool as it is listed, and e.headers, the arguments that are
// mirrored in headers. If the handler does not describe itself, they remain nil.
func (m *Mux) describeTool(e *entry, h Handler) (err error) {
	given, ok := e.described.(*Tool)
	if e.described != nil && !ok {
		return e.errDescribedAs()
	}
	if !isToolName(e.name) {
		m.opts.Logger.Warn("mcp: tool name is not one that every client accepts", "tool", e.name, "registered", e.site, "want", "1 to 128 letters, digits, _, . and -")
	}
	if given == nil {
		return nil
	}
	if err := e.checkNamed("Tool.Name", given.Name); err != nil {
		return err
	}
	t := *given
	t.Name = e.name
	if t.InputSchema == nil {
		t.InputSchema = []byte(`{"type":"object"}`)
	}
	_, compiled := h.(interface{ compiled() })
	if err := checkToolSchemas(&t, compiled); err != nil {
		return e.errorf("%w", err)
	}
	if e.headers, err = paramHeaders(t.InputSchema); err != nil {
		return e.errorf("%w", err)
	}
	if _, linted := h.(interface{ linted() }); !linted {
		m.lint(e, "InputSchema", t.InputSchema, jsonschema.Portable)
		if t.OutputSchema != nil {
			m.lint(e, "OutputSchema", t.OutputSchema, jsonschema.Inspector)
		}
	}
	t.encodings = newToolEncodings(&t)
	e.tool = &t
	return nil
}

var errRootType = errors.New(`the root of InputSchema must have "type":"object"`)

// checkToolSchemas validates the schemas of a tool. It compiles them unless they have
// already been compiled.
func checkToolSchemas(t *Tool, compiled bool) error {
	if err := checkSchema("InputSchema", t.InputSchema, compiled); err != nil {
		return err
	}
	if rootType(t.InputSchema) != "object" {
		return errRootType
	}
	if t.OutputSchema == nil {
		return nil
	}
	return checkSchema("OutputSchema", t.OutputSchema, compiled)
}

func checkSchema(field string, schema []byte, compiled bool) error {
	if err := jsonscan.Valid(schema, 0); err != nil {
		return fmt.Errorf("%s is not JSON: %w", field, err)
	}
	if kind := strings.TrimLeft(string(schema), " \t\r\n"); kind[0] != '{' {
		return fmt.Errorf("%s must be an object", field)
	}
	if compiled {
		return nil
	}
	if _, err := jsonschema.Compile(schema, nil); err != nil {
		return fmt.Errorf("%s is not a valid schema: %w", field, err)
	}
	return nil
}

// lint logs problems that clients of the profile are known to have with a schema.
func (m *Mux) lint(e *entry, field string, schema []byte, profile jsonschema.Profile) {
	if m.opts.NoLint {
		return
	}
	for _, f := range jsonschema.Lint(schema, profile) {
		m.opts.Logger.Warn("mcp: clients may refuse this tool's schema, or complain about it; MuxOptions.NoLint turns this warning off",
			"tool", e.name, "registered", e.site, "schema", field, "profile", f.Profile, "at", f.Pointer, "finding", f.Message)
	}
}

func rootType(schema []byte) string {
	raw := jsonscan.Member(bytes.TrimLeft(schema, " \t\r\n"), "type")
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return jsonscan.Text(raw)
}

func describePrompt(e *entry) error {
	given, ok := e.described.(*Prompt)
	switch {
	case e.described == nil:
		return nil
	case !ok:
		return e.errDescribedAs()
	}
	p := *given
	if err := e.checkNamed("Prompt.Name", p.Name); err != nil {
		return err
	}
	names := make([]string, len(p.Arguments))
	for i, a := range p.Arguments {
		names[i] = a.Name
	}
	if err := e.checkCompleters(p.Completers, names, "Prompt.Arguments"); err != nil {
		return err
	}
	p.Name = e.name
	e.prompt = &p
	return nil
}

// describeResource parses the name if it is a template, and sets what the entry is listed as.
func describeResource(e *entry, h Handler) (err error) {
	if err := checkScheme(e.name); err != nil {
		return e.errorf("%w", err)
	}
	e.checking = make(chan struct{}, maxSubscribeRuns)
	if uritemplate.IsTemplate(e.name) {
		if e.template, err = uritemplate.Parse(e.name); err != nil {
			return registrationErrorf("resource template %q at %s: %w", e.name, e.site, err)
		}
		if e.key != e.name {
			if e.template, err = uritemplate.Parse(e.key); err != nil {
				return registrationErrorf("resource template %q at %s, in its normal form: %w", e.name, e.site, err)
			}
		}
	}
	if c, ok := h.(templateChecker); ok {
		if err := c.checkTemplate(e.template); err != nil {
			return e.errorf("%w", err)
		}
	}
	given, ok := e.described.(*Resource)
	switch {
	case e.described == nil:
		return nil
	case !ok:
		return e.errDescribedAs()
	}
	r := *given
	if r.List != nil && e.template == nil {
		return e.errorf("Resource.List is for templates, such as notes://{id}; a resource that is not a template is listed itself")
	}
	if err := e.checkNamed("Resource.URI", r.URI); err != nil {
		return err
	}
	if err := e.checkCompleters(r.Completers, e.variables(), "the template"); err != nil {
		return err
	}
	r.URI = e.name
	r.Name = cmp.Or(r.Name, e.name)
	if e.template != nil {
		e.listed = r.template()
	}
	e.resource = &r
	return nil
}

// variables returns the names of the template's variables.
func (e *entry) variables() []string {
	if e.template == nil {
		return nil
	}
	return e.template.Names()
}

// A templateChecker is a resource handler that does not support every pattern. t is nil if
// the pattern is a URI.
type templateChecker interface {
	checkTemplate(t *uritemplate.Template) error
}

// isNilHandler reports whether h is nil, or a HandlerFunc without a function.
func isNilHandler(h Handler) bool {
	f, isFunc := h.(HandlerFunc)
	return h == nil || isFunc && f == nil
}

// mustBeHandler panics if h is nil.
func mustBeHandler(function string, h Handler) {
	if isNilHandler(h) {
		panic(registrationErrorf("%s at %s: the handler is nil", function, callSite()))
	}
}

// mustBeFunc panics if isNil, which means that the function passed to function is nil.
func mustBeFunc(function string, isNil bool) {
	if isNil {
		panic(registrationErrorf("%s at %s: the function is nil", function, callSite()))
	}
}

// mustBeMiddleware panics if mw contains nil.
func mustBeMiddleware(function string, mw []Middleware) {
	for i, m := range mw {
		if m == nil {
			panic(registrationErrorf("%s at %s: middleware %d of %d is nil", function, callSite(), i+1, len(mw)))
		}
	}
}

// mustBeNamed panics if a server or client has no name.
func mustBeNamed(constructor, name string) {
	if name == "" {
		panic(registrationErrorf("%s at %s: the name is empty", constructor, callSite()))
	}
}

// checkNamed returns an error if the name in a description is set and differs from the name
// that the entry is registered under.
func (e *entry) checkNamed(field, given string) error {
	if given == "" || given == e.name {
		return nil
	}
	return e.errorf("%s is %q; leave it empty, or register the %s as %[2]q", field, given, e.kind)
}

// checkCompleters returns an error if a completer is nil or its argument is not known. where
// names the place where arguments are declared.
func (e *entry) checkCompleters(completers map[string]Completer, known []string, where string) error {
	for _, name := range sortedKeys(completers) {
		if completers[name] == nil {
			return e.errorf("the completer of %q is nil", name)
		}
		if !slices.Contains(known, name) {
			return e.errorf("there is a completer for %q, but no such name in %s%s", name, where, knownNames(name, known))
		}
	}
	return nil
}

// knownNames returns the end of an error text that lists the known names and suggests the
// one that was probably meant.
func knownNames(name string, known []string) string {
	if len(known) == 0 {
		return ", which has none"
	}
	return ", which has " + strings.Join(known, ", ") + nearest.Hint(name, known)
}

// checkScheme returns an error if the pattern of a resource does not begin with a scheme. A
// template may begin with a variable.
func checkScheme(pattern string) error {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	scheme := pattern[:max(strings.IndexAny(pattern, ":{"), 0)]
	if rest := pattern[len(scheme):]; strings.HasPrefix(rest, "://") && scheme != "" {
		if odd := strings.Trim(scheme, letters+"0123456789+-."); odd != "" {
			return fmt.Errorf("the scheme %q has the character %q; a scheme consists of letters, digits, \"+\", \"-\" and \".\"", scheme, []rune(odd)[0])
		}
	}
	isName := scheme != "" && strings.Trim(scheme[:1], letters) == "" && strings.Trim(scheme, letters+"0123456789+-.") == ""
	if isName || pattern[0] == '{' {
		return nil
	}
	return fmt.Errorf("a resource needs a URI with a scheme, such as notes://%s", strings.TrimLeft(pattern, ":/"))
}
