// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-psi/psi/mcp"
)

// tool adds a method for a tool, and the types of its input and output.
func (g *generator) tool(t *mcp.Tool) {
	method := g.methodNames.take(exported(t.Name))
	in := g.input(t, method)
	to := &g.methods
	to.WriteByte('\n')
	writeComment(to, "", fmt.Sprintf("%s calls the tool %q.", method, t.Name), t.Description, hints(t.Annotations))
	parameter, argument := "", "nil"
	if in != "" {
		parameter, argument = ", in "+in, "in"
	}
	if len(t.OutputSchema) == 0 {
		g.usesCall = true
		fmt.Fprintf(to, "func (c *Client) %s(ctx context.Context%s) (*mcp.CallToolResult, error) {\n", method, parameter)
		fmt.Fprintf(to, "\treturn c.call(ctx, %q, %s)\n}\n", t.Name, argument)
		return
	}
	out := g.output(t, method)
	fmt.Fprintf(to, "func (c *Client) %s(ctx context.Context%s) (%s, error) {\n", method, parameter, out)
	fmt.Fprintf(to, "\treturn mcp.Call[%s](ctx, c.conn, %q, %s)\n}\n", out, t.Name, argument)
}

// input returns the type of a tool's arguments, or "" if it takes none. Arguments are an
// object.
func (g *generator) input(t *mcp.Tool, method string) string {
	r := g.newReader(t.InputSchema, method, inputSuffix, fmt.Sprintf("the input of the tool %q", t.Name))
	if r == nil {
		return "map[string]any"
	}
	root := asObject(r.root)
	in := r.typeOf(root, "", newTypeName(method+inputSuffix))
	isCombined := root.has("anyOf") || root.has("oneOf") || root.has("allOf") || root.has("$ref")
	switch {
	case in.strct != nil || in.hasNil && isOpen(root) && strings.HasPrefix(in.text, "map["):
		return in.text
	case isCombined || isOpen(root) || len(asObject(root.values["properties"]).names) > 0 || len(root.strings("required")) > 0:
		return "map[string]any"
	}
	return ""
}

// output returns the type of a tool's structured content.
func (g *generator) output(t *mcp.Tool, method string) string {
	r := g.newReader(t.OutputSchema, method, outputSuffix, fmt.Sprintf("the output of the tool %q", t.Name))
	if r == nil {
		return "json.RawMessage"
	}
	return r.typeOf(r.root, "", newTypeName(method+outputSuffix)).element()
}

// hints describes the annotations of a tool.
func hints(a *mcp.ToolAnnotations) string {
	switch {
	case a == nil || a.ReadOnlyHint == nil:
		return ""
	case *a.ReadOnlyHint:
		return "The server says that the tool only reads."
	case a.DestructiveHint != nil && *a.DestructiveHint:
		return "The server says that the tool can destroy something."
	}
	return "The server says that the tool changes something."
}

// prompt adds a method for a prompt, and the type of its arguments, which are all strings.
func (g *generator) prompt(p *mcp.Prompt) {
	method := g.methodNames.take(strings.TrimSuffix(exported(p.Name), "Prompt") + "Prompt")
	in, names := g.promptInput(p, method)
	to := &g.methods
	to.WriteByte('\n')
	writeComment(to, "", fmt.Sprintf("%s gets the prompt %q.", method, p.Name), p.Description)
	if in == nil {
		fmt.Fprintf(to, "func (c *Client) %s(ctx context.Context) (*mcp.GetPromptResult, error) {\n", method)
		fmt.Fprintf(to, "\treturn c.conn.GetPrompt(ctx, &mcp.GetPromptParams{Name: %q})\n}\n", p.Name)
		return
	}
	fmt.Fprintf(to, "func (c *Client) %s(ctx context.Context, in %s) (*mcp.GetPromptResult, error) {\n", method, in.name)
	to.WriteString("\targuments := map[string]string{}\n")
	for i, f := range in.fields {
		if f.isRequired {
			fmt.Fprintf(to, "\targuments[%q] = in.%s\n", names[i], f.name)
		} else {
			fmt.Fprintf(to, "\tif in.%[2]s != nil {\n\t\targuments[%[1]q] = *in.%[2]s\n\t}\n", names[i], f.name)
		}
	}
	fmt.Fprintf(to, "\treturn c.conn.GetPrompt(ctx, &mcp.GetPromptParams{Name: %q, Arguments: arguments})\n}\n", p.Name)
}

// promptInput declares the type of the arguments of a prompt. It returns nil if there are
// none. It also returns the names of the arguments, by the index of the field.
func (g *generator) promptInput(p *mcp.Prompt, method string) (in *structType, names []string) {
	in = &structType{}
	fields := scope{}
	for _, a := range p.Arguments {
		if a == nil || slices.Contains(names, a.Name) {
			continue
		}
		names = append(names, a.Name)
		in.fields = append(in.fields, &structField{name: fields.take(exported(a.Name)), doc: a.Description, typ: goType{text: "string"}, isRequired: a.Required})
	}
	if len(names) == 0 {
		return nil, nil
	}
	in.name = g.names.take(method + "Input")
	in.doc = []string{fmt.Sprintf("%s has the arguments of the prompt %q.", in.name, p.Name)}
	g.decls = append(g.decls, in)
	return in, names
}
