// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"

	"github.com/go-psi/psi/internal/lint"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/internal/uritemplate"
	"github.com/go-psi/psi/mcp"
)

// An item is something that the handler lists, or that is registered with it.
type item struct {
	Kind        string          `json:"kind"` // tool, prompt, resource, template, method or mount
	Name        string          `json:"name"` // or URI, template, method, prefix
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	MIMEType    string          `json:"mimeType,omitempty"`
	Hints       []string        `json:"hints,omitempty"` // annotations of a tool
	Input       json.RawMessage `json:"inputSchema,omitempty"`
	Output      json.RawMessage `json:"outputSchema,omitempty"`
	Meta        mcp.Meta        `json:"_meta,omitempty"`
	Findings    []lint.Finding  `json:"findings,omitempty"`
	IsListed    bool            `json:"listed"`
	App         string          `json:"app,omitempty"` // URI of the app of a tool for models
	Fields      []field         `json:"-"`

	Site       string          `json:"site,omitempty"`
	Handler    string          `json:"handler,omitempty"`
	Middleware []seam.Function `json:"middleware,omitempty"`
}

// kinds are the kinds of items, in the order in which they are shown.
var kinds = []string{"tool", "prompt", "resource", "template", "method", "mount"}

// items returns all items as the caller sees them: the listed items and other registrations. If a
// list cannot be read, items returns an error together with the items that could be read.
func (p *page) items(ctx context.Context, caller *mcp.Principal) (all []*item, err error) {
	conn, err := p.connect(ctx, caller, true, nil)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	p.keep(conn.Server())
	l := readLists(ctx, conn)
	all = l.items()
	if mux, ok := p.handler.(*mcp.Mux); ok {
		all = withRegistrations(all, core.Registrations(mux))
	}
	slices.SortStableFunc(all, func(a, b *item) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), cmp.Compare(a.Name, b.Name))
	})
	return all, l.err
}

// lists are the lists of a server.
type lists struct {
	tools     []*mcp.Tool
	prompts   []*mcp.Prompt
	resources []*mcp.Resource
	templates []*mcp.ResourceTemplate
	err       error // the first error
}

// readLists reads the lists of what the server offers.
func readLists(ctx context.Context, conn *mcp.Conn) *lists {
	caps, l := conn.Server().Capabilities, new(lists)
	if caps.Tools != nil {
		l.tools = collect(l, conn.Tools(ctx, nil))
	}
	if caps.Prompts != nil {
		l.prompts = collect(l, conn.Prompts(ctx, nil))
	}
	if caps.Resources != nil {
		l.resources = collect(l, conn.Resources(ctx, nil))
		l.templates = collect(l, conn.ResourceTemplates(ctx, nil))
	}
	return l
}

// maxItems is the maximum number of items of one kind that are shown.
const maxItems = 5000

// collect reads one list. It records an error in l.
func collect[T any](l *lists, list iter.Seq2[*T, error]) (all []*T) {
	for v, err := range list {
		if err == nil && len(all) == maxItems {
			err = fmt.Errorf("only %d items of each list are shown", maxItems)
		}
		if err != nil {
			l.err = cmp.Or(l.err, err)
			break
		}
		all = append(all, v)
	}
	return all
}

// items returns the items of the lists with their findings.
func (l *lists) items() (all []*item) {
	for _, t := range l.tools {
		all = append(all, itemOfTool(t))
	}
	for _, pr := range l.prompts {
		all = append(all, itemOfPrompt(pr))
	}
	for _, r := range l.resources {
		all = append(all, itemOfResource(r))
	}
	for _, t := range l.templates {
		all = append(all, itemOfTemplate(t))
	}
	type key struct{ kind, name string }
	found := map[key][]lint.Finding{}
	for _, f := range slices.Concat(lint.Tools(l.tools, ""), lint.Prompts(l.prompts), lint.Resources(l.resources, l.templates)) {
		k := key{f.Kind, f.Name}
		if f.Kind == lint.KindTemplate {
			k.kind = "template"
		}
		found[k] = append(found[k], f)
	}
	for _, it := range all {
		it.IsListed, it.Findings = true, found[key{it.Kind, it.Name}]
	}
	return all
}

// Problems returns the number of findings that are more severe than notes.
func (it *item) Problems() (n int) {
	for _, f := range it.Findings {
		if f.Severity != lint.Note {
			n++
		}
	}
	return n
}

// item returns one item.
func (p *page) item(ctx context.Context, caller *mcp.Principal, kind, name string) (*item, error) {
	all, err := p.items(ctx, caller)
	for _, it := range all {
		if it.Kind == kind && it.Name == name {
			return it, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if kind == "resource" && name != "" {
		return &item{Kind: kind, Name: name}, nil // it matches a template, or was linked
	}
	return nil, failure{http.StatusNotFound, fmt.Sprintf("there is no %.20s %.100q, or it was removed", kind, name)}
}

func itemOfTool(t *mcp.Tool) *item {
	return &item{
		Kind: "tool", Name: t.Name, Title: t.Title, Description: t.Description, Input: t.InputSchema, Output: t.OutputSchema, Meta: t.Meta,
		Fields: fieldsOf(t.InputSchema), Hints: hintsOf(t.Annotations), App: appOf(t),
	}
}

func hintsOf(a *mcp.ToolAnnotations) (hints []string) {
	raw, err := json.Marshal(a)
	var all map[string]any
	if err != nil || json.Unmarshal(raw, &all) != nil {
		return nil
	}
	for name, value := range all {
		if is, ok := value.(bool); ok {
			hints = append(hints, fmt.Sprintf("%s: %t", name, is))
		}
	}
	slices.Sort(hints)
	return hints
}

func itemOfPrompt(pr *mcp.Prompt) *item {
	it := &item{Kind: "prompt", Name: pr.Name, Title: pr.Title, Description: pr.Description, Meta: pr.Meta}
	for _, a := range pr.Arguments {
		if a == nil {
			continue
		}
		f := field{Name: a.Name, Label: a.Name, Description: a.Description, Kind: "lines", Hint: "text", Required: a.Required}
		it.Fields = append(it.Fields, f)
	}
	return it
}

func itemOfResource(r *mcp.Resource) *item {
	return &item{Kind: "resource", Name: r.URI, Title: cmp.Or(r.Title, r.Name), Description: r.Description, MIMEType: r.MIMEType, Meta: r.Meta}
}

func itemOfTemplate(t *mcp.ResourceTemplate) *item {
	it := &item{Kind: "template", Name: t.URITemplate, Title: cmp.Or(t.Title, t.Name), Description: t.Description, MIMEType: t.MIMEType, Meta: t.Meta}
	it.setVariables()
	return it
}

// setVariables sets a field for each variable of a template.
func (it *item) setVariables() {
	parsed, err := uritemplate.Parse(it.Name)
	if err != nil {
		return // expand says why
	}
	for _, name := range parsed.Names() {
		it.Fields = append(it.Fields, field{Name: name, Label: name, Kind: "text", InputType: "text"})
	}
}

// expand expands the URI template with the values of variables.
func (it *item) expand(variables json.RawMessage) (string, error) {
	parsed, err := uritemplate.Parse(it.Name)
	if err != nil {
		return "", failure{http.StatusBadRequest, fmt.Sprintf("the template %.100q cannot be read: %v", it.Name, err)}
	}
	var values map[string]string
	if err := json.Unmarshal(variables, &values); err != nil {
		return "", failure{http.StatusBadRequest, "the variables of a template are strings"}
	}
	uri, err := parsed.Expand(values)
	if err != nil {
		return "", failure{http.StatusBadRequest, err.Error()}
	}
	return uri, nil
}

// withRegistrations adds the places of registration to the items, and adds an item for each
// registration that is not listed.
func withRegistrations(all []*item, registrations []seam.Registration) []*item {
	type key struct{ kind, name string }
	byKey := map[key]*item{}
	for _, it := range all {
		byKey[key{it.Kind, it.Name}] = it
	}
	for _, r := range registrations {
		kind := r.Kind
		if kind == "resource" && uritemplate.IsTemplate(r.Name) {
			kind = "template"
		}
		it := byKey[key{kind, r.Name}]
		if it == nil {
			it = &item{Kind: kind, Name: r.Name}
			if kind == "template" {
				it.setVariables()
			}
			all = append(all, it)
		}
		it.Site, it.Handler, it.Middleware = r.Site, r.Handler, r.Middleware
	}
	return all
}
