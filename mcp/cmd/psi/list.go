// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

func listCommand() *command {
	c := &command{
		name: "list", usage: "SERVER [NAME ...]", summary: "list what a server offers, or describe parts of it", connects: true,
		help: `list lists the tools, prompts, resources and resource templates of a server. With names, it
describes only the items with these names or URIs: the whole description, the arguments and their
schema.`,
		example: `$ psi list http://127.0.0.1:8080/mcp
tool      add                    a b            Add two integers.
tool      report                 title [pages]  Write a report.
prompt    explain                topic          Explain a topic.
resource  test://menu                           What there is to eat.
template  test://recipes/{dish}                 How to cook a dish.
$ psi list http://127.0.0.1:8080/mcp add
tool add: Add two integers.
  a  integer, required: The first one.
  b  integer, required: The second one.
`,
	}
	c.run = func(ctx context.Context, e *env, words []string) error {
		conn, names, err := e.connect(ctx, c, words)
		if err != nil {
			return err
		}
		l, incomplete := fetchListing(ctx, conn)
		if len(names) > 0 {
			if l, err = l.only(names); err != nil {
				return errors.Join(incomplete, err)
			}
		}
		switch {
		case e.client.json:
			err = writeJSON(e.stdout, l)
		case len(names) > 0:
			err = l.describe(e.stdout)
		default:
			err = l.write(e.stdout)
		}
		return errors.Join(incomplete, err)
	}
	return c
}

// A listing is everything that a server lists.
type listing struct {
	Server            *mcp.Implementation     `json:"server,omitzero"`
	ProtocolVersion   string                  `json:"protocolVersion"`
	Instructions      string                  `json:"instructions,omitempty"`
	Tools             []*mcp.Tool             `json:"tools,omitempty"`
	Prompts           []*mcp.Prompt           `json:"prompts,omitempty"`
	Resources         []*mcp.Resource         `json:"resources,omitempty"`
	ResourceTemplates []*mcp.ResourceTemplate `json:"resourceTemplates,omitempty"`
}

// fetchListing fetches the lists that the server's capabilities declare. The error names the
// lists that failed; the listing has all others. A server that does not know the method of a
// list has an empty one: some declare resources although they have none, and many have no
// templates.
func fetchListing(ctx context.Context, c *mcp.Conn) (*listing, error) {
	l := &listing{Server: c.ServerInfo(), ProtocolVersion: c.Version(), Instructions: c.Server().Instructions}
	caps := cmp.Or(c.Server().Capabilities, &mcp.ServerCapabilities{})
	failed := map[string]error{}
	if caps.Tools != nil {
		l.Tools, failed[mcp.MethodListTools] = all(c.Tools(ctx, nil))
	}
	if caps.Prompts != nil {
		l.Prompts, failed[mcp.MethodListPrompts] = all(c.Prompts(ctx, nil))
	}
	if caps.Resources != nil {
		l.Resources, failed[mcp.MethodListResources] = all(c.Resources(ctx, nil))
		l.ResourceTemplates, failed[mcp.MethodListResourceTemplates] = all(c.ResourceTemplates(ctx, nil))
	}
	var problems error
	for _, method := range slices.Sorted(maps.Keys(failed)) {
		if err := failed[method]; err != nil && mcp.CodeOf(err) != mcp.CodeMethodNotFound {
			problems = errors.Join(problems, fmt.Errorf("%s: %w", method, err))
		}
	}
	return l, problems
}

// all collects a list up to its first error.
func all[D any](items iter.Seq2[*D, error]) (list []*D, err error) {
	for item, err := range items {
		if err != nil {
			return list, err
		}
		list = append(list, item)
	}
	return list, nil
}

// only returns the items with the given names or URIs.
func (l *listing) only(names []string) (*listing, error) {
	some := &listing{Server: l.Server, ProtocolVersion: l.ProtocolVersion}
	for _, name := range names {
		before := some.len()
		some.Tools = append(some.Tools, named(l.Tools, name, func(t *mcp.Tool) string { return t.Name })...)
		some.Prompts = append(some.Prompts, named(l.Prompts, name, func(p *mcp.Prompt) string { return p.Name })...)
		some.Resources = append(some.Resources, named(l.Resources, name, func(r *mcp.Resource) string { return r.URI })...)
		some.ResourceTemplates = append(some.ResourceTemplates, named(l.ResourceTemplates, name, func(t *mcp.ResourceTemplate) string { return t.URITemplate })...)
		if some.len() == before {
			return nil, usagef("the server has nothing named %q", name)
		}
	}
	return some, nil
}

func named[D any](items []*D, name string, nameOf func(*D) string) []*D {
	return slices.DeleteFunc(slices.Clone(items), func(d *D) bool { return nameOf(d) != name })
}

func (l *listing) len() int {
	return len(l.Tools) + len(l.Prompts) + len(l.Resources) + len(l.ResourceTemplates)
}

// write writes a line for each item. Text of the server is escaped and contains no tabs.
func (l *listing) write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(kind, name, arguments, description string) {
		cells := []string{kind, printable.Line(name), firstLine(arguments, maxArguments), firstLine(description, maxDescription)}
		fmt.Fprintln(table, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	for _, t := range l.Tools {
		row("tool", t.Name, argumentNames(fieldsOf(t.InputSchema)), t.Description)
	}
	for _, p := range l.Prompts {
		row("prompt", p.Name, argumentNames(promptFields(p)), p.Description)
	}
	for _, r := range l.Resources {
		row("resource", r.URI, "", cmp.Or(r.Description, r.Title, r.Name))
	}
	for _, t := range l.ResourceTemplates {
		row("template", t.URITemplate, "", cmp.Or(t.Description, t.Title, t.Name))
	}
	return table.Flush()
}

// maxArguments and maxDescription limit the number of characters shown in a line.
const maxArguments, maxDescription = 40, 100

// firstLine returns the beginning of a server's text, for a table.
func firstLine(text string, most int) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return shorten(printable.Line(line), most)
}

// argumentNames returns the names of arguments, optional ones in brackets.
func argumentNames(fields []field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		if names[i] = f.name; !f.required {
			names[i] = "[" + f.name + "]"
		}
	}
	return strings.Join(names, " ")
}

// describe writes everything about the items.
func (l *listing) describe(w io.Writer) error {
	var text strings.Builder
	item := func(kind, name, description string, fields []field) {
		fmt.Fprintf(&text, "%s %s", kind, printable.Line(name))
		if description != "" {
			text.WriteString(": " + strings.ReplaceAll(printable.Text(strings.TrimSpace(description)), "\n", "\n  "))
		}
		text.WriteByte('\n')
		table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		for _, f := range fields {
			fmt.Fprintf(table, "  %s\t%s\n", printable.Line(f.name), printable.Line(f.describe()))
		}
		_ = table.Flush() // writes to memory
	}
	for _, t := range l.Tools {
		item("tool", t.Name, t.Description, fieldsOf(t.InputSchema))
	}
	for _, p := range l.Prompts {
		item("prompt", p.Name, p.Description, promptFields(p))
	}
	for _, r := range l.Resources {
		item("resource", r.URI, cmp.Or(r.Description, r.Title, r.Name), nil)
	}
	for _, t := range l.ResourceTemplates {
		item("template", t.URITemplate, cmp.Or(t.Description, t.Title, t.Name), nil)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// promptFields returns the arguments of a prompt, which are all strings.
func promptFields(p *mcp.Prompt) []field {
	fields := make([]field, len(p.Arguments))
	for i, a := range p.Arguments {
		schema := strictjson.MustMarshal(map[string]string{"type": "string", "description": a.Description})
		fields[i] = field{a.Name, schema, a.Required}
	}
	return fields
}
