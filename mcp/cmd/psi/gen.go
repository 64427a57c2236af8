// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"flag"
	"os"

	"github.com/go-psi/psi/mcp/cmd/psi/internal/gen"
)

func genCommand() *command {
	c := &command{
		name: "gen", usage: "SERVER", summary: "write a Go client for a server", connects: true,
		help: `gen writes a Go file with a typed client for the server: a struct for each schema, and a
method for each tool and prompt. The file is the same whenever the server lists the same, so
that it can be committed and compared. It needs nothing but psi:

  conn, err := mcp.NewClient("me", "v1.0.0", nil).Connect(ctx, transport)
  …
  sum, err := kitchen.New(conn).Add(ctx, kitchen.AddInput{A: 2, B: 3})`,
		example: `$ psi gen -package kitchen -o kitchen.go http://127.0.0.1:8080/mcp
`,
	}
	var pkg, path string
	c.flags = func(f *flag.FlagSet) {
		f.StringVar(&pkg, "package", "", "the `name` of the package; the default is the name of the server")
		f.StringVar(&path, "o", "", "write to this `file` instead of the standard output")
	}
	c.run = func(ctx context.Context, e *env, words []string) error {
		l, err := e.listServer(ctx, c, words)
		if err != nil {
			return err
		}
		server := &gen.Server{Tools: l.Tools, Prompts: l.Prompts}
		if l.Server != nil {
			server.Name, server.Version = l.Server.Name, l.Server.Version
		}
		source, err := gen.Generate(server, pkg)
		if err != nil {
			return usagef("gen: %v", err)
		}
		if path != "" {
			return os.WriteFile(path, source, 0o666) //nolint:gosec // source code is for everyone, within the umask
		}
		_, err = e.stdout.Write(source)
		return err
	}
	return c
}
