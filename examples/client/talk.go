// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// talk connects to a server, of any version if it is "", and does what the words of
// the subcommand say.
func talk(ctx context.Context, transport transport.Transport, version string, words []string, term *terminal, out io.Writer) error {
	words = slices.Concat(words, []string{"", "", ""}) // missing arguments are empty
	name, object, arguments := words[0], words[1], json.RawMessage(cmp.Or(words[2], "{}"))
	client := mcp.NewClient("psi-example-client", "v1.0.0", &mcp.ClientOptions{Elicit: term.elicit, ElicitURL: term.elicitURL, Version: version})
	conn, err := client.Connect(ctx, transport)
	if err != nil {
		return err
	}
	ctx, out = mcp.WithProgress(ctx, term.progress), results{term, out}
	switch name {
	case "", "list":
		err = list(ctx, conn, out)
	case "call":
		err = call(ctx, conn, &mcp.CallToolParams{Name: object, Arguments: arguments}, out)
	case "prompt":
		err = prompt(ctx, conn, object, arguments, out)
	case "read":
		err = read(ctx, conn, object, out)
	default:
		err = fmt.Errorf("no subcommand is named %q; -help lists them", name)
	}
	term.endBar()
	return errors.Join(err, conn.Close())
}

// list asks only for what the server says it has.
func list(ctx context.Context, c *mcp.Conn, out io.Writer) error {
	caps := cmp.Or(c.Server().Capabilities, &mcp.ServerCapabilities{})
	var errs []error
	if caps.Tools != nil {
		errs = append(errs, listAll(out, c.Tools(ctx, nil), func(t *mcp.Tool) []string { return []string{"tool", t.Name, t.Description} }))
	}
	if caps.Prompts != nil {
		errs = append(errs, listAll(out, c.Prompts(ctx, nil), func(p *mcp.Prompt) []string { return []string{"prompt", p.Name, p.Description} }))
	}
	if caps.Resources != nil {
		errs = append(errs,
			listAll(out, c.Resources(ctx, nil), func(r *mcp.Resource) []string { return []string{"resource", r.URI, r.Description} }),
			listAll(out, c.ResourceTemplates(ctx, nil), func(t *mcp.ResourceTemplate) []string { return []string{"template", t.URITemplate, t.Description} }))
	}
	return errors.Join(errs...)
}

func listAll[D any](out io.Writer, all iter.Seq2[*D, error], words func(*D) []string) error {
	for d, err := range all {
		if err != nil {
			return err
		}
		fmt.Fprintln(out, oneLine(strings.Join(words(d), " ")))
	}
	return nil
}

func call(ctx context.Context, c *mcp.Conn, p *mcp.CallToolParams, out io.Writer) error {
	res, err := c.CallTool(ctx, p)
	switch {
	case err != nil:
		return err
	case res.IsError:
		return &mcp.ToolError{Tool: p.Name, Result: res}
	case len(res.Content) == 0 && res.StructuredContent != nil:
		fmt.Fprintln(out, clean(string(res.StructuredContent)))
	}
	for _, content := range res.Content {
		show(out, content)
	}
	return nil
}

func prompt(ctx context.Context, c *mcp.Conn, name string, arguments json.RawMessage, out io.Writer) error {
	p := &mcp.GetPromptParams{Name: name}
	if err := json.Unmarshal(arguments, &p.Arguments); err != nil {
		return fmt.Errorf("the arguments of a prompt are an object of strings: %w", err)
	}
	res, err := c.GetPrompt(ctx, p)
	if err != nil {
		return err
	}
	for _, message := range res.Messages {
		show(out, message.Content)
	}
	return nil
}

func read(ctx context.Context, c *mcp.Conn, uri string, out io.Writer) error {
	res, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return err
	}
	for _, contents := range res.Contents {
		show(out, &mcp.EmbeddedResource{Resource: contents})
	}
	return nil
}

// show prints text, and of everything else the beginning of its JSON.
func show(out io.Writer, content mcp.Content) {
	text := ""
	switch c := content.(type) {
	case *mcp.TextContent:
		text = c.Text
	case *mcp.EmbeddedResource:
		if c.Resource != nil && c.Resource.Blob == nil {
			text = c.Resource.Text
		}
	}
	if text == "" {
		raw, err := json.Marshal(content)
		if err != nil {
			raw = []byte(err.Error())
		}
		text = string(raw[:min(len(raw), 200)])
	}
	fmt.Fprintln(out, strings.TrimSuffix(clean(text), "\n"))
}
