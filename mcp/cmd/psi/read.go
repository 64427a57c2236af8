// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"flag"

	"github.com/go-psi/psi/mcp"
)

func readCommand() *command {
	dir := "."
	c := &command{
		name: "read", usage: "SERVER URI", summary: "read a resource", connects: true,
		help: `read reads a resource and shows its contents. Contents that are not text are written to files,
and their names are shown.`,
		example: `$ psi read http://127.0.0.1:8080/mcp test://menu
soup, bread
`,
		flags: func(f *flag.FlagSet) { dirFlag(f, &dir) },
	}
	c.run = func(ctx context.Context, e *env, words []string) error {
		conn, words, err := e.connect(ctx, c, words)
		if err != nil {
			return err
		}
		if len(words) != 1 {
			return c.wrongWords("want one URI")
		}
		res, err := conn.ReadResource(e.term.watching(ctx), &mcp.ReadResourceParams{URI: words[0]})
		switch {
		case err != nil:
			return err
		case e.client.json:
			return writeJSON(e.stdout, res)
		}
		s := &shower{e.stdout, dir}
		for _, contents := range res.Contents {
			if err := s.resource(contents); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}
