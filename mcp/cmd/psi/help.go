// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
)

const intro = `psi talks to MCP servers of any revision.

usage: psi SUBCOMMAND [flags] [words]

`

const outro = `
A SERVER is the URL of a server, or the name of a server in a configuration file: the file
of -config, or those of the hosts that psi knows. Or omit SERVER and end the line with -- and
the command that starts the server:

	psi call add a=2 b=3 -- ./calculator

Flags may be anywhere before the --. "psi help SUBCOMMAND" lists them.

exit codes:
  0    success
  1    the server or the connection failed
  2    the command line, the arguments of a tool, or a file is wrong; nothing was called
  3    the tool was called and reported a failure
  4    the server requires a login
  130  interrupted
`

func helpCommand() *command {
	return &command{
		name: "help", usage: "[SUBCOMMAND]", summary: "explain psi, or a subcommand",
		help:    "help explains a subcommand and lists its flags.",
		example: "$ psi help call\n",
		run: func(_ context.Context, e *env, words []string) error {
			if len(words) == 0 {
				return writeOverview(e.stdout)
			}
			c, err := findCommand(words[0])
			if err != nil {
				return err
			}
			return writeHelp(e.stdout, c)
		},
	}
}

func writeOverview(w io.Writer) error {
	var text strings.Builder
	text.WriteString(intro + "subcommands:\n")
	for _, c := range commands() {
		if !c.hidden {
			fmt.Fprintf(&text, "  %-11s %s\n", c.name, c.summary)
		}
	}
	text.WriteString(outro)
	_, err := io.WriteString(w, text.String())
	return err
}

// writeHelp writes the help text of a command.
func writeHelp(w io.Writer, c *command) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n\nusage: %s\n", strings.TrimSpace(c.help), c.line())
	if c.connects {
		words := ""
		// If there is a FILE, the names after it are names of its servers.
		if rest, ok := strings.CutPrefix(c.usage, "SERVER "); ok {
			words = rest + " "
		}
		fmt.Fprintf(&text, "       psi %s [flags] %s-- COMMAND [ARGUMENT ...]\n", c.name, words)
	}
	if c.example != "" {
		text.WriteString("\nexample:\n")
		for line := range strings.Lines(c.example) {
			text.WriteString("  " + line)
		}
	}
	flags := newEnv(nil, nil, nil).flagSet(c)
	hasFlags := false
	flags.VisitAll(func(*flag.Flag) { hasFlags = true })
	if hasFlags {
		text.WriteString("\nflags:\n")
		flags.SetOutput(&text)
		flags.PrintDefaults()
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func versionCommand() *command {
	return &command{
		name: "version", summary: "print the version of psi",
		help:    "version prints the version of psi and of Go.",
		example: "$ psi version\n",
		run: func(_ context.Context, e *env, _ []string) error {
			version, goVersion := buildVersion()
			_, err := fmt.Fprintf(e.stdout, "psi %s %s\n", version, goVersion)
			return err
		},
	}
}

// buildVersion returns the versions of psi and Go. The version of psi is "(devel)" if psi
// was built from a directory.
func buildVersion() (psi, goVersion string) {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)", "go"
	}
	return info.Main.Version, info.GoVersion
}
