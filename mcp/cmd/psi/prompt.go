// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/mcp"
)

func promptCommand() *command {
	dir := "."
	c := &command{
		name: "prompt", usage: "SERVER PROMPT [ARGUMENT ...]", summary: "get a prompt", connects: true,
		help: `prompt gets a prompt and shows its messages, each below the role that it is of. Arguments are
name=text, or one JSON object of strings.`,
		example: `$ psi prompt http://127.0.0.1:8080/mcp explain topic=tides
user:
Explain tides.
`,
		flags: func(f *flag.FlagSet) { dirFlag(f, &dir) },
	}
	c.run = func(ctx context.Context, e *env, words []string) error {
		conn, words, err := e.connect(ctx, c, words)
		if err != nil {
			return err
		}
		if len(words) == 0 {
			return c.wrongWords("which prompt?")
		}
		args, err := parseArguments(words[1:])
		if err != nil {
			return err
		}
		values, err := args.strings()
		if err != nil {
			return err
		}
		res, err := conn.GetPrompt(e.term.watching(ctx), &mcp.GetPromptParams{Name: words[0], Arguments: values})
		switch {
		case err != nil:
			return err
		case e.client.json:
			return writeJSON(e.stdout, res)
		}
		s := &shower{e.stdout, dir}
		for _, m := range res.Messages {
			fmt.Fprintf(e.stdout, "%s:\n", printable.Line(string(m.Role)))
			if err := s.content(m.Content); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}
