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
)

// command is a subcommand with its arguments.
type command func(ctx context.Context, c *mcp.Conn) error

func parseCommand(args []string, out io.Writer) (command, error) {
	args = append(slices.Clip(args), "", "")[:max(len(args), 2)] // missing arguments are empty
	name, object, rest := args[0], args[1], args[min(len(args), 2):]
	switch name {
	case "", "list":
		return parseList(object, rest, out)
	case "call":
		return parseCall(object, rest, out)
	case "read":
		if object == "" || len(rest) > 0 {
			return nil, errors.New("usage: read URI")
		}
		return func(ctx context.Context, c *mcp.Conn) error { return read(ctx, c, object, out) }, nil
	case "prompt":
		return parsePrompt(object, rest, out)
	}
	return nil, fmt.Errorf("no subcommand is named %q; -help lists them", name)
}

func parseList(kind string, rest []string, out io.Writer) (command, error) {
	if len(rest) > 0 || kind != "" && kind != "tools" && kind != "prompts" && kind != "resources" {
		return nil, errors.New("usage: list [tools | prompts | resources]")
	}
	return func(ctx context.Context, c *mcp.Conn) error { return list(ctx, c, kind, out) }, nil
}

// list asks only for what the server says it has.
func list(ctx context.Context, c *mcp.Conn, kind string, out io.Writer) error {
	caps := cmp.Or(c.Server().Capabilities, &mcp.ServerCapabilities{})
	var errs []error
	if caps.Tools != nil && (kind == "" || kind == "tools") {
		errs = append(errs, listAll(out, "tools", c.Tools(ctx, nil), func(t *mcp.Tool) (string, string) { return t.Name, t.Description }))
	}
	if caps.Prompts != nil && (kind == "" || kind == "prompts") {
		errs = append(errs, listAll(out, "prompts", c.Prompts(ctx, nil), func(p *mcp.Prompt) (string, string) { return promptLine(p), p.Description }))
	}
	if caps.Resources != nil && (kind == "" || kind == "resources") {
		errs = append(errs,
			listAll(out, "resources", c.Resources(ctx, nil), func(r *mcp.Resource) (string, string) { return r.URI, r.Description }),
			listAll(out, "templates", c.ResourceTemplates(ctx, nil), func(t *mcp.ResourceTemplate) (string, string) { return t.URITemplate, t.Description }))
	}
	return errors.Join(errs...)
}

func listAll[D any](out io.Writer, title string, all iter.Seq2[*D, error], line func(*D) (name, about string)) error {
	empty := true
	for d, err := range all {
		if err != nil {
			return fmt.Errorf("%s: %w", title, err)
		}
		if empty {
			fmt.Fprintln(out, title+":")
			empty = false
		}
		name, about := line(d)
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("  %-28s  %s", clean(name), oneLine(about)), " "))
	}
	return nil
}

func parseCall(tool string, rest []string, out io.Writer) (command, error) {
	arguments := json.RawMessage("{}")
	if len(rest) == 1 {
		arguments = json.RawMessage(rest[0])
	}
	var object map[string]json.RawMessage
	if tool == "" || len(rest) > 1 || json.Unmarshal(arguments, &object) != nil {
		return nil, errors.New("usage: call TOOL [JSON], where the JSON is an object")
	}
	return func(ctx context.Context, c *mcp.Conn) error {
		res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			return err
		}
		if res.IsError {
			return &mcp.ToolError{Tool: tool, Result: res}
		}
		printTool(out, res)
		return nil
	}, nil
}

func read(ctx context.Context, c *mcp.Conn, uri string, out io.Writer) error {
	res, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return err
	}
	for _, contents := range res.Contents {
		printResource(out, contents)
	}
	return nil
}

func parsePrompt(name string, rest []string, out io.Writer) (command, error) {
	p := &mcp.GetPromptParams{Name: name, Arguments: map[string]string{}}
	for _, pair := range rest {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("the argument %q is not of the form key=value", pair)
		}
		p.Arguments[key] = value
	}
	if name == "" {
		return nil, errors.New("usage: prompt NAME [key=value ...]")
	}
	return func(ctx context.Context, c *mcp.Conn) error {
		res, err := c.GetPrompt(ctx, p)
		if err != nil {
			return err
		}
		for _, m := range res.Messages {
			fmt.Fprintf(out, "%s: ", clean(string(m.Role)))
			printContent(out, m.Content)
		}
		return nil
	}, nil
}
