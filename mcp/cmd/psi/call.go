// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/go-psi/psi/internal/nearest"
	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
)

func callCommand() *command {
	dir := "."
	c := &command{
		name: "call", usage: "SERVER TOOL [ARGUMENT ...]", summary: "call a tool", connects: true,
		help: `call calls a tool and shows its result. Images, audio and other data are written to files, and
their names are shown. If the server asks a question, answer it in the terminal.

An argument name=text is a string, or a value of the type that the tool expects, such as a
number. An argument name:=json is JSON. Instead of arguments there may be one JSON object.
They are validated against the schema of the tool before it is called.`,
		example: `$ psi call http://127.0.0.1:8080/mcp add a=2 b=3
{"sum":5}
$ psi call http://127.0.0.1:8080/mcp add '{"a": 2, "b": 3}'
{"sum":5}
$ psi call report title=Tides pages:=2 -- ./server
Tides, 2 pages
`,
		flags: func(f *flag.FlagSet) { dirFlag(f, &dir) },
	}
	c.run = func(ctx context.Context, e *env, words []string) error {
		conn, words, err := e.connect(ctx, c, words)
		if err != nil {
			return err
		}
		if len(words) == 0 {
			return c.wrongWords("which tool?")
		}
		args, err := parseArguments(words[1:])
		if err != nil {
			return err
		}
		params, err := checkedCall(ctx, conn, words[0], args)
		if err != nil {
			return err
		}
		res, err := conn.CallTool(e.term.watching(ctx), params)
		if res, err = unvalidated(ctx, e, res, err); err != nil {
			return err
		}
		if e.client.json {
			if err := writeJSON(e.stdout, res); err != nil || !res.IsError {
				return err
			}
			return &mcp.ToolError{Tool: params.Name, Result: res}
		}
		return showResult(&shower{e.stdout, dir}, params.Name, res)
	}
	return c
}

// unvalidated returns the outcome of a call. If the result could not be validated, for
// example because the server's output schema is invalid, it logs a warning and returns the
// result.
func unvalidated(ctx context.Context, e *env, res *mcp.CallToolResult, err error) (*mcp.CallToolResult, error) {
	unfit, ok := errors.AsType[*mcp.OutputError](err)
	if !ok || ctx.Err() != nil {
		return res, err
	}
	if _, invalid := errors.AsType[*jsonschema.ValidationError](err); invalid {
		return nil, err
	}
	e.log.WarnContext(ctx, "the result was not validated", "error", err)
	return unfit.Result, nil
}

// checkedCall returns the params of a call, with arguments validated against the schema of
// the tool. If the server does not list its tools, validation is left to the server.
func checkedCall(ctx context.Context, conn *mcp.Conn, name string, args *arguments) (*mcp.CallToolParams, error) {
	tools, err := all(conn.Tools(ctx, nil))
	if mcp.CodeOf(err) == mcp.CodeMethodNotFound {
		return &mcp.CallToolParams{Name: name, Arguments: args.object()}, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range tools {
		if t.Name != name {
			names = append(names, t.Name)
			continue
		}
		checked, err := args.check(ctx, t.InputSchema)
		if err != nil {
			return nil, usagef("the tool %q was not called: %v", name, err)
		}
		return &mcp.CallToolParams{Name: name, Arguments: checked}, nil
	}
	return nil, usagef("the server has no tool %q%s", name, nearest.Hint(name, names))
}

// showResult shows the result of a tool. If the tool failed, showResult returns a
// [*mcp.ToolError].
func showResult(s *shower, tool string, res *mcp.CallToolResult) error {
	switch {
	case res.IsError:
		return &mcp.ToolError{Tool: tool, Result: res}
	case len(res.Content) > 0:
		return s.contents(res.Content...)
	case res.StructuredContent != nil:
		return writeJSON(s.out, res.StructuredContent)
	}
	_, err := fmt.Fprintln(s.out, "(no content)")
	return err
}
