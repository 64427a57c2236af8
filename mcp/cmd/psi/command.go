// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/go-psi/psi/internal/nearest"
	"github.com/go-psi/psi/mcp"
)

// A command is a subcommand of psi. Each is created by a function in its own file, so that
// the variables of its flags belong to one run.
type command struct {
	name    string
	usage   string // the words after the name: "SERVER TOOL [ARGUMENT ...]"
	summary string // one line, without a full stop
	help    string // paragraphs, for psi help NAME
	// example contains lines that begin with "$ psi", each followed by its output. A test
	// runs them; see TestExamples.
	example string
	// connects reports whether the command talks to a server. If so, it has the flags of
	// [clientFlags] and accepts the command of a server after --.
	connects bool
	// takesCommand reports whether the command accepts a command after -- without connecting
	// to it in that way.
	takesCommand bool
	noResult     bool                  // has no flags for a result, such as -json
	hidden       bool                  // not shown to users
	raw          bool                  // takes all arguments as words, including flags and --
	flags        func(f *flag.FlagSet) // adds the command's own flags; may be nil
	// run runs the command. Words are the arguments that are not flags.
	run func(ctx context.Context, e *env, words []string) error
}

// commands returns the subcommands in the order in which psi help lists them.
func commands() []*command {
	return []*command{
		listCommand(),
		callCommand(),
		readCommand(),
		promptCommand(),
		completeCommand(),
		watchCommand(),
		gatewayCommand(),
		serveCommand(),
		inspectCommand(),
		logoutCommand(),
		recordCommand(),
		replayCommand(),
		newCommand(),
		devCommand(),
		serversCommand(),
		installCommand(),
		uninstallCommand(),
		doctorCommand(),
		completionCommand(),
		lintCommand(),
		cardCommand(),
		genCommand(),
		helpCommand(),
		versionCommand(),
		suggestCommand(),
	}
}

// findCommand returns the subcommand with the given name.
func findCommand(name string) (*command, error) {
	all := commands()
	if i := slices.IndexFunc(all, func(c *command) bool { return c.name == name }); i >= 0 {
		return all[i], nil
	}
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.name
	}
	return nil, usagef("there is no subcommand %q%s; psi help lists them", name, nearest.Hint(name, names))
}

// A usageError is a mistake in the command line, or in a file that it names.
type usageError struct{ error }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// wrongWords returns the error for words that do not match the usage of a command.
func (c *command) wrongWords(format string, args ...any) error {
	return usagef("%s: %s\nusage: %s", c.name, fmt.Sprintf(format, args...), c.line())
}

// line returns the usage line.
func (c *command) line() string {
	line := "psi " + c.name
	if c.connects || c.flags != nil {
		line += " [flags]"
	}
	if c.usage != "" {
		line += " " + c.usage
	}
	return line
}

// run parses the flags of a command and runs it.
func (e *env) run(ctx context.Context, c *command, args []string) error {
	words, err := e.parse(c, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return writeHelp(e.stdout, c)
	case err != nil:
		return err
	case e.server != nil && !c.connects && !c.takesCommand:
		return usagef("%s takes no command after --", c.name)
	}
	if level := mcp.LoggingLevel(e.client.log); level != "" {
		if _, ok := level.Level(); !ok {
			return usagef("%s: -log %q is not a level, such as debug, info, warning or error", c.name, level)
		}
	}
	return c.run(ctx, e, words)
}

// parse parses the flags of a command, which may appear before, between and after its
// words, and the command of a server after --.
func (e *env) parse(c *command, args []string) (words []string, err error) {
	if c.raw {
		if len(args) > 0 && (args[0] == "-h" || args[0] == "-help" || args[0] == "--help") {
			return nil, flag.ErrHelp
		}
		return args, nil
	}
	if i := slices.Index(args, "--"); i >= 0 { // package flag would drop it
		args, e.server = args[:i], append([]string{}, args[i+1:]...)
	}
	flags := e.flagSet(c)
	for {
		switch err := flags.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			return nil, err
		case err != nil:
			return nil, usagef("%s: %v; psi help %s lists the flags", c.name, err, c.name)
		}
		if flags.NArg() == 0 {
			return words, nil
		}
		words, args = append(words, flags.Arg(0)), flags.Args()[1:]
	}
}
