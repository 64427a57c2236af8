// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/lint"
)

func lintCommand() *command {
	c := &command{
		name: "lint", usage: "SERVER", summary: "check what a server lists against what models and hosts accept", connects: true,
		help: `lint checks the names, descriptions, schemas and annotations that a server lists. Each line
tells how severe a finding is, where it is, what is wrong, who objects, and what to do:

  error    the specification is violated, or the API of a model provider refuses the tool
  warning  some hosts or providers refuse, truncate or ignore something
  note     it works, but models and users get too little information

The exit code is 1 if there are errors.`,
		example: `$ psi lint -prefix kitchen_ http://127.0.0.1:8080/mcp
$ psi lint -json -- ./server
`,
	}
	var prefix string
	c.flags = func(f *flag.FlagSet) {
		f.StringVar(&prefix, "prefix", "", "the `prefix` that the host adds to the names of the tools; it counts as part of them")
	}
	c.run = func(ctx context.Context, e *env, words []string) error {
		l, err := e.listServer(ctx, c, words)
		if err != nil {
			return err
		}
		return e.writeFindings("the server has", slices.Concat(lint.Instructions(l.Instructions), lint.Tools(l.Tools, prefix),
			lint.Prompts(l.Prompts), lint.Resources(l.Resources, l.ResourceTemplates)))
	}
	return c
}

// listServer lists everything that a server has. If some lists fail, it warns and returns the
// others. The words must name only the server.
func (e *env) listServer(ctx context.Context, c *command, words []string) (*listing, error) {
	conn, rest, err := e.connect(ctx, c, words)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, c.wrongWords("what is %q?", rest[0])
	}
	l, err := fetchListing(ctx, conn)
	if err != nil && (l.len() == 0 || ctx.Err() != nil) {
		return nil, err
	}
	if err != nil {
		e.log.WarnContext(ctx, "the server's lists are incomplete", "error", err)
	}
	return l, nil
}

// writeFindings writes the findings. It returns an error if any of them is an error, which
// begins with what, such as "the server has".
func (e *env) writeFindings(what string, found []lint.Finding) error {
	count := map[lint.Severity]int{}
	var text strings.Builder
	for _, f := range found {
		count[f.Severity]++
		fmt.Fprintln(&text, f)
	}
	summary := fmt.Sprintf("%s, %s, %s", plural(count[lint.Error], "error"), plural(count[lint.Warning], "warning"), plural(count[lint.Note], "note"))
	var err error
	if e.client.json {
		err = writeJSON(e.stdout, append([]lint.Finding{}, found...)) // [] if there are none
	} else {
		_, err = fmt.Fprintln(e.stdout, text.String()+summary)
	}
	if err == nil && count[lint.Error] > 0 {
		err = fmt.Errorf("%s %s", what, plural(count[lint.Error], "error"))
	}
	return err
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
