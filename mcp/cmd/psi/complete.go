// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/mcp"
)

func completeCommand() *command {
	c := &command{
		name: "complete", usage: "SERVER PROMPT|TEMPLATE NAME=TYPED [NAME=VALUE ...]", summary: "complete an argument of a prompt or of a template", connects: true,
		help: `complete asks the server how the first argument of a prompt, or of the URI template of a
resource, could continue, and shows one suggestion per line. The other arguments are those that
were chosen before.`,
		example: `$ psi complete http://127.0.0.1:8080/mcp test://recipes/{dish} dish=so
sorbet
soup
`,
	}
	c.run = func(ctx context.Context, e *env, words []string) error {
		conn, words, err := e.connect(ctx, c, words)
		if err != nil {
			return err
		}
		if len(words) < 2 {
			return c.wrongWords("want a prompt or a template, and an argument")
		}
		params, err := completeParams(words[0], words[1:])
		if err != nil {
			return err
		}
		res, err := conn.Complete(ctx, params)
		switch {
		case err != nil:
			return err
		case e.client.json:
			return writeJSON(e.stdout, res)
		}
		for _, value := range res.Completion.Values {
			fmt.Fprintln(e.stdout, printable.Line(value))
		}
		if res.Completion.HasMore {
			e.term.printf("(the server has more)\n")
		}
		return nil
	}
	return c
}

// completeParams returns the params for completing the first argument.
func completeParams(name string, words []string) (*mcp.CompleteParams, error) {
	p := &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/prompt", Name: name}}
	if strings.Contains(name, "://") || strings.Contains(name, "{") {
		p.Ref = mcp.CompleteRef{Type: "ref/resource", URI: name}
	}
	for i, word := range words {
		name, value, ok := strings.Cut(word, "=")
		switch {
		case !ok || name == "":
			return nil, usagef("complete: the argument %q is not name=text", word)
		case i == 0:
			p.Argument = mcp.CompleteArgument{Name: name, Value: value}
		case p.Context == nil:
			p.Context = &mcp.CompleteContext{Arguments: map[string]string{name: value}}
		default:
			p.Context.Arguments[name] = value
		}
	}
	return p, nil
}
